"""Steps of kernels that run on blocked tensors, and how weights are packed for them.

A blocked tensor of c channels, b of them in a block, is [n, up(c), h, w] to the runtime,
with up(c) the next multiple of b; in memory it is [n, up(c)/b, h, w, b]. Weights lie in
blocks as well; packing them is written with canonical operators on constants, which are
computed when the model is written.

Source: layouts and attributes as ONNX Runtime's NCHWc transformer writes them
(`com.microsoft.nchwc`, version 1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rulesets.ops import OPERATORS, complete, freeze
from rulesets.size import Size
from rulesets.tensor import Tensor
from tensat.costs.source import Argument
from tensat.kernels.kernel import Application, Layout, Members, Step, StepRef
from tensat.onnx_forms.call import Absent, Arg, Node

NCHWC = "com.microsoft.nchwc"
"""Domain of the operators on blocked tensors."""


def up(channels: int, block: int) -> int:
    """Return the channels of a tensor whose last block is filled up."""
    return -(-channels // block) * block


def blocked_type(plain: Tensor, block: int) -> Tensor:
    """Return a blocked tensor's type, as the runtime sees it, from the plain one's."""
    n, channels, *spatial = plain.shape or ()
    assert isinstance(channels, int)
    return Tensor(plain.dtype, (n, up(channels, block), *spatial))


def type_of(argument: Argument) -> Tensor:
    """Return the type at concrete sizes."""
    return Tensor(argument.dtype, argument.dims)


def input_type(member: Application, position: int) -> Tensor:
    """Return the type of an argument, symbolic where the model's is.

    The argument must not be absent.
    """
    symbolic = member.types[position] if member.types else None
    argument = member.inputs[position]
    assert argument is not None
    return type_of(argument) if symbolic is None else symbolic


def output_type(member: Application) -> Tensor:
    """Return the type of the result, symbolic where the model's is."""
    return member.results[0] if member.results else type_of(member.outputs[0])


def is_image(tensor: Tensor) -> bool:
    """Return whether a tensor can be blocked: float32 [n, c, h, w], c a number > 0."""
    shape = tensor.shape
    if tensor.dtype != "float32" or shape is None or len(shape) != 4:
        return False
    return isinstance(shape[1], int) and shape[1] > 0


def arguments_of(members: Members) -> Arguments:
    """Return the arguments of a kernel, in order.

    Returns:
        For the number of each value its position, its type, and whether it is constant.
    """
    made = {member.value for member in members[1:]}
    found: dict[int, tuple[int, Tensor, bool]] = {}
    for member in members:
        for place, (child, known) in enumerate(
            zip(member.children, member.inputs, strict=True)
        ):
            if known is not None and child not in made and child not in found:
                found[child] = (len(found), input_type(member, place), known.constant)
    return found


type Arguments = Mapping[int, tuple[int, Tensor, bool]]
"""Of a kernel, as `arguments_of` gives them."""


def laid(
    arguments: Arguments, blocked: Collection[int], block: int
) -> tuple[tuple[Layout, ...], Steps]:
    """Return the layouts of a kernel's arguments, and steps that begin with those.

    Args:
        arguments: The arguments.
        blocked: Numbers of the values that are taken blocked.
        block: Channels in a block.
    """
    layouts, types = [], {}
    for number, (place, tensor, constant) in arguments.items():
        layouts.append(Layout.BLOCKED if number in blocked else Layout.PLAIN)
        lies = blocked_type(tensor, block) if number in blocked else tensor
        types[number] = (place, lies, constant)
    return tuple(layouts), Steps(types)


class Steps:
    """A list of steps under construction.

    Attributes:
        done: The steps so far.
    """

    def __init__(self, arguments: Arguments) -> None:
        """Begin a kernel with arguments as they lie in memory."""
        self.done: list[Step] = []
        self._arguments = arguments
        self._types = {at: (kind, const) for at, kind, const in arguments.values()}

    def value(self, number: int) -> Arg:
        """Return the argument that is the value of that number."""
        return Arg(self._arguments[number][0])

    def shape(self, ref: StepRef) -> tuple[Size, ...]:
        """Return the shape of an argument or of a step's result."""
        tensor, _ = self._known(ref)
        assert tensor.shape is not None
        return tensor.shape

    def add(self, op: str, inputs: Sequence[StepRef], **attributes: object) -> Node:
        """Append a canonical operator; attributes left out have their defaults."""
        operator = OPERATORS[op]
        given = complete(operator, attributes)  # type: ignore[arg-type]
        known = [self._known(ref) for ref in inputs]
        (output,) = operator.infer(given, tuple([tensor for tensor, _ in known]))
        constant = all(const for _, const in known)
        self.done.append(Step(op, freeze(given), tuple(inputs), output, constant))
        return Node(len(self.done) - 1)

    def foreign(
        self,
        op: str,
        inputs: Sequence[StepRef],
        output: Tensor,
        attributes: Mapping[str, object],
    ) -> Node:
        """Append an operator on blocks, or ``domain:Type``.

        Trailing absent inputs are left out.
        """
        name = op if ":" in op else f"{NCHWC}:{op}"
        return self.typed(name, inputs, output, attributes)

    def typed(
        self,
        op: str,
        inputs: Sequence[StepRef],
        output: Tensor,
        attributes: Mapping[str, object],
    ) -> Node:
        """Append an operator whose result has a type that is known otherwise."""
        present = list(inputs)
        while isinstance(present[-1], Absent):
            present.pop()
        self.done.append(Step(op, freeze(attributes), tuple(present), output))  # type: ignore[arg-type]
        return Node(len(self.done) - 1)

    def _known(self, ref: StepRef) -> tuple[Tensor, bool]:
        if isinstance(ref, Arg):
            return self._types[ref.position]
        assert isinstance(ref, Node)
        step = self.done[ref.index]
        return step.output, step.constant


