"""The table of known operators, and how a caller adds its own for a while."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from runpy import run_path
from types import MappingProxyType

from rulesets.errors import OperatorError
from rulesets.ops import conv, elementwise, generators, layout, linear, norm
from rulesets.ops.spec import Operator

_BUILT_IN: Mapping[str, Operator] = {
    operator.name: operator
    for module in (elementwise, linear, conv, norm, layout, generators)
    for operator in module.OPERATORS
}
_KNOWN = dict(_BUILT_IN)
OPERATORS: Mapping[str, Operator] = MappingProxyType(_KNOWN)
"""All operators by name; inside `extended` also those of the caller."""


@contextmanager
def extended(*operators: Operator) -> Iterator[None]:
    """Know more operators inside the block, in the whole process.

    Args:
        operators: Specifications, named as the ONNX operators they are.

    Raises:
        OperatorError: A name is taken.
    """
    for operator in operators:
        if operator.name in _KNOWN:
            raise OperatorError(
                f"operator {operator.name!r} is specified already; "
                "another specification needs another name"
            )
    _KNOWN.update((operator.name, operator) for operator in operators)
    try:
        yield
    finally:
        for operator in operators:
            _KNOWN.pop(operator.name, None)


def added(name: str) -> bool:
    """Say whether an operator is known that does not belong to the package."""
    return name in _KNOWN and name not in _BUILT_IN


def operators_of(path: str) -> tuple[Operator, ...]:
    """Run a Python file and return its ``OPERATORS``.

    Raises:
        OperatorError: It fails, or has no such tuple of specifications.
    """
    try:
        found = run_path(path).get("OPERATORS")
    except Exception as error:  # whatever the caller's file raises
        raise OperatorError(f"{path} cannot be run: {error!r}") from error
    if not isinstance(found, tuple) or not all(isinstance(x, Operator) for x in found):
        raise OperatorError(
            f"{path} must hold OPERATORS = (…,) with specifications; found {found!r}"
        )
    return found
