"""Operators and rules that a user brings along; rules are proved before they are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rulesets.errors import MissingLibraryError, OperatorError, RulesetsError
from rulesets.ops import Operator, extended, operators_of
from rulesets.rule import Rule
from rulesets.store import parse_file
from tensat.errors import UsageError

SECONDS = 20.0
"""Processor time that one proof may take."""


def operators_in(paths: Sequence[Path]) -> tuple[Operator, ...]:
    """Run Python files and return the operators they specify.

    Raises:
        UsageError: One fails, or has no ``OPERATORS``.
    """
    try:
        return tuple(one for path in paths for one in operators_of(str(path)))
    except OperatorError as error:
        raise UsageError(str(error)) from error


@contextmanager
def own_operators(operators: Sequence[Operator]) -> Iterator[None]:
    """Know more operators inside the block.

    Raises:
        UsageError: A name is taken.
    """
    try:
        with extended(*operators):
            yield
    except OperatorError as error:
        raise UsageError(str(error)) from error


def own_rules(paths: Sequence[Path], taken: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules of files; each is proved at all sizes, now.

    Args:
        paths: Rule files.
        taken: Rules whose names are taken.

    Raises:
        UsageError: A file cannot be read, a rule is wrong, or is not proved.
    """
    names = {rule.name for rule in taken}
    found = []
    for rule in (rule for path in paths for rule in _parsed(path)):
        if rule.name in names:
            raise UsageError(f"a rule {rule.name!r} is there already; give another name")
        names.add(rule.name)
        found.append(_proved(rule))
    return tuple(found)


def _parsed(path: Path) -> tuple[Rule, ...]:
    try:
        return parse_file(path.read_text(encoding="utf-8"), path.name)
    except OSError as error:
        raise UsageError(
            f"the rules '{path}' cannot be read: {error.strerror or error}"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the rules '{path}' cannot be read: {error}") from error
    except RulesetsError as error:
        raise UsageError(str(error)) from error


def _proved(rule: Rule) -> Rule:
    """Return a rule with its verdict."""
    from rulesets.verify import verify

    try:
        verdict = verify(rule, seconds=SECONDS)
    except MissingLibraryError as error:
        raise UsageError(f"own rules are proved before use; {error}") from error
    if verdict.tier != "all-sizes":
        why = verdict.counterexample or verdict.reason
        raise UsageError(f"rule {rule.name!r} is {verdict.tier}, not proved: {why}")
    return replace(rule, verdict=verdict.tier, ranks=verdict.ranks)
