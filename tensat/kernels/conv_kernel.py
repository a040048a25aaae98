"""Which operators around a convolution are computed with it, and with what parameters.

A convolution takes in, one after another: factors and summands that are constant per
channel (folded into weights and bias), one summand of its result's shape, an activation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from rulesets.ops import single
from tensat.costs.source import PRICED_OPSET, Argument, Signature
from tensat.kernels.blocked_steps import input_type, output_type
from tensat.kernels.kernel import Application, Members, Tree

ACTIVATIONS = (
    *("Relu", "LeakyRelu", "Tanh", "Sigmoid", "Clip", "HardSigmoid", "HardSwish"),
)
"""What a convolution on blocked tensors computes with its result."""

_PARAMETERS = {
    "LeakyRelu": ("alpha",),
    "Clip": ("min", "max"),
    "HardSigmoid": ("alpha", "beta"),
}
PER_CHANNEL = (
    ("BatchNormalization", 0), ("Add", 0), ("Add", 1), ("Mul", 0), ("Mul", 1),
)  # fmt: skip
"""Operators per channel, and which of their arguments comes from below."""

_SUM = (("Add", 0), ("Add", 1))
_HARD_SWISH = {"alpha": single(1 / 6), "beta": 0.5}
_LARGEST = 3.4028234663852886e38

type Link = tuple[str, int]
"""An operator, and which of its arguments comes from below."""

type Chain = tuple[Link, ...]
"""The operators above a convolution, from below."""


@dataclass(frozen=True, slots=True)
class ConvKernel:
    """A convolution with what it takes in.

    Attributes:
        conv: The convolution.
        channelwise: What is folded into its weights, in order, each with the position of
            the argument that comes from below.
        summand: Number of the value added to its result, None for none.
        activation: What is done last, "" for nothing.
        parameters: Numbers that the activation needs.
        root: The last operator.
    """

    conv: Application
    channelwise: tuple[tuple[Application, int], ...]
    summand: int | None
    activation: str
    parameters: tuple[float, ...]
    root: Application

    @property
    def channels(self) -> int:
        """Channels of the result."""
        return self.conv.outputs[0].dims[1]

    @property
    def foldable(self) -> bool:
        """Whether weights and bias are known before the model runs."""
        return all(one.constant for one in self.conv.inputs[1:] if one is not None)


def chains() -> Iterator[Chain]:
    """Yield what may stand above a convolution, the empty chain not included."""
    seen: dict[Chain, None] = {}
    for most in (0, 1, 2):
        for links in product(PER_CHANNEL, repeat=most):
            if any(one[0] == other[0] for one, other in pairwise(links)):
                continue
            for added in ((), *[(link,) for link in _SUM]):
                for last in ((), *[((name, 0),) for name in ACTIVATIONS]):
                    seen[(*links, *added, *last)] = None
    del seen[()]
    yield from seen


def tree_of(chain: Chain) -> Tree:
    """Return the pattern of a chain above a convolution."""
    tree = Tree("Conv")
    for op, position in chain:
        tree = Tree(op, ((position, tree),))
    return tree


def read(chain: Chain, members: Members) -> ConvKernel | None:
    """Return the kernel that computes a match of `tree_of`, None if none does."""
    *above, conv = members
    waiting = list(zip(reversed(above), chain, strict=True))
    channelwise: list[tuple[Application, int]] = []
    while waiting and is_channelwise(*waiting[0], conv.outputs[0].dims):
        member, (_, position) = waiting.pop(0)
        channelwise.append((member, position))
    summand = None
    if waiting and waiting[0][1][0] == "Add":
        member, (_, position) = waiting.pop(0)
        if not _is_summand(member, 1 - position, conv):
            return None
        summand = member.children[1 - position]
    activation = ""
    parameters: tuple[float, ...] = ()
    if waiting and waiting[0][1][0] in ACTIVATIONS:
        member, (activation, _) = waiting.pop(0)
        parameters = _parameters(member)
    kernel = ConvKernel(
        conv, tuple(channelwise), summand, activation, parameters, members[0]
    )
    return kernel if not waiting and (kernel.foldable or not channelwise) else None


def gated(chain: Chain) -> tuple[tuple[Tree, bool], ...]:
    """Return the patterns of y times HardSigmoid(y), with y such a chain.

    Returns:
        Each pattern, and whether y is its first argument.
    """
    y = tree_of(chain)
    gate = Tree("HardSigmoid", ((0, y),))
    return (
        (Tree("Mul", ((0, y), (1, gate))), True),
        (Tree("Mul", ((0, gate), (1, y))), False),
    )


def read_gated(chain: Chain, first: bool, members: Members) -> ConvKernel | None:
    """Return the kernel that computes a match of one of `gated`, None if none does."""
    count = len(chain) + 1
    if first:
        y, gate, again = members[1 : 1 + count], members[1 + count], members[2 + count :]
    else:
        gate, y, again = members[1], members[2 : 2 + count], members[2 + count :]
    numbers = {name: gate.attributes[name] for name in _HARD_SWISH}
    if y != again or numbers != _HARD_SWISH:
        return None
    kernel = read(chain, y)
    if kernel is None or kernel.activation:
        return None
    return ConvKernel(
        kernel.conv, kernel.channelwise, kernel.summand, "HardSwish", (), members[0]
    )


def made_plain(kernel: ConvKernel) -> tuple[Signature, ...] | None:
    """Return what the runtime runs on plain tensors; None if it does not fuse all of it.

    It adds a tensor within the convolution only if that has a bias, and if its channels
    and the sizes of its image are numbers.
    """
    conv = kernel.conv
    usual = all(folded_by_runtime(*one, conv) for one in kernel.channelwise)
    if kernel.activation == "HardSwish" or not usual:
        return None
    inputs = list(conv.inputs[:3])
    shifted = any(member.op != "Mul" for member, _ in kernel.channelwise)
    if shifted and (len(inputs) < 3 or inputs[2] is None):
        inputs[2:] = [Argument("float32", (kernel.channels,), constant=True)]
    if kernel.summand is not None:
        shape = output_type(conv).shape or ()
        fixed = all(isinstance(size, int) for size in shape[1:])
        if not fixed or len(inputs) < 3 or inputs[2] is None:
            return None
        inputs.append(conv.outputs[0])
    outputs = kernel.root.outputs
    if not kernel.activation and kernel.summand is None:
        attributes = tuple(sorted(conv.attributes.items()))
        return (Signature("Conv", attributes, tuple(inputs), outputs, PRICED_OPSET),)
    if any(one is not None and one.dtype != "float32" for one in inputs):
        return None
    attributes = tuple(sorted(onnx_attributes(kernel).items()))
    return (
        Signature(
            "com.microsoft:FusedConv", attributes, tuple(inputs), outputs, PRICED_OPSET
        ),
    )


def onnx_attributes(kernel: ConvKernel) -> dict[str, object]:
    """Return the attributes of the runtime's node, its activation among them."""
    conv = kernel.conv
    weights = conv.inputs[1]
    assert weights is not None
    names = ("strides", "pads", "dilations", "group")
    found = {name: conv.attributes[name] for name in names}
    found["kernel_shape"] = weights.dims[2:]
    return found | _activation(kernel.activation, kernel.parameters)


