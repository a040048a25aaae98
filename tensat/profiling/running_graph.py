"""The graph that the runtime makes of a model, with the type and sizes of every value.

The runtime writes the graph that it runs; one run of it tells all sizes. So there is
nothing symbolic here and nothing left to fuse or to fold: each node is one kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_tensor

from tensat.errors import ExecutionError
from tensat.runtime import Failure, Feeds, Level, Observed, Program, Runtime

SMALL = 64
"""Elements up to which integers are looked at: shapes, axes, indices."""

type Array = np.ndarray


@dataclass(frozen=True, slots=True)
class RunningGraph:
    """The graph that runs.

    Attributes:
        path: Its file.
        nodes: Its nodes, in an order in which they can run.
        opsets: Version of each domain.
        constants: Its initializers by name; the data of large ones may be in another file.
        observed: Type and sizes that inputs and inner values had in one run.
        integers: Small integer values in that run.
    """

    path: Path
    nodes: tuple[NodeProto, ...]
    opsets: Mapping[str, int]
    constants: Mapping[str, TensorProto]
    observed: Mapping[str, Observed]
    integers: Mapping[str, Array]

    @property
    def weight_bytes(self) -> int:
        """Size of all constants together."""
        return sum(
            prod(tensor.dims)
            * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
            for tensor in self.constants.values()
        )

    def array(self, name: str) -> Array:
        """Return a constant; large ones are mapped, not read."""
        tensor = self.constants[name]
        if tensor.data_location != TensorProto.EXTERNAL:
            return numpy_helper.to_array(tensor)
        info = ExternalDataInfo(tensor)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        if dtype.itemsize * prod(tensor.dims) != (info.length or 0):
            return numpy_helper.to_array(tensor, str(self.path.parent))
        mapped = np.memmap(
            self.path.parent / info.location,
            dtype=dtype,
            mode="r",
            offset=info.offset or 0,
            shape=tuple(tensor.dims),
        )
        return np.asarray(mapped)

    def whole(self, node: NodeProto) -> NodeProto:
        """Return a copy of a node with all data of its subgraphs inside."""
        copy = NodeProto()
        copy.CopyFrom(node)
        for graph in bodies(copy):
            for tensor in (*graph.initializer, *_constants(graph)):
                if tensor.data_location == TensorProto.EXTERNAL:
                    load_external_data_for_tensor(tensor, str(self.path.parent))
                    tensor.data_location = TensorProto.DEFAULT
                    del tensor.external_data[:]
        return copy


def running_graph(
    runtime: Runtime, program: Program, feeds: Feeds, target: Path
) -> RunningGraph:
    """Return the graph that the runtime runs for a program.

    Args:
        runtime: Where it is made and run.
        program: The model, and how it is loaded.
        feeds: Inputs to run it with.
        target: Where the graph is written; its weights go beside it.

    Raises:
        ExecutionError: The runtime cannot load, write or run the model.
    """
    said = runtime.optimized(program, str(target))
    if said is not None:
        raise ExecutionError(f"the runtime cannot write the graph that it runs: {said}")
    model = onnx.load(target, load_external_data=False)
    saved = Program(str(target), Level.NONE, program.threads)
    made = [name for node in model.graph.node for name in node.output if name]
    observed = runtime.observe(saved, feeds, [*feeds, *made])
    if isinstance(observed, Failure):
        raise ExecutionError(f"the graph that the runtime wrote does not run: {observed}")
    small = [name for name, seen in observed.items() if _is_small(seen)]
    integers = runtime.record(saved, feeds, small)
    if isinstance(integers, Failure):
        raise ExecutionError(f"the graph that the runtime wrote does not run: {integers}")
    return RunningGraph(
        target,
        tuple(model.graph.node),
        {each.domain.replace("ai.onnx", ""): each.version for each in model.opset_import},
        {tensor.name: tensor for tensor in model.graph.initializer},
        observed,
        integers,
    )


def bodies(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the subgraphs of a node, inner ones too."""
    for attribute in node.attribute:
        held = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
        for graph in held:
            yield graph
            for inner in graph.node:
                yield from bodies(inner)


def captured(node: NodeProto) -> list[str]:
    """Return the outer values that the subgraphs of a node read, each once."""
    found: dict[str, None] = {}
    for attribute in node.attribute:
        held = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
        for graph in held:
            found.update(dict.fromkeys(_free(graph)))
    return list(found)


def _free(graph: GraphProto) -> Iterator[str]:
    made = {value.name for value in graph.input} | {t.name for t in graph.initializer}
    for node in graph.node:
        read: Sequence[str] = (*node.input, *captured(node))
        yield from (name for name in read if name and name not in made)
        made.update(node.output)
    yield from (value.name for value in graph.output if value.name not in made)


def _constants(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield the tensors that nodes of a graph hold as attributes."""
    for node in graph.node:
        yield from (each.t for each in node.attribute if each.HasField("t"))


def _is_small(seen: Observed) -> bool:
    if seen.dims is None or seen.dtype not in ("int64", "int32", "bool"):
        return False
    return prod(seen.dims) <= SMALL
