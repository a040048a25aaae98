"""From the text of a signature back to the signature, and to what a person wants to read.

Tables hold texts only. To scale estimates by a table's own costs its operators must be
estimated, too, and for that they must be known by more than their text. What does not read
back to the same text is let go: such a row still answers for its own signature.
"""

from __future__ import annotations

import ast
import re

from tensat.costs.source import Argument, Signature

_WHOLE = re.compile(r"([^@]+)@(\d+)\[(.*)\]\((.*)\)->\((.*)\)", re.DOTALL)
_ARGUMENT = re.compile(r"(\w+)\[([\dx]*)\](c?)(?:=(.+))?")
_COMMA = re.compile(r",(?=\w+\[|-(?:,|$))")
_SHORT = {
    "float": "f",
    "bfloat": "bf",
    "uint": "u",
    "int": "i",
}


def operator_of(text: str) -> str:
    """Return the operator that a signature's text begins with."""
    return re.split(r"[@\[(]", text, maxsplit=1)[0]


def parse(text: str) -> Signature | None:
    """Return the signature with this text; None if there is none."""
    match = _WHOLE.fullmatch(text)
    if match is None:
        return None
    op, opset, attributes, inputs, outputs = match.groups()
    try:
        found = Signature(
            op,
            _attributes(attributes),
            _arguments(inputs),
            tuple(a for a in _arguments(outputs) if a is not None),
            int(opset),
        )
    except (ValueError, SyntaxError):
        return None
    return found if found.text() == text else None


def shorten(text: str) -> str:
    """Return a signature for reading: `Conv@17 f32[1x3x8x8] f32[16x3x3x3]c group=1`."""
    signature = parse(text)
    if signature is None:
        return text
    inputs = ["-" if a is None else _short(a) for a in signature.inputs]
    values = (
        f"{name}={_plain(value)}" for name, value in signature.attributes if value != ()
    )
    return " ".join([f"{signature.op}@{signature.opset}", *inputs, *values])


def _attributes(text: str) -> tuple[tuple[str, object], ...]:
    """Read `name=value,…` as Python reads the arguments of a call."""
    call = ast.parse(f"f({text})", mode="eval").body
    if not isinstance(call, ast.Call) or call.args:
        raise ValueError(text)
    return tuple((word.arg or "", ast.literal_eval(word.value)) for word in call.keywords)


def _arguments(text: str) -> tuple[Argument | None, ...]:
    return tuple(_argument(part) for part in _COMMA.split(text)) if text else ()


def _argument(text: str) -> Argument | None:
    if text == "-":
        return None
    match = _ARGUMENT.fullmatch(text)
    if match is None:
        raise ValueError(text)
    dtype, dims, constant, value = match.groups()
    sizes = tuple(int(size) for size in dims.split("x")) if dims else ()
    return Argument(dtype, sizes, bool(constant), None if value is None else float(value))


def _short(argument: Argument) -> str:
    dtype = argument.dtype
    for long, short in _SHORT.items():
        if dtype.startswith(long):
            dtype = short + dtype.removeprefix(long)
            break
    value = "" if argument.value is None else f"={argument.value:g}"
    dims = "x".join(map(str, argument.dims))
    return f"{dtype}[{dims}]{'c' if argument.constant else ''}{value}"


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_plain, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
