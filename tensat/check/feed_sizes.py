"""Sizes to try for the open dimensions of a model's inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeGuard

from tensat.errors import UsageError
from tensat.runtime.messages import Value

Shapes = Mapping[str, tuple[int, ...]]
"""Concrete sizes by input name."""


class Role(Enum):
    """What an open dimension usually means."""

    BATCH = "batch"
    CHANNELS = "channels"
    HEIGHT = "height"
    WIDTH = "width"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class _Scale:
    """One size per role."""

    height: int
    width: int
    length: int
    batch: int = 1
    channels: int = 3

    def of(self, role: Role) -> int:
        result: int = getattr(self, role.value)
        return result


# Heights, widths and lengths that published models take: image classifiers and detectors,
# text lines, tokens, spectrogram frames, samples of sound.
_SCALES = (
    _Scale(224, 224, 16),
    _Scale(320, 320, 64),
    _Scale(64, 64, 128),
    _Scale(48, 48, 512),
    _Scale(32, 32, 576),
    _Scale(48, 320, 256),
    _Scale(64, 160, 32),
    _Scale(48, 192, 80),
    _Scale(32, 128, 1),
    _Scale(256, 256, 1024),
    _Scale(299, 299, 3000),
    _Scale(512, 512, 16000),
    _Scale(640, 640, 8),
    _Scale(28, 28, 4),
    _Scale(224, 224, 16, channels=1),
    _Scale(64, 64, 128, channels=1),
    _Scale(32, 32, 64, batch=2),
    _Scale(64, 64, 128, batch=8),
)
_NAMED = (
    (re.compile(r"batch|^n$|^b$", re.I), Role.BATCH),
    (re.compile(r"chan|^c$", re.I), Role.CHANNELS),
    (re.compile(r"height|^h$", re.I), Role.HEIGHT),
    (re.compile(r"width|^w$", re.I), Role.WIDTH),
    (re.compile(r"seq|len|time|frame|token|sample|past", re.I), Role.LENGTH),
)
_UNKNOWN_RANK = ((), (1,), (1, 16), (1, 16, 16), (1, 3, 32, 32))
_COLOURS = (1, 3, 4)

Dims = tuple[int | str, ...]


def candidate_shapes(
    declared: Sequence[Value], given: Mapping[str, tuple[int, ...]]
) -> Iterator[Shapes]:
    """Yield shapes for all inputs, the likeliest first, none twice.

    Args:
        declared: The inputs; a dimension is a size, a symbol, or open.
        given: Shapes that stay as they are; their symbols hold in other inputs too.
    """
    fixed = known_sizes(declared, given)
    roles = _roles(declared)
    seen = set()
    for other_rank in _UNKNOWN_RANK if any(not v.dims for v in declared) else ((),):
        for scale in _SCALES:
            sizes = {key: scale.of(role) for key, role in roles.items()} | fixed
            shapes = {
                item.name: given.get(item.name)
                or (_concrete(item, sizes) if item.dims else _rankless(item, other_rank))
                for item in declared
            }
            key = tuple(shapes.items())
            if key not in seen:
                seen.add(key)
                yield shapes


def known_sizes(declared: Sequence[Value], shapes: Shapes) -> dict[str, int]:
    """Return the size that each named symbol has in these shapes.

    Raises:
        UsageError: Two inputs give one symbol two sizes.
    """
    result: dict[str, int] = {}
    for item in declared:
        for dim, size in zip(item.dims, shapes.get(item.name, ()), strict=False):
            if not _is_symbol(dim):
                continue
            if result.setdefault(dim, size) != size:
                raise UsageError(
                    f"input shape of {item.name}: {dim} is {size} here and {result[dim]} "
                    "in another input"
                )
    return result


def _is_symbol(dim: int | str | None) -> TypeGuard[str]:
    """Whether equal texts mean equal sizes; exporters write `?` for any size at all."""
    return isinstance(dim, str) and bool(re.search(r"\w", dim)) and dim != "None"


def _keys(item: Value) -> Dims:
    """Return sizes, and for open dimensions the symbol or a name of their own."""
    return tuple(
        dim
        if _is_symbol(dim) or (isinstance(dim, int) and dim >= 0)
        else f"{item.name}[{axis}]"
        for axis, dim in enumerate(item.dims)
    )


def _roles(declared: Sequence[Value]) -> dict[str, Role]:
    result: dict[str, Role] = {}
    for item in declared:
        keys = _keys(item)
        for axis, key in enumerate(keys):
            if isinstance(key, str):
                named = item.dims[axis] == key
                role = _by_name(key) if named else None
                result.setdefault(key, role or _by_place(keys, axis))
    return result


def _by_name(symbol: str) -> Role | None:
    return next((role for pattern, role in _NAMED if pattern.search(symbol)), None)


def _by_place(dims: Dims, axis: int) -> Role:
    """Return what the dimension at this place means in most models."""
    rank = len(dims)
    if axis == 0:
        return Role.BATCH
    if rank >= 4:
        last = dims[-1] in _COLOURS and dims[1] not in _COLOURS
        spatial = range(1, rank - 1) if last else range(2, rank)
        if axis not in spatial:
            return Role.CHANNELS
        return Role.WIDTH if axis == spatial[-1] else Role.HEIGHT
    if rank == 3 and axis == 1 and isinstance(dims[0], int) and isinstance(dims[2], int):
        return Role.BATCH if dims[0] != 1 else Role.LENGTH  # [layers, batch, hidden]
    return Role.LENGTH


def _concrete(item: Value, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(key if isinstance(key, int) else _size(key, sizes) for key in _keys(item))


def _size(key: str, sizes: Mapping[str, int]) -> int:
    """Return the size of a symbol; exporters write sums as `past + sequence`."""
    parts = [part.strip() for part in key.split("+")]
    if len(parts) > 1 and all(part in sizes or part.isdecimal() for part in parts):
        return sum(sizes[part] if part in sizes else int(part) for part in parts)
    return sizes[key]


def _rankless(item: Value, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape for an input that is a scalar, or whose rank is not known."""
    return () if "int" in item.type else shape
