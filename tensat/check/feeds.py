"""Random inputs with which a model runs: sizes for open dimensions, values for inputs.

A file says little about its open dimensions: a symbol or nothing. So candidates are tried
in the runtime until one runs: first what such a dimension usually means (batch 1, an
image's sides, a sequence), then other sizes, and for each of them other kinds of values,
since an integer may index a table, be a mask or a sampling rate. The same model gets the
same sizes, and the same seed the same values.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from tensat.check.feed_sizes import Shapes, candidate_shapes, known_sizes
from tensat.check.feed_values import STYLES, Style, value
from tensat.errors import ExecutionError, UsageError, one_line
from tensat.runtime import Failure, FailureKind, Feeds, Level, Program, Runtime, Value

__all__ = ["Inputs", "find_inputs", "parse_input_shapes"]

_ATTEMPTS = 120
_SECONDS_EACH = 60.0


@dataclass(frozen=True, slots=True)
class Inputs:
    """Sizes and kinds of values with which a model runs.

    Attributes:
        declared: The inputs without a default, as the runtime sees them.
        shapes: Concrete sizes by input name.
        sizes: The size of each named symbol of the inputs' shapes.
        style: The kind of values.
        attempts: How many candidates were tried.
    """

    declared: tuple[Value, ...]
    shapes: Shapes
    sizes: Mapping[str, int]
    style: Style
    attempts: int = 1

    def feeds(self, seed: int) -> Feeds:
        """Return values for every input; the same for the same seed."""
        return _feeds(self.declared, self.shapes, self.style, seed)


def parse_input_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return shapes by name from texts such as `image:1,3,224,224`; `sr:` is a scalar.

    Raises:
        UsageError: A text has another form, or a name occurs twice.
    """
    result: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, colon, sizes = text.rpartition(":")
        parts = [part.strip() for part in sizes.split(",")] if sizes.strip() else []
        if not colon or not name or not all(part.isdecimal() for part in parts):
            raise UsageError(
                f"input shape {text!r} is not NAME:SIZE,SIZE,… such as image:1,3,224,224"
            )
        if name in result:
            raise UsageError(f"input shape of {name!r} is given twice")
        result[name] = tuple(map(int, parts))
        if 0 in result[name]:
            raise UsageError(f"input shape {text!r} has a size of 0; sizes are 1 and more")
    return result


def find_inputs(
    runtime: Runtime,
    path: str,
    given: Mapping[str, tuple[int, ...]] | None = None,
    seeds: Sequence[int] = (0, 1),
) -> Inputs:
    """Return inputs with which the model of a file runs, for each of some seeds.

    Args:
        runtime: Where candidates are tried.
        path: The model's file.
        given: Shapes that the user prescribes, by input name.
        seeds: The model must run on the values of each.

    Raises:
        UsageError: A given shape names no input, or contradicts what the model declares.
        ExecutionError: The runtime cannot load the model, or no candidate runs; the text
            says what was tried.
    """
    program = Program(path, Level.NONE)
    loaded = runtime.load(program)
    if isinstance(loaded, Failure):
        raise ExecutionError(f"the runtime cannot load the model: {loaded}")
    declared = loaded.inputs
    _check(declared, given or {})
    tried: list[tuple[Shapes, str]] = []
    fallback: Inputs | None = None
    for shapes, style in islice(_candidates(declared, given or {}), _ATTEMPTS):
        sizes = known_sizes(declared, shapes)
        found = Inputs(declared, shapes, sizes, style, len(tried) + 1)
        problem = _problem(runtime, program, found, seeds)
        if problem is None:
            return found
        if problem is _MEANINGLESS:
            fallback = fallback or found
        tried.append((shapes, str(problem)))
    if fallback is not None:
        return fallback
    raise ExecutionError(_nothing_runs(tried))


_MEANINGLESS = Failure(FailureKind.ERROR, "it runs, but no output has a finite number")


def _candidates(
    declared: Sequence[Value], given: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[Shapes, Style]]:
    """Yield shapes with values; unusual values cost as much as three unusual shapes."""
    shapes = list(candidate_shapes(declared, given))
    styles = [style for style in STYLES if _matters(style, declared)]
    places = [(i, k) for i in range(len(shapes)) for k in range(len(styles))]
    for i, k in sorted(places, key=lambda place: (place[0] + 3 * place[1], place[1])):
        yield shapes[i], styles[k]


def _matters(style: Style, declared: Sequence[Value]) -> bool:
    if style is STYLES[0]:
        return True
    kinds = {"f" if "float" in v.type or "double" in v.type else "i" for v in declared}
    return bool(kinds & set(style.kinds))


def _problem(
    runtime: Runtime, program: Program, inputs: Inputs, seeds: Sequence[int]
) -> Failure | None:
    """Return None if the model runs on every seed and gives a number at least."""
    telling = False
    for seed in seeds:
        try:
            feeds = inputs.feeds(seed)
        except UsageError as error:
            raise ExecutionError(str(error)) from error
        outputs = runtime.run(program, feeds, timeout=_SECONDS_EACH)
        if isinstance(outputs, Failure):
            return outputs
        telling = telling or any(map(_says_something, outputs))
    return None if telling else _MEANINGLESS


def _says_something(output: object) -> bool:
    """Whether an output has elements, and finite ones if they are floats."""
    if not isinstance(output, np.ndarray):
        return bool(output)
    if output.dtype.kind == "f":
        return bool(np.isfinite(output).any())
    return output.size > 0


def _feeds(declared: Sequence[Value], shapes: Shapes, style: Style, seed: int) -> Feeds:
    result: Feeds = {}
    for item in declared:
        rng = np.random.default_rng([seed, zlib.crc32(item.name.encode())])
        result[item.name] = value(item, shapes[item.name], style, rng)
    return result


def _check(declared: Sequence[Value], given: Mapping[str, tuple[int, ...]]) -> None:
    by_name = {item.name: item for item in declared}
    for name, shape in given.items():
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise UsageError(f"input shape for {name!r}: no such input; inputs: {known}")
        dims = by_name[name].dims
        fits = len(dims) == len(shape) and all(
            not isinstance(dim, int) or dim < 0 or dim == size
            for dim, size in zip(dims, shape, strict=True)
        )
        if dims and not fits:
            text = ",".join("?" if dim is None else str(dim) for dim in dims)
            asked = ",".join(map(str, shape))
            raise UsageError(f"input shape {name}:{asked}: the model declares {text}")


def _nothing_runs(tried: Sequence[tuple[Shapes, str]]) -> str:
    if not tried:
        return "no inputs can be made for this model"
    shapes, problem = tried[0]
    first = "; ".join(f"{name}:{','.join(map(str, s))}" for name, s in shapes.items())
    kinds = len({tuple(sorted(shapes.items())) for shapes, _ in tried})
    return one_line(
        f"the model ran on none of {len(tried)} random inputs ({kinds} shapes, first "
        f"{first}): {one_line(problem, 160)}; give --input-shape NAME:SIZE,SIZE,…",
        500,
    )
