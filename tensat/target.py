"""Results for one kind of machine: what they are for, whether this is one, what else runs.

A model that holds ONNX Runtime's own operators on blocked tensors says so in its metadata.
On a machine with other blocks it would load and give wrong numbers, so it is checked
first; beside it lies the same in standard operators, which runs everywhere. One with
channels-last convolutions loads on a GPU only, and was chosen under the costs of one kind.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import onnx_ir as ir

from tensat.costs.cpu import device_name
from tensat.costs.cuda import Gpu, gpu_of, this_gpu
from tensat.costs.store import Setting
from tensat.cuda.provider import recommended
from tensat.errors import InternalError, ModelError, TargetError, UsageError
from tensat.kernels.kernel import Layout
from tensat.kernels.machine import block_size
from tensat.model.onnx_read import read
from tensat.model.onnx_write import write
from tensat.options import ORT_CPU, ORT_CUDA
from tensat.runtime import Failure, Runtime

PREFIX = "tensat.target."
"""What our entries in a model's metadata begin with."""

_STANDARD = frozenset({"", "ai.onnx"})


@dataclass(frozen=True, slots=True)
class Target:
    """What a model was made for.

    Attributes:
        name: As the option names it, such as `ort-cpu`.
        block: Channels in a block; 0 where nothing is blocked.
        runtime: The runtime's version; "" where there is none.
        processor: The processor or GPU for which it was made; why there is none.
        portable: Digest of the same model in standard operators; "" if there is none.
        layout: How tensors lie that are not plain.
        options: Of the session under which its kernels were measured, as JSON; "" for the
            runtime's defaults.
    """

    name: str
    block: int
    runtime: str
    processor: str
    portable: str = ""
    layout: str = ""
    options: str = ""

    @property
    def kind(self) -> str:
        """What is particular about the model, for people."""
        if self.name == ORT_CUDA:
            return f"{self.layout or Layout.CHANNELS_LAST} convolutions"
        return f"blocks of {self.block or 'no'} channels"

    def entries(self) -> dict[str, str]:
        """Return it as entries of a model's metadata."""
        return {
            f"{PREFIX}name": self.name,
            f"{PREFIX}block": str(self.block),
            f"{PREFIX}runtime": self.runtime,
            f"{PREFIX}processor": self.processor,
            f"{PREFIX}portable": self.portable,
            f"{PREFIX}layout": str(self.layout),
            f"{PREFIX}options": self.options,
        }


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a model is for this machine.

    Attributes:
        target: What it was made for; None for a model that runs everywhere.
        here: What this machine is.
        misfit: Why the model must not run here; "" if it may.
        load: The file to load; None if there is none.
        trouble: Why there is none; "" if there is.
    """

    target: Target | None
    here: Target
    misfit: str
    load: Path | None
    trouble: str = ""


def target_of(model: ir.Model) -> Target | None:
    """Return what a model was made for, None for one that runs everywhere.

    Raises:
        ModelError: Its metadata is damaged.
    """
    found = model.metadata_props
    if f"{PREFIX}name" not in found:
        return None
    names = ("name", "runtime", "processor", "portable", "layout", "options")
    texts = {name: found.get(f"{PREFIX}{name}", "") for name in names}
    block = found.get(f"{PREFIX}block", "")
    if not block.isdecimal():
        raise ModelError(
            f"the model says that it is for {texts['name']}, with blocks of {block!r} "
            "channels; a number is needed"
        )
    return Target(block=int(block), **texts)


def this_machine(runtime: Runtime, name: str = ORT_CPU) -> Target:
    """Return what a model made on this machine is for.

    Args:
        runtime: Asked for its version and for the channels in a block.
        name: Of the target; of one for GPUs the first GPU is asked instead.
    """
    if name == ORT_CUDA:
        try:
            return for_gpu(this_gpu())
        except UsageError as error:
            return Target(name, 0, "", f"no GPU: {error}")
    version = runtime.version()
    text = "" if isinstance(version, Failure) else version
    return Target(name, block_size(runtime), text, device_name(), "", Layout.BLOCKED)


def for_gpu(gpu: Gpu) -> Target:
    """Return what a model is for that was made with the costs of a GPU."""
    options = json.dumps(recommended(gpu.settings), sort_keys=True)
    return Target(ORT_CUDA, 0, gpu.onnxruntime, gpu.name, "", Layout.CHANNELS_LAST, options)


def gpu_for(name: str, setting: Setting | None) -> Gpu | None:
    """Return the GPU whose costs are used, None for those of something else.

    Args:
        name: Of the target.
        setting: Where the costs were measured; None for estimates.

    Raises:
        UsageError: They are of another kind of device than the target.
    """
    gpu = gpu_of(setting)
    if (name == ORT_CUDA and gpu is None) or (name == ORT_CPU and gpu is not None):
        wanted = "a GPU" if name == ORT_CUDA else "a processor"
        raise UsageError(
            f"target {name!r} needs costs of {wanted}; these were measured on '{setting}'"
        )
    return gpu


def stamp(model: ir.Model, portable: ir.Model | None, here: Target) -> ir.Model:
    """Return a model that says what it is for.

    Args:
        model: The model; it is not changed.
        portable: The same in standard operators, None if there is none.
        here: The machine that it was made for.
    """
    twin = "" if portable is None else digest(portable)
    entries = replace(here, portable=twin).entries()
    return ir.Model(
        model.graph,
        ir_version=model.ir_version,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
        model_version=model.model_version,
        doc_string=model.doc_string,
        functions=tuple(model.functions.values()),
        metadata_props={**model.metadata_props, **entries},
    )


def portable_path(path: str | os.PathLike[str]) -> Path:
    """Return where the portable form of a model lies: `NAME.portable.onnx` beside it."""
    path = Path(path)
    return path.with_name(f"{path.stem}.portable{path.suffix or '.onnx'}")


def save(
    model: ir.Model, portable: ir.Model, path: str | os.PathLike[str], here: Target
) -> None:
    """Write a model for one kind of machine, and its portable form beside it.

    The portable form is there first, so that a model is never without it.

    Raises:
        WriteError: A file cannot be written.
    """
    write(portable, portable_path(path))
    write(stamp(model, portable, here), path)


def refuse_targeted(model: ir.Model, path: str | os.PathLike[str] | None = None) -> None:
    """Refuse to optimize a model that was made for one kind of machine.

    Its kernels are what the search starts from no longer; its portable form is.

    Args:
        model: The model.
        path: Where it lies, if it is a file.

    Raises:
        ModelError: It was.
    """
    target = target_of(model)
    if target is None:
        return
    twin = "its portable form" if path is None else f"'{portable_path(path)}'"
    raise ModelError(
        f"{'the model' if path is None else f"'{path}'"} was made for {target.name} with "
        f"{target.kind} and cannot be optimized again; optimize {twin}"
    )


def misfit(target: Target, here: Target) -> str:
    """Return why a model must not run on a machine, "" if it may.

    Blocks of another size give wrong numbers without an error. The operators on blocks are
    no public interface of the runtime, so another release may read them in another way;
    patches of one release do not count. On a GPU nothing would be wrong, but what is fast
    depends on its compute capability.
    """
    if target.name != here.name:
        return f"it was made for {target.name}, this is {here.name}"
    if target.name == ORT_CUDA and _capability(target) != _capability(here):
        return f"it was made for {target.processor}, here is {here.processor}"
    if target.block != here.block:
        return (
            f"it was made for blocks of {target.block} channels, here they have "
            f"{here.block or 'none'}"
        )
    if _release(target.runtime) != _release(here.runtime):
        return (
            f"it was made for ONNX Runtime {target.runtime}, here is "
            f"{here.runtime or 'none'}"
        )
    return ""


def fit(path: str | os.PathLike[str], machine: Callable[[str], Target]) -> Fit:
    """Return whether a file is for a machine, and which file to load there.

    Args:
        path: An ONNX model, made by us or not.
        machine: Of the name of a target: what the machine is for it.

    Raises:
        ModelError: The file cannot be read.
    """
    path = Path(path)
    target = target_of(read(path))
    here = machine(ORT_CPU if target is None else target.name)
    reason = "" if target is None else misfit(target, here)
    if target is None or not reason:
        return Fit(target, here, "", path)
    twin = portable_path(path)
    trouble = _trouble(twin, target)
    return Fit(target, here, reason, None if trouble else twin, trouble)


def runnable(path: str | os.PathLike[str]) -> Path:
    """Return the file to load on this machine: the model itself or its portable form.

    Raises:
        ModelError: A file cannot be read.
        TargetError: The model is for another machine and its portable form is missing.
    """
    with Runtime() as runtime:
        found = fit(path, partial(this_machine, runtime))
    if found.load is None:
        raise TargetError(f"'{path}' does not run here: {found.misfit}; {found.trouble}")
    return found.load


def check_portable(original: ir.Model, result: ir.Model) -> None:
    """See that a result holds no operators beyond the standard that the original has not.

    Raises:
        InternalError: It does.
    """
    extra = sorted(_foreign(result) - _foreign(original))
    if extra:
        raise InternalError(f"a portable result holds {', '.join(extra)}")


def digest(model: ir.Model) -> str:
    """Return a number that tells models apart by what they compute.

    It depends on operators, attributes, names of values and weights, and not on where
    weights are stored.
    """
    state = hashlib.sha256()
    graph = model.graph
    for value in (*graph.inputs, *graph.outputs):
        state.update(f"{value.name}\n".encode())
    for name in sorted(graph.initializers):
        tensor = graph.initializers[name].const_value
        if tensor is not None:
            state.update(f"{name} {tensor.dtype} {tensor.shape}\n".encode())
            _feed(state, tensor)
    for node in graph:
        texts = (node.domain, node.op_type, _names(node.inputs), _names(node.outputs))
        state.update(" ".join(texts).encode())
        for name in sorted(node.attributes):
            proto = ir.serde.serialize_attribute(node.attributes[name])
            state.update(proto.SerializeToString(deterministic=True))
    return state.hexdigest()


def _names(values: Sequence[ir.Value | None]) -> str:
    return ",".join("" if value is None else value.name or "" for value in values)


def _feed(state: hashlib._Hash, tensor: ir.TensorProtocol) -> None:
    if tensor.dtype == ir.DataType.STRING:
        state.update(repr(tensor.numpy().tolist()).encode())
    else:
        state.update(tensor.tobytes())


def _foreign(model: ir.Model) -> set[str]:
    """Return the operators of other domains, with those of subgraphs and functions."""
    graphs = [*model.graphs(), *(function.graph for function in model.functions.values())]
    return {
        f"{node.domain}:{node.op_type}"
        for graph in graphs
        for node in graph.all_nodes()
        if node.domain not in _STANDARD
    }


def _trouble(twin: Path, target: Target) -> str:
    """Return why the portable form cannot be loaded instead, "" if it can."""
    if not twin.exists():
        return f"its portable form '{twin}' is missing"
    if digest(read(twin)) != target.portable:
        return f"'{twin}' is not the portable form that it was made with"
    return ""


def _capability(target: Target) -> str:
    """Return the compute capability, which a GPU's name ends with."""
    return target.processor.rpartition(" compute ")[2]


def _release(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])
