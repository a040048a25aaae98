"""Are two elements equal: the normal form first, then what is left of arithmetic.

`Evidence.compare` forms the difference at a symbolic index and tries, in this order, the
clusters of `rulesets.decide`, a common denominator, and a question about real numbers in
which sums and functions are unknowns and the larger of two is a case. It also compares the
ledgers: a denominator on the right must stand on the left, or be obviously not 0.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from rulesets import normal_form
from rulesets.canonical import canonical
from rulesets.decide import Decider, atoms_of
from rulesets.integers import LINEAR_STEPS, Integers, z3_module
from rulesets.normal_form import Demand, cases
from rulesets.normal_form_text import text_of
from rulesets.scalar import (
    Apply,
    Atom,
    Base,
    Element,
    Largest,
    Read,
    Real,
    Sum,
    Term,
    collected,
    free,
    names_in,
    of_atom,
    plus,
    replaced,
    scaled,
)
from rulesets.scenario import Scenario
from rulesets.size import Size, substitute, symbol
from rulesets.symbols import Symbols, Tensors
from rulesets.unify import of_sums, solve

MOST_ATOMS = 40


class Evidence:
    """Compares elements in one scenario."""

    def __init__(self, scenario: Scenario, lefts: Symbols, rights: Symbols) -> None:
        """Take the meanings of both sides, with their ledgers."""
        self.scenario = scenario
        self.lefts = lefts
        self.rights = rights
        self.decider = Decider(lefts.names)

    def compare(self, left: Tensors, right: Tensors) -> str:
        """Return why two tensors are not shown to be equal; empty if they are."""
        if self.lefts.unrolled:
            known = self.scenario.integers
            for place in product(*(range(int(size)) for size in left.shape)):  # type: ignore[arg-type]
                reason = self.compare_at(place, left, right, known)
                if reason:
                    return f"at {place}: {reason}"
            return ""
        index = tuple(0 if size == 1 else self.lefts.variable(size) for size in left.shape)
        self.rights.limits = self.lefts.limits
        known = self.scenario.integers.with_facts(self.lefts.facts(*index))
        return self.compare_at(index, left, right, known)

    def compare_at(
        self, index: tuple[Size, ...], left: Tensors, right: Tensors, known: Integers
    ) -> str:
        """Compare at one index."""
        one, other = left[index].sum, right[index].sum
        # Reading elements teaches facts about quotients of indices.
        known = known.with_facts(self.scenario.facts)
        if not self._equal(one, other, known):
            return (
                self.decider.reason or f"left over: {text_of(plus(one, scaled(other, -1)))}"
            )
        for demand in self.rights.ledger.demands:
            if not self._allowed(demand, known):
                return f"the right side needs a {demand.kind} {text_of(demand.value)}"
        return ""

    def _equal(self, one: Sum, other: Sum, known: Integers) -> bool:
        one, other = canonical(one), canonical(other)
        if one == other:
            return True
        difference = canonical(self.decider.tidy(plus(one, scaled(other, -1)), known))
        if self.decider.zero(difference, known):
            return True
        if not self.lefts.real_valued:
            return False
        merged = self._merged(difference, known)
        if merged != difference and self.decider.zero(merged, known):
            return True
        multiplied = self._multiplied(merged)
        if multiplied != merged and self.decider.zero(multiplied, known):
            return True
        return all(
            known.impossible(domain)
            or Reals(self, known.with_facts(domain)).zero(leaf.body)
            for domain, (leaf,) in cases((Element(frozenset(), frozenset(), merged),))
        )

    # -- a common denominator ------------------------------------------------------------

    def _merged(self, one: Sum, known: Integers) -> Sum:
        """Write equal sums and sets in atoms in one way."""
        found: list[Atom] = []
        for atom in atoms_of([one]):
            if isinstance(atom, Base | Apply | Largest) and atom not in found:
                found.append(atom)
        if len(found) > MOST_ATOMS:
            return one
        same: dict[Atom, Atom] = {}
        for position, atom in enumerate(found):
            for earlier in found[:position]:
                if earlier not in same and self.decider.same_atom(earlier, atom, known):
                    same[atom] = earlier
                    break
        return collected(
            Term(
                term.coefficient,
                term.bound,
                term.domain,
                tuple((same.get(atom, atom), power) for atom, power in term.factors),
            )
            for term in one.terms
        )

    def _multiplied(self, one: Sum) -> Sum:
        """Multiply by every denominator that stands before no bound variable."""
        least: dict[Atom, Fraction] = {}
        for term in one.terms:
            for atom, power in term.factors:
                if power < 0 and power.denominator == 1 and atom in set(atoms_of([one])):
                    least[atom] = min(power, least.get(atom, Fraction(0)))
        result = one
        for atom, power in least.items():
            result = normal_form.times(self.lefts.names, result, of_atom(atom, -power))
        return result

    # -- the ledger ----------------------------------------------------------------------

    def _allowed(self, demand: Demand, known: Integers) -> bool:
        value = canonical(demand.value)
        plain = (each for each in self.lefts.ledger.demands if each.kind == demand.kind)
        if any(
            each.domain <= demand.domain and canonical(each.value) == value
            for each in plain
        ):
            return True
        here = known.with_facts([*demand.domain, *self._ranges(demand)])
        if here.impossible():
            return True
        sign = Signs(self.scenario, here).of(demand.value)
        if sign == "+" or (sign == "0+" and demand.kind == "nonnegative"):
            return True
        if sign in ("-", "nonzero") and demand.kind == "nonzero":
            return True
        return any(
            self._covers(each, demand, here)
            for each in self.lefts.ledger.demands
            if each.kind == demand.kind
        )

    def _ranges(self, demand: Demand) -> list[Size]:
        names = free(demand.value) | names_in(demand.domain)
        return self.lefts.facts(*(symbol(name) for name in sorted(names)))

    def _covers(self, left: Demand, right: Demand, here: Integers) -> bool:
        """Say whether a demand of the left side, at some index, is this one."""
        own = free(left.value) | names_in(left.domain)
        moving = frozenset(name for name in own if name in self.lefts.limits)
        moving -= free(right.value) | names_in(here.facts)
        if not moving:
            inside = all(here.implied(guard) for guard in left.domain)
            return inside and self.decider.equal(left.value, right.value, here)
        for equations in of_sums(right.value, left.value):
            values = solve(equations, moving)
            if values is None or set(values) < moving:
                continue
            moved = replaced(left.value, values)
            ranges = [substitute(each, values) for each in self._ranges(left)]
            guards = [substitute(each, values) for each in left.domain]
            fits = all(here.implied(each) for each in (*ranges, *guards))
            if fits and self.decider.equal(moved, right.value, here):
                return True
        return False


class Signs:
    """Obvious signs: ``+`` positive, ``0+`` not negative, ``-``, ``nonzero``, or empty."""

    def __init__(self, scenario: Scenario, known: Integers) -> None:
        """Take what is known."""
        self.scenario = scenario
        self.known = known

    def of(self, one: Sum) -> str:
        """Return the sign of a sum."""
        for fact, strict in self.scenario.real_facts:
            if one == fact:
                return "+" if strict else "0+"
        signs = [self._term(term) for term in one.terms]
        if not signs or any(sign not in ("+", "0+") for sign in signs):
            return signs[0] if len(signs) == 1 else ""
        return "+" if "+" in signs else "0+"

    def _term(self, term: Term) -> str:
        signs = {self.atom(atom, power) for atom, power in term.factors}
        if not signs <= {"+", "0+"}:
            plain = not term.bound and not term.domain
            return "nonzero" if plain and signs <= {"+", "-", "nonzero"} else ""
        plain = not term.bound and not term.domain and "0+" not in signs
        if term.coefficient < 0:
            return "-" if plain else ""
        return "+" if plain else "0+"

    def atom(self, atom: Atom, power: Fraction) -> str:
        """Return the sign of a power of an atom."""
        sign = self._plain(atom)
        if power.denominator != 1:
            return "+" if sign == "+" or power < 0 else "0+"
        if sign in ("+", "0+"):
            return sign if power > 0 or sign == "+" else "+"
        if power % 2 == 0:
            return "+" if sign in ("-", "nonzero") or power < 0 else "0+"
        return sign

    def _plain(self, atom: Atom) -> str:
        match atom:
            case Read(name=name):
                if name in self.scenario.positive_reads:
                    return "+"
                return "nonzero" if name in self.scenario.nonzero_reads else ""
            case Real(size=size):
                if self.known.implied(size - 1):
                    return "+"
                return "0+" if self.known.implied(size) else ""
            case Apply(name=name):
                return "+" if name in ("exp", "1/pi") else ""
            case Base(base=base):
                return self.of(base)
            case Largest(elements=elements):
                plain = [e for e in elements if not e.bound and not e.domain]
                found = {
                    self.of(each.body) or "0" * (not each.body.terms) for each in plain
                }
                if "+" in found:
                    return "+"
                return "0+" if found & {"0+", "0"} else ""


class Reals:
    """A question about real numbers: atoms are unknowns, the larger of two is a case."""

    def __init__(self, evidence: Evidence, known: Integers) -> None:
        """Take what is known."""
        self.z3 = z3_module()
        self.evidence = evidence
        self.known = known
        self.signs = Signs(evidence.scenario, known)
        self.atoms: list[tuple[Atom, Any]] = []
        self.facts: list[Any] = []

    def zero(self, one: Sum) -> bool:
        """Say whether a sum is 0 for all values of its atoms."""
        if not any(True for _ in self._sets(one)) and not self.evidence.scenario.real_facts:
            return not one.terms
        if any(term.bound or term.domain for term in one.terms):
            return False
        solver = self.z3.Solver()
        solver.set("rlimit", LINEAR_STEPS)
        goal = self.term(one)
        for fact, strict in self.evidence.scenario.real_facts:
            value = self.term(fact)
            solver.add(value > 0 if strict else value >= 0)
        solver.add(*self.facts, goal != 0)
        return bool(solver.check() == self.z3.unsat)

    def _sets(self, one: Sum) -> Iterator[Largest]:
        for term in one.terms:
            for atom, _ in term.factors:
                if isinstance(atom, Largest):
                    yield atom

    def term(self, one: Sum) -> Any:
        """Translate a sum."""
        parts = [self.z3.RealVal(0)]
        for term in one.terms:
            value = self.z3.RealVal(str(term.coefficient))
            if term.bound or term.domain:
                parts.append(
                    value * self.unknown(Base(Sum((Term(Fraction(1), *_rest(term)),))), 1)
                )
                continue
            for atom, power in term.factors:
                value = value * self.power(atom, power)
            parts.append(value)
        return self.z3.Sum(parts)

    def power(self, atom: Atom, power: Fraction) -> Any:
        """Translate a power of an atom."""
        if power.denominator != 1 or power < 0:
            return self.unknown(atom, power)
        value = self.unknown(atom, Fraction(1))
        result = value
        for _ in range(int(power) - 1):
            result = result * value
        return result

    def unknown(self, atom: Atom, power: Fraction | int) -> Any:
        """Return the unknown for a power of an atom; equal atoms have one."""
        power = Fraction(power)
        for (other, exponent), value in self.atoms:  # type: ignore[misc]
            if exponent == power and self.evidence.decider.same_atom(
                other, atom, self.known
            ):
                return value
        value = self.z3.Real(f"r{len(self.atoms)}")
        self.atoms.append(((atom, power), value))  # type: ignore[arg-type]
        sign = self.signs.atom(atom, power)
        facts = {"+": value > 0, "0+": value >= 0, "-": value < 0, "nonzero": value != 0}
        if sign in facts:
            self.facts.append(facts[sign])
        if power == 1 and isinstance(atom, Largest):
            self._define(atom, value)
        if power == -1:
            self.facts.append(value * self.unknown(atom, Fraction(1)) == 1)
        if power == 1 and isinstance(atom, Base):
            self.facts.append(value == self.term(atom.base))
        return value

    def _define(self, atom: Largest, value: Any) -> None:
        if any(each.bound or each.domain for each in atom.elements):
            return
        bodies = [self.term(each.body) for each in atom.elements]
        self.facts.append(self.z3.And([value >= body for body in bodies]))
        self.facts.append(self.z3.Or([value == body for body in bodies]))


def _rest(term: Term) -> tuple[Any, Any, Any]:
    return term.bound, term.domain, term.factors