def fill_up(steps: Steps, ref: StepRef, sizes: Sequence[Size]) -> StepRef:
    """Append zeros behind a tensor's elements until it has the given sizes.

    Sizes may be symbolic where nothing is appended.
    """
    missing = [
        0 if want == have else _number(want) - _number(have)
        for have, want in zip(steps.shape(ref), sizes, strict=True)
    ]
    if not any(missing):
        return ref
    return steps.add("Pad", [ref], pads=(*[0] * len(sizes), *missing))


def pack_pairs(steps: Steps, weights: StepRef, block: int) -> StepRef:
    """Pack weights [o, i, kh, kw] for blocked inputs and outputs ("OIHWBiBo").

    Returns:
        The weights as they are stored, [up(o), up(i), kh, kw].
    """
    o, i, kh, kw = map(_number, steps.shape(weights))
    o, i = up(o, block), up(i, block)
    filled = fill_up(steps, weights, (o, i, kh, kw))
    split = steps.add(
        "Reshape", [filled], shape=(o // block, block, i // block, block, kh, kw)
    )
    moved = steps.add("Transpose", [split], perm=(0, 2, 4, 5, 3, 1))
    return steps.add("Reshape", [moved], shape=(o, i, kh, kw))


def pack_outputs(steps: Steps, weights: StepRef, block: int) -> StepRef:
    """Pack weights [o, i, kh, kw] for plain inputs and blocked outputs ("OIHWBo").

    Depthwise weights [c, 1, kh, kw] are packed in the same way.

    Returns:
        The weights as they are stored, [up(o), i, kh, kw].
    """
    o, i, kh, kw = map(_number, steps.shape(weights))
    o = up(o, block)
    filled = fill_up(steps, weights, (o, i, kh, kw))
    split = steps.add("Reshape", [filled], shape=(o // block, block, i, kh, kw))
    moved = steps.add("Transpose", [split], perm=(0, 2, 3, 4, 1))
    return steps.add("Reshape", [moved], shape=(o, i, kh, kw))


def merge_groups(steps: Steps, weights: StepRef, group: int, merged: int) -> StepRef:
    """Write weights of a grouped convolution for fewer and larger groups.

    Args:
        steps: Where to append.
        weights: [o, i, kh, kw], i the input channels of one group.
        group: Number of groups.
        merged: How many become one.

    Returns:
        The weights [o, merged * i, kh, kw], zero where an output does not belong to an
        input's old group.
    """
    o, i, kh, kw = map(_number, steps.shape(weights))
    each = o // group
    split = steps.add(
        "Reshape", [weights], shape=(group // merged, merged, each, 1, i, kh, kw)
    )
    same = steps.add("Eye", [], size=merged)
    mask = steps.add("Reshape", [same], shape=(1, merged, 1, merged, 1, 1, 1))
    spread = steps.add("Mul", [split, mask])
    return steps.add("Reshape", [spread], shape=(o, merged * i, kh, kw))


def _number(size: Size) -> int:
    assert isinstance(size, int), "channels and weights have sizes that are numbers"
    return size


def lying(steps: Steps, ref: StepRef, block: int) -> StepRef:
    """Append the view of a blocked tensor as it lies in memory, [n, c/b, h, w, b]."""
    n, channels, h, w = steps.shape(ref)
    return steps.add("Reshape", [ref], shape=(n, _number(channels) // block, h, w, block))


def standing(steps: Steps, ref: StepRef, output: Tensor | None = None) -> StepRef:
    """Append the view of such a tensor as the runtime wants it, [n, up(c), h, w].

    Args:
        steps: Where to append.
        ref: The tensor.
        output: The type of the view, where it is known by other names of the same sizes.
    """
    n, blocks, h, w, block = steps.shape(ref)
    shape = (n, _number(blocks) * _number(block), h, w)
    if output is None:
        return steps.add("Reshape", [ref], shape=shape)
    return steps.typed("Reshape", [ref], output, {"shape": shape})
