"""Both sides of a rule in one scenario, as tensors whose elements are normal forms."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from rulesets.assume import Binding, assume, evaluate
from rulesets.condition import Condition
from rulesets.errors import NotModelledError, ShapeError
from rulesets.expression import Call, Expression, Number, Parameter, Sequenced, Text
from rulesets.ops import OPERATORS
from rulesets.rule import Rule
from rulesets.scalar import Names
from rulesets.scenario import Scenario
from rulesets.symbolic import Asked, attribute, order_of
from rulesets.symbols import Symbols, Tensors, Value
from rulesets.tensor import Tensor
from rulesets.term import Apply, Literal, Select, Term, Variable, applications
from rulesets.validate import attributes_in, tensors_in

type Results = tuple[Tensors, ...]


@dataclass(frozen=True)
class Limits:
    """How far a proof goes.

    Attributes:
        rank: The greatest rank of a tensor variable.
        runs: The greatest number of runs through scenarios.
        deadline: When to stop, in seconds of `time.process_time`.
        shapes: The shapes of the tensor variables, where they are not symbolic.
        attributes: The values of the attribute variables, where they are not symbolic.
    """

    rank: int
    runs: int
    deadline: float
    shapes: Mapping[str, tuple[int, ...]] | None = None
    attributes: Mapping[str, Any] | None = None


class Subject:
    """What is proved, with all that no scenario changes.

    Args:
        rule: The rule, without rest variables.
        dtypes: The element types of the tensor variables.
        limits: How far to go.
    """

    def __init__(self, rule: Rule, dtypes: Mapping[str, str], limits: Limits) -> None:
        self.rule = rule
        self.dtypes = dtypes
        self.limits = limits
        self.looked_into = _looked_into(rule)
        self.labels = {
            each.label for side in rule.lhs for each in applications(side) if each.label
        }
        found = dict.fromkeys(name for term in rule.lhs for name in _variables(term))
        self.variables = [name for name in found if name not in self.labels]
        self.conditions = tuple(map(_asking, rule.where))


class Sides:
    """Builds both sides of a rule in one scenario."""

    def __init__(self, subject: Subject, scenario: Scenario) -> None:
        rule = subject.rule
        self.subject = subject
        self.rule = rule
        self.dtypes = subject.dtypes
        self.limits = limits = subject.limits
        self.scenario = scenario
        names = Names()
        real = rule.dtypes == "float"
        self.lefts = Symbols(names, scenario, real_valued=real)
        self.rights = Symbols(names, scenario, real_valued=real)
        for side in (self.lefts, self.rights):
            side.unrolled = limits.shapes is not None
        self.binding = Binding(scenario, self.lefts)
        self.bundles: dict[tuple[str, str], Any] = {}
        self.pending = list(subject.conditions)
        self.made: dict[tuple[Term, str], Tensors] = {}

    def shapes_text(self) -> str:
        """Return the shapes of the variables, for a message."""
        return ", ".join(
            f"{name}[{', '.join(map(str, tensor.shape))}]"
            for name, tensor in self.binding.tensors.items()
            if tensor.name
        )

    def early(self) -> None:
        """Choose ranks, and take for granted what speaks of ranks and sizes alone."""
        for variable in self.subject.variables:
            self.variable(variable)
            self.settle()

    def settle(self) -> None:
        """Take for granted every condition whose variables are all bound."""
        tensors, attributes = self.binding.tensors.keys(), self.binding.attributes.keys()
        for each in list(self.pending):
            condition, about, asked = each
            if about <= tensors and asked <= attributes:
                self.pending.remove(each)
                assume(condition, self.binding)

    def variable(self, name: str) -> Tensors:
        """Return a tensor variable, its rank and sizes chosen."""
        if name not in self.binding.tensors:
            if name in self.subject.labels:
                raise NotModelledError(f"?{name} is used before it is made")
            scenario = self.scenario
            if self.limits.shapes is not None:
                shape: tuple[Any, ...] = self.limits.shapes[name]
            else:
                rank = scenario.choose(("rank", name), range(self.limits.rank + 1))
                shape = tuple(
                    scenario.symbol(f"{name}.{axis}", f"(dim ?{name} {axis})")
                    for axis in range(rank)
                )
            known = scenario.state.reals.get(name)

            def element(index: Any) -> Value:
                if known is not None:
                    return Value(self.lefts, known)
                return self.lefts.read(name, index)

            dtype = self.dtypes.get(name, "float32")
            self.binding.tensors[name] = Tensors(self.lefts, shape, dtype, element, name)
        return self.binding.tensors[name]

    # -- terms ---------------------------------------------------------------------------

    def left(self, term: Term) -> Tensors:
        """Return what a term of the left side yields."""
        match term:
            case Variable(name=name):
                return self.variable(name)
            case Literal(value=value):
                return self.literal(value, "float32", self.lefts, id(term), left=True)
            case Apply():
                arguments = [self._left_argument(each) for each in term.arguments]
                attributes = self.bind(term, arguments)
                self.settle()
                results = self.applied(term.op, attributes, arguments, self.lefts)
                for result in results:
                    for size in result.shape:
                        self.scenario.learn_at_least(size, 1)
                if term.label is not None:
                    self.binding.tensors[term.label] = results[0]
                return results[0] if len(results) == 1 else Several(results)
        raise NotModelledError(f"the term {term}")

    def _left_argument(self, term: Term) -> Tensors:
        return self.left(term)

    def literal(
        self, value: float, dtype: str, meaning: Symbols, key: int = 0, *, left: bool
    ) -> Tensors:
        """Return a constant; on the left it has one element and any rank."""
        number = meaning.number(float(value))
        rank = 0
        if left:
            rank = self.scenario.choose(("literal", key), range(self.limits.rank + 1))
        return Tensors(meaning, (1,) * rank, dtype, lambda index: number)

    def right(self, term: Term, dtype: str) -> Tensors:
        """Return what a term of the right side yields; equal terms yield one tensor."""
        key = term, dtype
        if key not in self.made:
            self.made[key] = self._right(term, dtype)
        return self.made[key]

    def _right(self, term: Term, dtype: str) -> Tensors:
        match term:
            case Variable(name=name):
                return self.binding.tensors[name]
            case Select(name=name, index=index):
                position = evaluate(index, self.binding)
                if f"{name}.{position}" not in self.binding.tensors:
                    raise ShapeError(f"?{name} has no element {position}")
                return self.binding.tensors[f"{name}.{position}"]
            case Literal(value=value):
                return self.literal(value, dtype, self.rights, left=False)
            case Apply():
                arguments = [self.right(each, dtype) for each in term.arguments]
                attributes = self.computed(term)
                results = self.applied(term.op, attributes, arguments, self.rights)
                return results[0] if len(results) == 1 else Several(results)
        raise NotModelledError(f"the term {term}")

    def applied(
        self, op: str, attributes: Mapping[str, Any], arguments: list[Tensors], m: Symbols
    ) -> Results:
        """Apply an operator."""
        if op == "Output":
            (source,) = arguments
            index = attributes["index"]
            outputs = source.results if isinstance(source, Several) else (source,)
            if not 0 <= index < len(outputs):
                raise ShapeError("no such output")
            return (outputs[index],)
        if any(isinstance(each, Several) for each in arguments):
            raise NotModelledError("several results as one argument")
        operator = OPERATORS[op]
        types = tuple(Tensor(each.dtype, each.shape) for each in arguments)
        results = operator.infer(attributes, types)
        element = operator.element
        if element is None:
            raise NotModelledError(f"operator {op}")

        def at(output: int, index: Any) -> Any:
            which = (output,) if output else ()
            return element(m, attributes, arguments, index, *which)

        return tuple(
            Tensors(m, tensor.shape or (), tensor.dtype, partial(at, output))
            for output, tensor in enumerate(results)
        )

    # -- attributes ----------------------------------------------------------------------

    def bind(self, term: Apply, arguments: list[Tensors]) -> dict[str, Any]:
        """Bind the attributes of an application of the left side."""
        operator = OPERATORS[term.op]
        mentioned = dict(term.attributes)
        inputs = tuple(Tensor(each.dtype, each.shape) for each in _spread(arguments))
        known: dict[str, Any] = {}
        for name in order_of(term.op, [each.name for each in operator.attributes]):
            asked = partial(
                Asked,
                self.scenario,
                self.lefts,
                term.op,
                inputs,
                known,
                rank=self.limits.rank,
            )
            if name in mentioned:
                known[name] = self.pattern(
                    mentioned[name], name, asked, operator.kinds[name]
                )
            elif term.bundle is not None:
                known[name] = self.bundled(term.bundle, name, asked)
            else:
                known[name] = operator.defaults[name]
        return known

    def bundled(self, bundle: str, name: str, asked: Any) -> Any:
        """Return an attribute of a bundle."""
        if (bundle, name) not in self.bundles:
            given = (self.limits.attributes or {}).get(f"..{bundle}")
            if self.limits.attributes is not None:
                found = dict(given or ())
                operator = OPERATORS[asked.args[2]]
                self.bundles[bundle, name] = found.get(name, operator.defaults.get(name))
            else:
                key = f"..{bundle}.{name}"
                self.bundles[bundle, name] = attribute(asked(key=key, text=key), name)
        return self.bundles[bundle, name]

    def pattern(self, pattern: Expression, name: str, asked: Any, kind: str) -> Any:
        """Return the value of an attribute that the left side mentions."""
        match pattern:
            case Number(value=value):
                return float(value) if kind in ("float", "floats") else value
            case Text(value=text):
                return text
            case Parameter(name=variable):
                return self.attribute_variable(variable, name, asked, None)
            case Sequenced(items=items):
                members = []
                for position, item in enumerate(items):
                    if isinstance(item, Parameter):
                        value = self.attribute_variable(item.name, name, asked, position)
                    else:
                        assert isinstance(item, Number)
                        value = item.value
                    members.append(value)
                return tuple(members)
        raise NotModelledError(f"the pattern {pattern}")

    def attribute_variable(
        self, variable: str, name: str, asked: Any, position: int | None
    ) -> Any:
        """Return an attribute variable, chosen where it stands first."""
        bound = self.binding.attributes
        if variable not in bound:
            if self.limits.attributes is not None:
                bound[variable] = self.limits.attributes[variable]
            else:
                opaque = variable not in self.subject.looked_into
                text = f"?{variable}"
                question = asked(key=text, text=text, opaque=opaque)
                bound[variable] = attribute(question, name, position)
        return bound[variable]

    def computed(self, term: Apply) -> dict[str, Any]:
        """Compute the attributes of an application of the right side."""
        operator = OPERATORS[term.op]
        given = dict(operator.defaults)
        if term.bundle is not None:
            for (bundle, name), value in self.bundles.items():
                if bundle == term.bundle and name in operator.kinds:
                    given[name] = value
        for name, expression in term.attributes:
            given[name] = evaluate(expression, self.binding)
        for name, kind in operator.kinds.items():
            if name not in given:
                raise ShapeError(f"attribute {name} is missing")
            value = given[name]
            if kind == "int" and isinstance(value, float):
                raise ShapeError(f"attribute {name} is no whole number")
            if kind == "float" and isinstance(value, int | Fraction):
                given[name] = float(value)
        return given


class Several(Tensors):
    """The results of an operator with several."""

    def __init__(self, results: Results) -> None:
        first = results[0]
        super().__init__(first.of, first.shape, first.dtype, first.element)
        self.results = results


def _spread(arguments: list[Tensors]) -> list[Tensors]:
    return [
        result
        for each in arguments
        for result in (each.results if isinstance(each, Several) else (each,))
    ]


def _asking(condition: Condition) -> tuple[Condition, frozenset[str], frozenset[str]]:
    """Return a condition with the tensor and attribute variables it mentions."""
    tensors = frozenset(each.name for each in condition.tensors)
    return (
        condition,
        tensors.union(*map(tensors_in, condition.expressions)),
        frozenset().union(*map(attributes_in, condition.expressions)),
    )


def _variables(term: Term) -> list[str]:
    match term:
        case Variable(name=name):
            return [name]
        case Apply(arguments=arguments):
            return [name for each in arguments for name in _variables(each)]
    return []


def _looked_into(rule: Rule) -> frozenset[str]:
    """Return the attribute variables that conditions or computations look into."""
    expressions = [each for condition in rule.where for each in condition.expressions]
    for side in rule.rhs:
        for application in applications(side):
            for _, value in application.attributes:
                items = value.items if isinstance(value, Sequenced) else (value,)
                expressions += [each for each in items if isinstance(each, Call)]
    return frozenset().union(*map(attributes_in, expressions))
