"""Every kernel that a saturated e-graph can be computed with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rulesets.tensor import Tensor
from tensat.costs.source import PRICED_OPSET, Argument, Signature
from tensat.egraph.engine import ENodeRow
from tensat.egraph.price import concrete, evaluated
from tensat.kernels.kernel import Blocked, BlockedForm, Layout, Step
from tensat.kernels.matching import Group, Matcher
from tensat.onnx_forms.call import Arg, Node

type Reorder = Callable[[Tensor, int], BlockedForm | None]
"""Of a plain type and a block size: the way from one layout to the other, if any."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel that can be chosen.

    Attributes:
        eclass: Class of its result.
        layout: Layout of its result.
        arguments: Class and layout of each argument; constants are plain.
        rows: The e-nodes it computes, the root first; none for a reorder.
        signatures: What its price is asked with.
        fixed: Seconds that are known without asking; infinity where it cannot run.
        form: Its steps, where standard operators cannot spell it.
        original: Whether all its e-nodes are the model's own.
        name: Of the fusion, or "".
        forced: Whether the runtime makes it, like it or not.
        handle: Of the root's e-node; -1 for a reorder.
        inner: Whether a forced fusion computes it with its user, so that it is by itself
            only for other users.
        shuns: Argument classes that must not come from such a kernel.
    """

    eclass: int
    layout: Layout
    arguments: tuple[tuple[int, Layout], ...]
    rows: tuple[ENodeRow, ...]
    signatures: tuple[Signature, ...]
    fixed: float = 0.0
    form: BlockedForm | None = None
    original: bool = True
    name: str = ""
    forced: bool = False
    handle: int = -1
    inner: bool = False
    shuns: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Machine:
    """What the runtime does on the machine that the result is for.

    Attributes:
        block: Channels in a block; 0 where all tensors are plain, 1 where those that are
            not are channels-last.
        targeted: Whether the result may hold kernels that the runtime would not make by
            itself out of standard operators.
        single: How operators by themselves run on tensors that are not plain.
        to_blocked: The way from plain to the other layout.
        to_plain: The way back.
        layout: The other layout.
    """

    block: int
    targeted: bool
    single: Mapping[str, Blocked]
    to_blocked: Reorder
    to_plain: Reorder
    layout: Layout = Layout.BLOCKED


PLAIN_MACHINE = Machine(0, False, {}, lambda *_: None, lambda *_: None)
"""A machine that knows plain tensors only."""


def collect(matcher: Matcher, machine: Machine) -> tuple[Kernel, ...]:
    """All kernels, reorders included, equal ones once.

    Args:
        matcher: Finds the groups of e-nodes.
        machine: What there is besides plain kernels.
    """
    kernels = _forced(matcher, list(_unique(_of_groups(matcher, machine))))
    begun = _begun_blocked(matcher, kernels)
    kernels = [
        k
        for k in kernels
        if k.layout is not Layout.PLAIN or not any(row in begun for row in k.rows)
        if k.eclass not in {eclass for eclass, _ in k.arguments}
    ]
    return (*kernels, *_reorders(matcher, machine, kernels))


def _unique(kernels: Iterable[Kernel]) -> Iterator[Kernel]:
    """Of kernels that differ in their e-nodes only, the model's own or else the first.

    An operator that the runtime replaces by another kernel has no plain kernel of its own.
    """
    kernels = list(kernels)
    replaced = {k.rows for k in kernels if k.name and k.layout is Layout.PLAIN}
    found: dict[tuple[object, ...], Kernel] = {}
    for kernel in kernels:
        if not kernel.name and kernel.layout is Layout.PLAIN and kernel.rows in replaced:
            continue
        key = (
            kernel.eclass, kernel.layout, kernel.arguments, kernel.signatures,
            kernel.form, kernel.fixed, len(kernel.rows) == 1 and kernel.rows[0],
        )  # fmt: skip
        known = found.get(key)
        if known is None or (kernel.original and not known.original):
            found[key] = kernel
    yield from found.values()


def _begun_blocked(matcher: Matcher, kernels: Sequence[Kernel]) -> set[ENodeRow]:
    """Convolutions that the runtime computes on blocked tensors, wherever they stand."""
    return {
        row
        for kernel in kernels
        if kernel.form is not None and kernel.form.by_runtime
        for row in kernel.rows
        if matcher.operator(row) == "Conv"
    }


def _forced(matcher: Matcher, kernels: Sequence[Kernel]) -> list[Kernel]:
    """Keep apart what the runtime fuses, like it or not.

    A sum that nothing but a normalization reads becomes one (slow) kernel with it; the
    normalization by itself must not take such a sum, be it one operator or written out.
    What else reads a value shows in the model: a sum that something else reads there stays
    by itself.
    """
    regions: dict[int, set[ENodeRow]] = {}
    for kernel in kernels:
        if kernel.forced:
            regions.setdefault(kernel.eclass, set()).update(kernel.rows)
    joints = [_joints(matcher, kernel, regions.get(kernel.eclass)) for kernel in kernels]
    within: dict[int, set[ENodeRow]] = {}
    for kernel, classes in zip(kernels, joints, strict=True):
        for eclass in classes:
            within.setdefault(eclass, set()).update(regions[kernel.eclass])
    inner = [
        kernel.layout is Layout.PLAIN
        and within.get(kernel.eclass, set()).issuperset(kernel.rows)
        for kernel in kernels
    ]
    made = {k.eclass for k, inside in zip(kernels, inner, strict=True) if inside}
    return [
        replace(kernel, inner=inside, shuns=frozenset(classes & made))
        for kernel, inside, classes in zip(kernels, inner, joints, strict=True)
    ]


def _joints(
    matcher: Matcher, kernel: Kernel, region: set[ENodeRow] | None
) -> frozenset[int]:
    """The arguments of a kernel that the runtime would compute with it.

    Args:
        matcher: Knows who reads a value.
        kernel: A kernel.
        region: The e-nodes of forced kernels that compute the same value.
    """
    if region is None or kernel.forced or kernel.layout is not Layout.PLAIN:
        return frozenset()
    if not region.issuperset(kernel.rows):
        return frozenset()
    made = {row.eclass for row in region} - {kernel.eclass}
    taken = {eclass for eclass, _ in kernel.arguments}
    return frozenset(c for c in made & taken if matcher.read_within(c, region))


def _of_groups(matcher: Matcher, machine: Machine) -> Iterator[Kernel]:
    for group in matcher.groups():
        plain = _plain(matcher, group)
        if plain is not None:
            yield plain
        for form in _blocked_forms(group, machine):
            yield _blocked(matcher, group, form, machine.block)


def _plain(matcher: Matcher, group: Group) -> Kernel | None:
    signatures: tuple[Signature, ...] | None = ()
    fixed = 0.0
    forced = group.fusion is not None and group.fusion.forced
    if not group.members:
        fixed = matcher.cost[group.rows[0]]
        if math.isinf(fixed):
            return None
    elif group.fusion is None:
        signatures = (matcher.signature(group.members[0]),)
    else:
        signatures = group.fusion.plain(group.members)
    if signatures is None:
        return None
    return Kernel(
        group.rows[0].eclass,
        Layout.PLAIN,
        tuple((argument, Layout.PLAIN) for argument in group.arguments),
        group.rows,
        signatures,
        fixed,
        None,
        matcher.original(group.rows),
        "" if group.fusion is None else group.fusion.name,
        handle=matcher.handle(group.rows[0]),
        forced=forced,
    )


def _blocked_forms(group: Group, machine: Machine) -> Iterator[BlockedForm]:
    if not machine.block or not group.members:
        return
    if group.fusion is None:
        make = machine.single.get(group.members[0].op)
    else:
        make = group.fusion.blocked
    for form in make(group.members, machine.block) if make is not None else ():
        if form.by_runtime or machine.targeted:
            yield form


def _blocked(matcher: Matcher, group: Group, form: BlockedForm, block: int) -> Kernel:
    arguments = tuple(zip(group.arguments, form.layouts, strict=True))
    types = [matcher.argument(*argument, block) for argument in arguments]
    return Kernel(
        group.rows[0].eclass,
        form.result,
        arguments,
        group.rows,
        step_signatures(form.steps, types, matcher.sizes),
        0.0,
        form,
        matcher.original(group.rows),
        "" if group.fusion is None else group.fusion.name,
        handle=matcher.handle(group.rows[0]),
    )


def _reorders(
    matcher: Matcher, machine: Machine, kernels: Sequence[Kernel]
) -> Iterator[Kernel]:
    """The ways between the layouts of every class that has a value in the other one."""
    other = machine.layout
    touched: dict[int, None] = {}
    for kernel in kernels:
        if kernel.layout is other:
            touched[kernel.eclass] = None
        for eclass, layout in kernel.arguments:
            if layout is other:
                touched[eclass] = None
    for eclass in touched:
        plain = matcher.egraph.tensor(eclass)
        for make, source, result in (
            (machine.to_blocked, Layout.PLAIN, other),
            (machine.to_plain, other, Layout.PLAIN),
        ):
            form = make(plain, machine.block)
            if form is not None:
                types = [matcher.argument(eclass, source, machine.block)]
                signatures = step_signatures(form.steps, types, matcher.sizes)
                yield Kernel(eclass, result, ((eclass, source),), (), signatures, 0.0, form)


def step_signatures(
    steps: Sequence[Step], arguments: Sequence[Argument], sizes: Mapping[str, int]
) -> tuple[Signature, ...]:
    """What is asked for the steps of a kernel that run with the model.

    Args:
        steps: The steps.
        arguments: The types of the kernel's arguments, as they lie in memory.
        sizes: Value of each symbolic dimension.
    """
    results = [
        replace(concrete(step.output, sizes), constant=step.constant) for step in steps
    ]
    found = []
    for step, result in zip(steps, results, strict=True):
        if step.constant:
            continue
        inputs = tuple(
            arguments[ref.position] if isinstance(ref, Arg)
            else results[ref.index] if isinstance(ref, Node) else None
            for ref in step.inputs
        )  # fmt: skip
        attributes = evaluated(dict(step.attributes), sizes)
        found.append(Signature(step.op, attributes, inputs, (result,), PRICED_OPSET))
    return tuple(found)
