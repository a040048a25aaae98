"""Questions about integers that a proof leaves: Z3 answers them.

A *fact* is a polynomial that is >= 0. Every non-linear monomial and every quotient is first
taken for an integer of its own (stage a); then products of pairs of facts are added, each
still linear in those integers (stage b); last, the monomials are products (stage c).
What Z3 does not settle in its number of steps is not known: that never proves anything.

z3 is imported when the first question is asked.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement, product
from math import lcm
from types import ModuleType

from rulesets import samples
from rulesets.deadline import check_time
from rulesets.errors import MissingLibraryError
from rulesets.size import Monomial, Poly, Quotient, Size, symbol, symbols

LINEAR_STEPS, NONLINEAR_STEPS = 10_000_000, 3_000_000
"""How long Z3 may work, in its own steps: some three seconds, and one.

Steps and not seconds, so that an answer does not depend on the machine.
"""
MOST_PRODUCTS = 200

type Weighted = Sequence[tuple[Fraction, frozenset[Poly]]]


@lru_cache(maxsize=1)
def z3_module() -> ModuleType:
    """Import z3, which only proofs need.

    Raises:
        MissingLibraryError: It is not installed.
    """
    try:
        import z3  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingLibraryError(
            "proofs need z3, which is not installed; pip install 'tensat[verify]'"
        ) from error
    return z3  # type: ignore[no-any-return]


def quotients(size: Size) -> Iterator[Quotient]:
    """Yield the quotients in a polynomial, inner ones too."""
    if isinstance(size, Poly):
        for monomial, _ in size.terms:
            for atom, _ in monomial:
                if isinstance(atom, Quotient):
                    yield from quotients(atom.dividend)
                    yield from quotients(atom.divisor)
                    yield atom


def quotient_facts(sizes: Iterable[Size]) -> tuple[Size, ...]:
    """Return what defines the quotients in polynomials: 0 <= dividend - q·d < d."""
    found = dict.fromkeys(atom for size in sizes for atom in quotients(size))
    facts: list[Size] = []
    for atom in found:
        value = Poly(((((atom, 1),), 1),))
        rest = atom.dividend - value * atom.divisor
        facts += [rest, atom.divisor - 1 - rest]
    return tuple(facts)


def _nonlinear(size: Size) -> bool:
    return isinstance(size, Poly) and any(
        sum(power for _, power in monomial) > 1 for monomial, _ in size.terms
    )


class _Stage:
    """One translation of polynomials into the text of SMT-LIB."""

    def __init__(self, products: bool) -> None:
        self.products = products
        self.known: dict[Monomial, str] = {}

    def term(self, size: Size) -> str:
        if isinstance(size, int):
            return _numeral(size)
        parts = [
            f"(* {_numeral(number)} {self.monomial(monomial)})"
            for monomial, number in size.terms
        ]
        return parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"

    def monomial(self, monomial: Monomial) -> str:
        if not monomial:
            return "1"
        if self.products and (len(monomial) > 1 or monomial[0][1] > 1):
            atoms = [self.monomial(((atom, 1),)) for atom, n in monomial for _ in range(n)]
            return f"(* {' '.join(atoms)})"
        return self.known.setdefault(monomial, f"v{len(self.known)}")


def _numeral(number: int) -> str:
    return str(number) if number >= 0 else f"(- {-number})"


def _products(facts: Sequence[Size], wanted: Sequence[Size]) -> list[Size]:
    """Return products of two facts that share a monomial of degree 2 with a question."""
    monomials = {
        monomial
        for size in (*wanted, *facts)
        if isinstance(size, Poly)
        for monomial, _ in size.terms
        if sum(power for _, power in monomial) > 1
    }
    found: list[Size] = []
    for one, other in combinations_with_replacement(facts, 2):
        product = one * other
        if isinstance(product, Poly) and any(m in monomials for m, _ in product.terms):
            found.append(product)
            if len(found) == MOST_PRODUCTS:
                break
    return found


def _unsatisfiable(
    facts: tuple[Size, ...],
    constraints: tuple[Size, ...],
    weighted: Weighted = (),
    stages: int = 3,
) -> bool:
    """Say whether no integers fulfil all facts and constraints.

    With `weighted`, whether none makes the weighted number of domains differ from 0.
    """
    check_time()
    domains = tuple(condition for _, domain in weighted for condition in domain)
    everything = (*facts, *constraints, *domains)
    everything = (*everything, *quotient_facts(everything))
    relevant = _connected(sorted(everything, key=str), (*constraints, *domains))
    hard = any(map(_nonlinear, (*relevant, *constraints, *domains)))
    own = set(domains)
    base = tuple(each for each in relevant if each not in own)
    frozen = tuple((weight, domain) for weight, domain in weighted)
    chosen = samples.where_all((*base, *constraints))
    if samples.unbalanced(frozen, chosen) if frozen else chosen:
        return False
    return _settled(base, constraints, frozen, stages if hard else 1)


@lru_cache(maxsize=1 << 15)
def _settled(
    base: tuple[Size, ...],
    constraints: tuple[Size, ...],
    weighted: tuple[tuple[Fraction, frozenset[Poly]], ...],
    stages: int,
) -> bool:
    # Runs that start again ask the same questions again.
    wanted = (*constraints, *(each for _, domain in weighted for each in domain))
    for stage in range(stages):
        more = _products(base, wanted) if stage == 1 else []
        if stage == 1 and not more:
            continue
        if _solve(_Stage(stage == 2), (*base, *more), constraints, weighted, stage):
            return True
    return False


def _connected(facts: Iterable[Size], wanted: Iterable[Size]) -> tuple[Size, ...]:
    """Return the facts that share names with the question, directly or not."""
    names = frozenset().union(*map(symbols, wanted))
    waiting = list(dict.fromkeys(facts))
    kept: list[Size] = []
    while True:
        now = [each for each in waiting if isinstance(each, int) or symbols(each) & names]
        if not now:
            return tuple(kept)
        kept += now
        waiting = [each for each in waiting if each not in now]
        names = names.union(*map(symbols, now))


def _solve(
    stage: _Stage,
    facts: Iterable[Size],
    constraints: Iterable[Size],
    weighted: Weighted,
    number: int,
) -> bool:
    asserted = [f"(>= {stage.term(each)} 0)" for each in (*facts, *constraints)]
    if weighted:
        scale = lcm(*(weight.denominator for weight, _ in weighted))
        parts = [
            f"(ite {_all([f'(>= {stage.term(each)} 0)' for each in domain])} "
            f"{_numeral(int(weight * scale))} 0)"
            for weight, domain in weighted
        ]
        asserted.append(f"(not (= 0 (+ 0 {' '.join(parts)})))")
    declared = [f"(declare-const {name} Int)" for name in stage.known.values()]
    text = "\n".join([*declared, *(f"(assert {each})" for each in asserted)])
    z3 = z3_module()
    # What Z3 finds about products depends on what its context has seen before.
    solver = z3.Solver(ctx=z3.Context()) if number == 2 else z3.SolverFor("QF_LIA")
    solver.set("rlimit", NONLINEAR_STEPS if number == 2 else LINEAR_STEPS)
    solver.from_string(text)
    return bool(solver.check() == z3.unsat)


def _all(conditions: Sequence[str]) -> str:
    return f"(and true {' '.join(conditions)})"


def obvious(goal: Poly, facts: Collection[Poly], positive: Collection[str]) -> bool:
    """Say whether a goal is >= 0 because its coefficients are, or but for one fact."""
    if goal in facts or _coefficients_suffice(goal, positive):
        return True
    for fact in facts:
        rest = goal - fact
        if isinstance(rest, int):
            if rest >= 0:
                return True
        elif len(rest.terms) < len(goal.terms) and _coefficients_suffice(rest, positive):
            return True
    return False


def obviously(known: "Integers", size: Size) -> bool:
    """Say whether a size is >= 0 by its coefficients."""
    if isinstance(size, int):
        return size >= 0
    return obvious(size, known.facts, known.positive)


def _coefficients_suffice(goal: Poly, positive: Collection[str]) -> bool:
    if not all(name in positive for name in symbols(goal)):
        return False
    least = 0
    for monomial, number in goal.terms:
        if any(not isinstance(atom, str) for atom, _ in monomial):
            return False
        if monomial and number < 0:
            return False
        least += number
    return least >= 0


class Integers:
    """Facts about integers, and what follows from them."""

    def __init__(
        self,
        facts: Iterable[Size],
        positive: Iterable[str] = (),
        within: "Integers | None" = None,
    ) -> None:
        """Take facts (>= 0), and names of integers known to be >= 1.

        Args:
            facts: The facts.
            positive: The names.
            within: What is known besides; it has the same names.
        """
        mine = frozenset([each for each in facts if isinstance(each, Poly)])
        self.facts: frozenset[Poly] = mine
        self.positive: frozenset[str] = frozenset(positive)
        if within is not None:
            self.facts, self.positive = within.facts | mine, within.positive
        self._more = mine
        self._within = within
        self._answers: dict[object, bool] = {}

    @cached_property
    def all(self) -> tuple[Size, ...]:
        """All facts, those about positive names among them."""
        return (*self.facts, *(symbol(name) - 1 for name in sorted(self.positive)))

    @cached_property
    def chosen(self) -> int:
        """The choices of values, see `rulesets.samples`, at which the facts hold."""
        if self._within is None:
            return samples.where_all(self.all)
        return samples.where_all(self._more, self._within.chosen)

    def with_facts(self, more: Iterable[Size]) -> "Integers":
        """Return these and more facts."""
        added = [e for e in more if isinstance(e, Poly) and e not in self.facts]
        return Integers(added, within=self) if added else self

    def implied(self, goal: Size, stages: int = 3) -> bool:
        """Say whether `goal >= 0` follows, going through so many stages."""
        if isinstance(goal, int):
            return goal >= 0
        key = goal, stages
        if key not in self._answers:
            self._answers[key] = obvious(goal, self.facts, self.positive) or (
                not samples.where(-goal - 1) & self.chosen
                and _unsatisfiable(self.all, (-goal - 1,), stages=stages)
            )
        return self._answers[key]

    def equal(self, one: Size, other: Size) -> bool:
        """Say whether two sizes are equal by the facts."""
        return self.implied(one - other) and self.implied(other - one)

    def impossible(self, constraints: Iterable[Size] = (), stages: int = 3) -> bool:
        """Say whether the facts and the constraints contradict one another."""
        asked = tuple(dict.fromkeys(constraints))
        if any(isinstance(each, int) and each < 0 for each in asked):
            return True
        key = ("impossible", stages, frozenset(asked))
        if key not in self._answers:
            wanted = asked or self.all
            self._answers[key] = any(self._opposite(each) for each in asked) or (
                not samples.where_all(asked, self.chosen)
                and _unsatisfiable(self.all, wanted, stages=stages)
            )
        return self._answers[key]

    def _opposite(self, condition: Size) -> bool:
        return isinstance(condition, Poly) and (-condition - 1) in self.facts

    def cancels(self, weighted: Weighted) -> bool:
        """Say whether the weighted number of domains a point lies in is always 0."""
        totals: dict[frozenset[Poly], Fraction] = {}
        for weight, domain in weighted:
            kept = frozenset(each for each in domain if each not in self.facts)
            totals[kept] = totals.get(kept, Fraction(0)) + weight
        left = [(weight, domain) for domain, weight in totals.items() if weight]
        if not left:
            return True
        if len(left) == 1 and not left[0][1]:
            return self.impossible()
        if samples.unbalanced(left, self.chosen):
            return False
        return _unsatisfiable(self.all, (), left)


def same_union(
    known: Integers, one: Sequence[frozenset[Poly]], other: Sequence[frozenset[Poly]]
) -> bool:
    """Say whether a point lies in a domain of the first list iff in one of the second."""
    one, other = ([_unknown(known, d) for d in domains] for domains in (one, other))
    if set(one) == set(other):
        return True
    return all(_covered(known, d, other) for d in one) and all(
        _covered(known, d, one) for d in other
    )


def _unknown(known: Integers, domain: frozenset[Poly]) -> frozenset[Poly]:
    return frozenset(each for each in domain if each not in known.facts)


def _covered(
    known: Integers, domain: frozenset[Poly], others: Sequence[frozenset[Poly]]
) -> bool:
    """Say whether every point of a domain lies in one of the others."""
    if domain in others:
        return True
    here = known.with_facts(domain)
    if any(all(here.implied(each) for each in other) for other in others):
        return True
    if len(others) > 4:
        return False
    # A point outside all others: one guard of each fails.
    choices = product(*(sorted(other, key=str) for other in others))
    return all(here.impossible([-each - 1 for each in chosen]) for chosen in choices)
