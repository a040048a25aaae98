"""The vocabulary: applications of operators, patterns of fusion, and steps of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rulesets.tensor import Tensor
from tensat.costs.source import Argument, Signature
from tensat.onnx_forms.call import Absent, Arg, Node

type StepRef = Arg | Node | Absent
"""An argument of the kernel, the result of an earlier step, or nothing."""


class Layout(StrEnum):
    """How a tensor lies in memory."""

    PLAIN = "plain"  # row-major, as ONNX means it
    BLOCKED = "blocked"  # [N, C/b, H, W, b]: ONNX Runtime's NCHWc
    CHANNELS_LAST = "channels-last"  # [N, H, W, C], what ONNX means as [N, C, H, W]


@dataclass(frozen=True, slots=True)
class Application:
    """One application of a canonical operator, at concrete sizes.

    Attributes:
        op: Canonical operator.
        attributes: All its attributes, symbolic sizes evaluated.
        inputs: Types of the arguments; None where an optional one is absent.
        outputs: Types of the results.
        children: For each argument the number of its value; equal numbers, equal values.
        value: Number of the value that it computes.
        types: Types of the arguments with symbolic sizes, as the model has them.
        results: Types of the results with symbolic sizes.
    """

    op: str
    attributes: Mapping[str, object]
    inputs: tuple[Argument | None, ...]
    outputs: tuple[Argument, ...]
    children: tuple[int, ...]
    value: int
    types: tuple[Tensor | None, ...] = ()
    results: tuple[Tensor, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """A pattern of operators: this one, and which of its arguments are made inside.

    Attributes:
        op: Canonical operator.
        inner: (position of the argument, what computes it) for arguments that the same
            kernel computes; all others are arguments of the kernel.
    """

    op: str
    inner: tuple[tuple[int, Tree], ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One ONNX node of a kernel that the standard operators cannot spell.

    Attributes:
        op: A canonical operator, or ``domain:Type`` for an operator of another domain.
        attributes: Sorted (name, value) pairs; of a ``domain:Type`` the ONNX attributes.
            Sizes may be symbolic.
        inputs: What it reads.
        output: Type of its result, as the runtime sees it: a blocked tensor is
            [N, C rounded up to blocks, H, W], a channels-last one [N, H, W, C]; sizes may
            be symbolic, except C of a blocked one.
        constant: Whether it depends on constants only, so that it is computed when the
            model is written and costs nothing.
    """

    op: str
    attributes: tuple[tuple[str, object], ...]
    inputs: tuple[StepRef, ...]
    output: Tensor
    constant: bool = False


@dataclass(frozen=True, slots=True)
class BlockedForm:
    """How a group of operators runs on tensors that are blocked, or channels-last.

    Attributes:
        layouts: The layout in which each argument of the kernel is taken; constants and
            arguments that are not images are PLAIN.
        steps: What is computed; the last one is the result.
        by_runtime: Whether ONNX Runtime makes this form by itself out of the standard
            operators when it loads a model; else only a targeted model can have it.
        result: Layout of the result.
    """

    layouts: tuple[Layout, ...]
    steps: tuple[Step, ...]
    by_runtime: bool
    result: Layout = Layout.BLOCKED


type Members = tuple[Application, ...]
"""The operators of one kernel: root first, then depth first as in `Tree.inner`."""

type Blocked = Callable[[Members, int], tuple[BlockedForm, ...]]
"""The ways in which operators run on blocked tensors, for the channels in a block; or on
channels-last ones, whatever that number is."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """Operators that the runtime computes as one kernel (or as few).

    The arguments of the kernel are the arguments of its members that no member computes, in
    the order of members and positions, each value once.

    Attributes:
        name: For people.
        tree: Which operators.
        plain: What the runtime then runs on plain tensors, to be asked for prices; None
            where the fusion does not happen for these members.
        blocked: The ways in which it runs on blocked tensors, for a number of channels
            per block; none where it cannot.
        forced: Whether the fused kernel is slower than its members, so that it matters
            that the runtime fuses them wherever nobody else reads the inner value.
    """

    name: str
    tree: Tree
    plain: Callable[[Members], tuple[Signature, ...] | None]
    blocked: Blocked | None = None
    forced: bool = False