def activation_of(member: Application) -> dict[str, object]:
    """Return the attributes by which a runtime's node computes an activation."""
    return _activation(member.op, _parameters(member))


def folded_by_runtime(member: Application, position: int, conv: Application) -> bool:
    """Return whether the runtime folds an operator per channel into the weights.

    It wants the constant of a product or sum behind the convolution's result, and as
    [o, 1, …] or [1, o, 1, …], or the factor as a number of rank 0.
    """
    if member.op == "BatchNormalization":
        return True
    if position != 0:
        return False
    dims = _other(member, position).dims
    rank = len(conv.outputs[0].dims)
    if member.op == "Mul" and not dims:
        return True
    return len(dims) >= rank - 1 and dims[1 - rank] == conv.outputs[0].dims[1]


def _other(member: Application, position: int) -> Argument:
    found = member.inputs[1 - position]
    assert found is not None
    return found


def is_channelwise(member: Application, link: Link, dims: Sequence[int]) -> bool:
    """Return whether an operator is a constant factor or summand per channel.

    Args:
        member: The operator.
        link: What it is in its chain.
        dims: Sizes of its result, [n, c, ...].
    """
    op, position = link
    if op == "BatchNormalization":
        return all(one is not None and one.constant for one in member.inputs[1:])
    if op not in {"Add", "Mul"}:
        return False
    other = _other(member, position)
    found = (*[1] * (len(dims) - len(other.dims)), *other.dims)
    fits = len(found) == len(dims) and found[1] in {1, dims[1]}
    return other.constant and fits and all(d == 1 for d in (*found[:1], *found[2:]))


def _is_summand(member: Application, position: int, conv: Application) -> bool:
    other = member.inputs[position]
    assert other is not None
    return not other.constant and input_type(member, position) == output_type(conv)


def _activation(name: str, parameters: tuple[float, ...]) -> dict[str, object]:
    found: dict[str, object] = {"activation": name} if name else {}
    return found | ({"activation_params": parameters} if parameters else {})


def _parameters(member: Application) -> tuple[float, ...]:
    names = _PARAMETERS.get(member.op, ())
    found = []
    for name in names:
        value = member.attributes[name]
        assert isinstance(value, float)
        # The runtime's own bounds where there is none.
        found.append(max(-_LARGEST, min(value, _LARGEST)))
    return tuple(found)
