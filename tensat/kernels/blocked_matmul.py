"""Matrix products of few rows as convolutions of one pixel on blocks.

The runtime's product of few rows by a matrix of weights waits for the weights; packed for
a convolution they stream faster. Rows are the pixels of one image. Arguments and result
are plain: only weights are packed, and few rows are quickly moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from rulesets.tensor import Tensor
from tensat.kernels.blocked_steps import (
    Steps,
    arguments_of,
    fill_up,
    laid,
    output_type,
    pack_pairs,
    up,
)
from tensat.kernels.conv_kernel import activation_of
from tensat.kernels.kernel import (
    Application,
    BlockedForm,
    Fusion,
    Layout,
    Members,
    StepRef,
    Tree,
)
from tensat.onnx_forms.call import Absent

MOST_ROWS = 8
"""Rows from which on the runtime's own product is as fast."""

_ACTIVATIONS = ("Relu", "Tanh", "Sigmoid")
_PIXEL: dict[str, object] = {
    "kernel_shape": (1, 1),
    "strides": (1, 1),
    "pads": (0, 0, 0, 0),
    "dilations": (1, 1),
    "group": 1,
}


@dataclass(frozen=True, slots=True)
class Product:
    """A product of rows by weights, and what is computed with it.

    Attributes:
        product: The MatMul or Gemm.
        rows: Number of rows.
        inner: Numbers in a row.
        outer: Numbers in a row of the result.
        transposed: Whether the weights are [outer, inner].
        bias: Number of the value that is added to each row, None for none.
        activation: Attributes of the activation.
    """

    product: Application
    rows: int
    inner: int
    outer: int
    transposed: bool
    bias: int | None
    activation: dict[str, object]


def read(members: Members) -> Product | None:
    """Return the product that operators following each other are, None if they are none."""
    *above, product = members
    activation: dict[str, object] = {}
    if above and above[0].op in _ACTIVATIONS:
        activation = activation_of(above.pop(0))
    weights = _weights(product)
    if weights is None:
        return None
    transposed = bool(product.attributes.get("transB"))
    inner, outer = weights[::-1] if transposed else weights
    rows = prod(product.outputs[0].dims[:-1])
    if not 0 < rows <= MOST_ROWS or inner < 1 or outer < 1:
        return None
    places = [(product, 2)] if len(product.inputs) > 2 else []
    places += [(one, 1 - one.children.index(product.value)) for one in above]
    if len(places) > 1 or not all(_is_bias(*place, outer) for place in places):
        return None
    bias = next((member.children[place] for member, place in places), None)
    return Product(product, rows, inner, outer, transposed, bias, activation)


def _weights(product: Application) -> tuple[int, int] | None:
    """Return the sizes of a matrix of weights, None if rows are not multiplied by one."""
    x, weights = product.inputs[:2]
    assert x is not None
    assert weights is not None
    fixed = all(isinstance(size, int) for size in output_type(product).shape or ())
    if not fixed or weights.dtype != "float32" or not weights.constant or x.constant:
        return None
    if len(weights.dims) != 2 or len(x.dims) < 2:
        return None
    given = product.attributes
    usual = (given.get("alpha", 1.0), given.get("beta", 1.0)) == (1.0, 1.0)
    return weights.dims[:2] if usual and not given.get("transA") else None


def few_rows(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return how a product of few rows runs as a convolution."""
    found = read(members)
    if found is None:
        return ()
    layouts, steps = laid(arguments_of(members), (), block)
    weights: StepRef = steps.value(found.product.children[1])
    if not found.transposed:
        weights = steps.add("Transpose", [weights], perm=(1, 0))
    weights = steps.add("Reshape", [weights], shape=(found.outer, found.inner, 1, 1))
    weights = pack_pairs(steps, weights, block)
    bias: StepRef = Absent()
    filled = up(found.outer, block)
    if found.bias is not None:
        vector = steps.add("Reshape", [steps.value(found.bias)], shape=(found.outer,))
        bias = fill_up(steps, vector, (filled,))
    x = _as_pixels(steps, steps.value(found.product.children[0]), found, block)
    output = Tensor("float32", (1, filled, 1, found.rows))
    y = steps.foreign("Conv", (x, weights, bias), output, _PIXEL | found.activation)
    _as_rows(steps, y, found, output_type(members[0]), block)
    return (BlockedForm(layouts, tuple(steps.done), by_runtime=False, result=Layout.PLAIN),)


def _as_pixels(steps: Steps, x: StepRef, found: Product, block: int) -> StepRef:
    """Append what makes rows the pixels of a blocked image."""
    rows, filled = found.rows, up(found.inner, block)
    flat: StepRef = steps.add("Reshape", [x], shape=(rows, found.inner))
    flat = fill_up(steps, flat, (rows, filled))
    if rows > 1:
        split = steps.add("Reshape", [flat], shape=(rows, filled // block, block))
        flat = steps.add("Transpose", [split], perm=(1, 0, 2))
    return steps.add("Reshape", [flat], shape=(1, filled, 1, rows))


def _as_rows(steps: Steps, y: StepRef, found: Product, result: Tensor, block: int) -> None:
    """Append what makes the pixels of a blocked image rows again."""
    rows, filled = found.rows, up(found.outer, block)
    if rows > 1:
        split = steps.add("Reshape", [y], shape=(filled // block, rows, block))
        y = steps.add("Transpose", [split], perm=(1, 0, 2))
    flat = steps.add("Reshape", [y], shape=(rows, filled))
    if filled > found.outer:
        cut = {"axes": (1,), "starts": (0,), "ends": (found.outer,), "steps": (1,)}
        flat = steps.add("Slice", [flat], **cut)
    steps.add("Reshape", [flat], shape=result.shape)


def _is_bias(member: Application, place: int, outer: int) -> bool:
    """Return whether an argument is a constant number for each column."""
    bias = member.inputs[place]
    if bias is None or not bias.constant or len(bias.dims) > len(member.outputs[0].dims):
        return False
    return bias.dims[-1:] == (outer,) and prod(bias.dims) == outer


def _trees() -> Iterator[tuple[str, Tree]]:
    """Yield the products with what is computed with them, at least two operators."""
    for product in ("MatMul", "Gemm"):
        alone = Tree(product)
        bodies = [(product, alone)]
        if product == "MatMul":
            bodies += [(f"{product}+Add", Tree("Add", ((at, alone),))) for at in (0, 1)]
        for name, body in bodies:
            if body is not alone:
                yield name, body
            for last in _ACTIVATIONS:
                yield f"{name}+{last}", Tree(last, ((0, body),))


def _nothing(members: Members) -> None:
    """Say nothing of plain kernels: other fusions do."""


BLOCKED_MATMUL: tuple[Fusion, ...] = tuple(
    [Fusion(f"{name} as Conv", tree, _nothing, few_rows) for name, tree in _trees()]
)
"""Products of few rows with what is computed with them, at least two operators each."""
