"""Fingerprints: one 64-bit number for the values of a term at a few random points.

Exact families have integers in [-3, 3] as inputs and values below 2**53, so equal terms
have equal bits and no modulus is needed: order survives, and relu, max and pools keep their
meaning. Families with quotients and exponentials (`exact` false) have real inputs; values
are rounded to a grid relative to the largest one before they are hashed. A collision, or a
difference lost in the grid, does no harm: every candidate is proved later.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from rulesets.ground import Ground, Leaf, Node, numbers, resize
from rulesets.kernels import Array, apply, part

POINTS = 3
"""Independent evaluation points."""

SIGNS = np.array([[-1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0, -1.0]])
"""Signs of a scalar at the points; neighbours differ, so their product changes sign too."""

LARGEST = 2.0**53
GRID = 2.0**27
_LIFT = 1.37  # keeps the scale off powers of two, where rounding would flip it

type Hashes = npt.NDArray[np.uint64]


def inputs(
    leaves: tuple[Leaf, ...], env: Mapping[str, int], *, exact: bool, seed: int
) -> dict[Leaf, Array]:
    """Return random values [1, points, *shape] for leaves; both signs at every point.

    A scalar is negative at one point and positive at others, so that a law which needs
    its sign fails.
    """
    generator = np.random.default_rng(seed)
    result: dict[Leaf, Array] = {}
    for leaf in leaves:
        shape = (1, POINTS, *numbers(leaf.shape, env))
        if exact:
            value = generator.integers(-3, 4, shape).astype(np.float64)
        else:
            value = generator.standard_normal(shape) + 0.0625
        if not leaf.shape:
            signs = SIGNS[len(result) % len(SIGNS)]
            value = signs * (np.abs(value) + (1 if exact else 0.1))
            value = np.where(np.abs(value) == 1, 2 * value, value)
        result[leaf] = np.abs(value) + 0.1 if leaf.sign != "any" else value
    return result


def hashes(values: Array, *, exact: bool) -> tuple[Hashes, npt.NDArray[np.bool_]]:
    """Hash each term of a batch.

    Returns:
        One number for each term, and whether its values can be told exactly.
    """
    flat = np.ascontiguousarray(values).reshape(len(values), -1)
    largest = np.abs(flat).max(1, initial=0.0)
    usable = largest < LARGEST  # false for NaN too
    if exact:
        bits = (flat + 0.0).view(np.uint64)  # + 0.0: one zero only
    else:
        with np.errstate(all="ignore"):
            scale = np.exp2(np.ceil(np.log2(np.maximum(largest, 1.0) * _LIFT)))
            rounded = np.rint(flat * (GRID / scale)[:, None])
            bits = np.where(usable[:, None], rounded, 0.0).astype(np.int64).view(np.uint64)
            bits = bits + scale.view(np.uint64)[:, None]
    return _mix(bits), usable


def _mix(bits: npt.NDArray[np.uint64]) -> Hashes:
    one = np.uint64(0x9E3779B97F4A7C15)
    two = np.uint64(0xBF58476D1CE4E5B9)
    columns = np.arange(1, bits.shape[1] + 1, dtype=np.uint64)
    weights = (columns * one) ^ ((columns * two) >> np.uint64(29)) | np.uint64(1)
    x = bits * two
    x ^= x >> np.uint64(32)
    x *= one
    x ^= x >> np.uint64(29)
    total: Hashes = (x * weights).sum(1, dtype=np.uint64)
    return total


def value_of(term: Ground, env: Mapping[str, int], values: Mapping[Leaf, Array]) -> Array:
    """Evaluate a term; `values` has one entry for each of its leaves.

    Args:
        term: The term.
        env: Values for the symbols of its sizes.
        values: [terms, points, *shape] for each leaf.
    """
    known: dict[Ground, Array] = {}

    def value(one: Ground) -> Array:
        if isinstance(one, Leaf):
            return values[one]
        if one not in known:
            known[one] = computed(one)
        return known[one]

    def computed(one: Node) -> Array:
        plain = resize(Node(one.op, one.attributes), env)
        assert isinstance(plain, Node)
        attributes = dict(plain.attributes)
        if one.op == "Output":
            (split,) = one.arguments
            assert isinstance(split, Node)
            inner = resize(Node(split.op, split.attributes), env)
            assert isinstance(inner, Node)
            index = attributes["index"]
            assert isinstance(index, int)
            return part(dict(inner.attributes), index, value(split.arguments[0]))
        return apply(one.op, attributes, *(value(argument) for argument in one.arguments))

    with np.errstate(all="ignore"):
        return value(term)


def same(one: Array, other: Array) -> bool:
    """Say whether two values agree up to rounding; NaN agrees with nothing."""
    if one.shape[2:] != other.shape[2:]:
        return False
    one, other = np.broadcast_arrays(one, other)
    scale = max(float(np.abs(one).max(initial=0.0)), 1.0)
    return bool(np.all(np.abs(one - other) <= 1e-9 * scale))
