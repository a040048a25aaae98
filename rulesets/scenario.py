"""One way a left side can be: ranks, axes, which sizes are 1 or equal.

A proof goes through all scenarios of a rule. A run that meets an open question goes on with
the first answer and leaves the others to runs of their own; a run that learns an equation
between sizes solves it for a symbol and is started again. Together the scenarios cover
every concrete match at the ranks tried.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rulesets.deadline import check_time
from rulesets.errors import NotModelledError
from rulesets.integers import Integers, obvious
from rulesets.scalar import Sum
from rulesets.size import Poly, Size, divide, divide_terms, substitute, symbol, symbols
from rulesets.unify import linear_in


class DeadError(Exception):
    """No concrete match is like this."""


class RestartError(Exception):
    """An equation was solved; the state to start again from."""

    def __init__(self, state: "State") -> None:
        """Keep the state."""
        super().__init__("start again")
        self.state = state


@dataclass(frozen=True)
class State:
    """What a scenario has decided and learnt.

    Attributes:
        decisions: Answers, by question.
        values: What solved symbols stand for.
        reals: What real attributes and elements of tensors are known to be.
        needs: Conditions of the right side that did not follow, as texts.
        large: Sizes that are 2 or more, so that a case leaves to another one what both
            would cover.
    """

    decisions: Mapping[Any, Any] = field(default_factory=dict)
    values: Mapping[str, Size] = field(default_factory=dict)
    reals: Mapping[str, Sum] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    large: tuple[Size, ...] = ()


class Scenario:
    """A run in one state; also the judge of both sides."""

    def __init__(self, state: State) -> None:
        """Start a run."""
        self.state = state
        self.siblings: list[State] = []
        self.facts: dict[Poly, None] = {}
        self.positive: dict[str, None] = {}
        self.right = False
        self.needs: dict[str, None] = dict.fromkeys(state.needs)
        self.ones: set[Size] = set()
        self.products: dict[Poly, Poly] = {}
        self.opaque: set[str] = set()
        self.texts: dict[str, str] = {}
        self.positive_reads: set[str] = set()
        self.nonzero_reads: set[str] = set()
        self.real_facts: list[tuple[Sum, bool]] = []
        self._integers: Integers | None = None

    # -- facts ---------------------------------------------------------------------------

    @property
    def integers(self) -> Integers:
        """Everything known about sizes."""
        if self._integers is None:
            self._integers = Integers(self.facts, self.positive)
        return self._integers

    def symbol(self, name: str, text: str, least: int | None = 1) -> Size:
        """Return a symbol, or what it stands for.

        Args:
            name: Its name.
            text: How the vocabulary of rules says it.
            least: The least value it has, None for any integer.
        """
        self.texts[name] = text
        value = self.state.values.get(name, symbol(name))
        if least == 1 and value == symbol(name):
            if name not in self.positive:
                self.positive[name] = None
                self._integers = None
        elif least is not None:
            self.learn_at_least(value, least)
        return value

    def learn_at_least(self, size: Size, least: Size) -> None:
        """Take `size >= least` for a fact."""
        fact = size - least
        if isinstance(fact, int):
            if fact < 0:
                raise DeadError
            return
        if fact in self.facts:
            return
        if obvious(-fact, self.facts, self.positive):
            self.learn_equal(fact, 0)
        self.facts[fact] = None
        self._integers = None

    def learn_large(self, size: Size) -> None:
        """Take `size >= 2` for a fact, in this run and those that start from it."""
        self.learn_at_least(size, 2)
        if size not in self.state.large:
            self.state = replace(self.state, large=(*self.state.large, size))

    def note(self, fact: Size, /) -> None:
        """Remember a fact about index variables in their ranges."""
        if isinstance(fact, Poly) and fact not in self.facts:
            self.facts[fact] = None
            self._integers = None

    def learn_equal(self, one: Size, other: Size) -> None:
        """Take an equation for a fact; the run starts again where it can be solved."""
        difference = self._reduced(one - other)
        if difference == 0:
            return
        if isinstance(difference, int):
            raise DeadError
        self._learn_ones(difference)
        for name in sorted(symbols(difference)):
            parts = linear_in(difference, name)
            if parts is not None and parts[0] in (1, -1):
                self._restart({name: parts[1] * -parts[0]})
        self._note_products(difference)
        for fact in (difference, -difference):
            self.facts[fact] = None
        self._integers = None

    def _note_products(self, difference: Poly) -> None:
        """Keep `a·b = c·d` as a way to write products of sizes in one way."""
        if len(difference.terms) == 2:
            (one, number), (other, opposite) = difference.terms
            if one and other and number == -opposite and abs(number) == 1:
                self.products[Poly(((one, 1),))] = Poly(((other, 1),))

    def reduced(self, size: Size) -> Size:
        """Replace products that are known to be equal to others."""
        for product, other in self.products.items():
            quotient, rest = divide_terms(size, product)
            if quotient != 0:
                size = quotient * other + rest
        return size

    def _reduced(self, size: Size) -> Size:
        """Divide an equation by symbols that are in every term and are positive."""
        while isinstance(size, Poly):
            common = set.intersection(*({a for a, _ in m} for m, _ in size.terms))
            name = next(
                (a for a in common if isinstance(a, str) and a in self.positive), None
            )
            if name is None:
                return size
            parts = linear_in(size, name)
            if parts is None or parts[1] != 0:
                return size
            size = parts[0]
        return size

    def _learn_ones(self, difference: Poly) -> None:
        """Solve `product of sizes = 1`."""
        if len(difference.terms) != 2 or difference.terms[1][0]:
            return
        (monomial, number), (_, constant) = difference.terms
        names = [atom for atom, _ in monomial if isinstance(atom, str)]
        sizes = len(names) == len(monomial) and all(name in self.positive for name in names)
        if sizes and number == -constant:
            self._restart(dict.fromkeys(names, 1))

    def _restart(self, solved: Mapping[str, Size]) -> None:
        values = {k: substitute(v, solved) for k, v in self.state.values.items()}
        state = replace(
            self.state,
            values={**values, **solved},
            needs=tuple(self.needs),
            large=tuple(substitute(each, solved) for each in self.state.large),
        )
        raise RestartError(state)

    def set_real(self, name: str, value: Sum) -> None:
        """Learn the value of a real attribute or of every element of a tensor."""
        if name not in self.state.reals:
            reals = {**self.state.reals, name: value}
            raise RestartError(replace(self.state, reals=reals, needs=tuple(self.needs)))

    def choose(self, question: Any, options: Sequence[Any]) -> Any:
        """Return the answer to a question."""
        if len(options) == 1:
            return options[0]
        if question not in self.state.decisions:
            if not options:
                raise DeadError
            first, *others = (self._decided(question, option) for option in options)
            self.siblings += reversed(others)
            self.state = first
        return self.state.decisions[question]

    def _decided(self, question: Any, answer: Any) -> State:
        decisions = {**self.state.decisions, question: answer}
        return replace(self.state, decisions=decisions, needs=tuple(self.needs))

    # -- the judge -----------------------------------------------------------------------

    def equal(self, one: Size, other: Size, /) -> bool:
        """Take equality for granted on the left; prove it, or note it, on the right."""
        difference = one - other
        if isinstance(difference, int):
            return difference == 0
        if not self.right:
            self.learn_equal(one, other)
            return True
        known = self.integers
        if known.equal(one, other):
            return True
        if known.impossible([difference, -difference]):
            return False
        self.need(self.equation(difference))
        self.learn_equal(one, other)
        return True

    def at_least(self, size: Size, least: Size, /) -> bool:
        """Take a bound for granted on the left; prove it, or note it, on the right."""
        fact = size - least
        if isinstance(fact, int):
            return fact >= 0
        if self.integers.implied(fact):
            return True
        if self.integers.implied(-fact - 1):
            return False
        if self.right:
            self.need(f"{self.text(size)} >= {self.text(least)}")
        self.learn_at_least(size, least)
        return True

    def multiple(self, size: Size, of: Size, /) -> bool:
        """Take divisibility for granted on the left; prove it on the right."""
        if of == 1 or size == of:
            return True
        if divide(size, of) is not None:
            return True
        if self.right:
            self.need(f"% {self.text(size)} {self.text(of)} = 0")
        times = self.symbol(f"({size})/({of})", f"(// {self.text(size)} {self.text(of)})")
        self.learn_equal(size, times * of)
        return True

    def joined(self, sizes: tuple[Size, ...], /) -> Size | None:
        """Choose which sizes are 1; the others are equal."""
        different = [e for e in dict.fromkeys(sizes) if e != 1 and e not in self.ones]
        if not different:
            return 1
        first, *others = different
        for other in others:
            if isinstance(first, int) and isinstance(other, int):
                return None
            if self.integers.equal(first, other):
                continue
            answer = self.choose(("joined", first, other), ("equal", "first", "other"))
            # The cases exclude one another: both are 1 in the second alone. What a right
            # side needs is stated as if they did not.
            if answer == "first":
                self._learn_one(first)
                first = other
                continue
            if not self.right:
                self.learn_large(first)
            if answer == "equal":
                self.learn_equal(first, other)
            else:
                self._learn_one(other)
        return first

    def _learn_one(self, size: Size) -> None:
        self.learn_equal(size, 1)
        self.ones.add(size)

    def one(self, size: Size, /) -> bool:
        """Say whether a size was chosen to be 1 and could not be solved for it."""
        return size in self.ones

    def position(self, offset: Size, size: Size, /) -> Size | None:
        """Return a symbol for the position of an offset that no rule looks into."""
        if symbols(offset).isdisjoint(self.opaque):
            return None
        name = f"position {offset} of {size}"
        place = self.symbol(name, f"{self.text(offset)}", 0)
        self.learn_at_least(size, place)
        return place

    # -- conditions ----------------------------------------------------------------------

    def need(self, text: str) -> None:
        """Note a condition that the right side needs."""
        self.needs[text] = None

    def equation(self, difference: Size) -> str:
        """Return `difference = 0` as a condition without minus signs."""
        terms = difference.terms if isinstance(difference, Poly) else ()
        sides = [
            Poly(tuple((m, abs(n)) for m, n in terms if (n > 0) == left)) if terms else 0
            for left in (True, False)
        ]
        left, right = (self.text(side) for side in sides)
        return f"{right} = {left}" if left.isdigit() else f"{left} = {right}"

    def text(self, size: Size) -> str:
        """Return a size in the vocabulary of rules."""
        if isinstance(size, int):
            return str(size)
        parts = [self._monomial(monomial, number) for monomial, number in size.terms]
        if not parts:
            return "0"
        return parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"

    def _monomial(self, monomial: Any, number: int) -> str:
        parts = [] if number == 1 and monomial else [str(number)]
        for atom, power in monomial:
            if isinstance(atom, str):
                parts += [self.texts.get(atom, atom)] * power
            else:
                dividend, divisor = self.text(atom.dividend), self.text(atom.divisor)
                parts += [f"(// {dividend} {divisor})"] * power
        return parts[0] if len(parts) == 1 else f"(* {' '.join(parts)})"


def scenarios(run: Any, first: State, most: int) -> Iterator[Any]:
    """Run in every scenario and yield what the runs return.

    Args:
        run: Takes a `Scenario`; may raise `RestartError` and `DeadError`.
        first: Where to begin.
        most: The greatest number of runs.

    Raises:
        NotModelledError: There are more.
        OutOfTimeError: The time for the proof is over.
    """
    waiting = [first]
    count = 0
    while waiting:
        state = waiting.pop()
        count += 1
        check_time()
        if count > most:
            raise NotModelledError(f"more than {most} runs")
        scenario = Scenario(state)
        try:
            for size in state.large:
                scenario.learn_at_least(size, 2)
            yield run(scenario)
        except RestartError as restart:
            waiting.extend([*scenario.siblings, restart.state])
            continue
        except DeadError:
            pass
        waiting.extend(scenario.siblings)
