"""Nodes that are timed as they are, with the values that they see in one run of the model.

How long a loop runs, which branch is taken, how many rows pass: that is in the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper

from tensat.costs.demand import demand
from tensat.costs.kernel_model import FOOTPRINT, plan
from tensat.costs.source import Signature
from tensat.errors import ExecutionError
from tensat.profiling.running_graph import Array, RunningGraph, captured
from tensat.runtime import Failure, Feeds, Kernel, Level, Program, Runtime
from tensat.runtime.external import external
from tensat.runtime.messages import Filling

_INSIDE = 1024  # elements up to which a constant is written into the model
_BUDGET = 0.04  # seconds of repetitions in one attempt
_UNKNOWN = 1e-4  # seconds of a node that the profile does not have


class AsIs(Mapping[Signature, Kernel]):
    """What to time for signatures that do not tell; made when it is asked for."""

    def __init__(
        self,
        graph: RunningGraph,
        nodes: Mapping[Signature, NodeProto],
        profiled: Mapping[str, float],
        runtime: Runtime,
        feeds: Feeds,
        threads: int,
        resident: bool = False,
    ) -> None:
        """Prepare.

        Args:
            graph: The graph that runs.
            nodes: One node for each signature.
            profiled: About how many seconds a node takes, by its name.
            runtime: Runs the graph, to get the values that a node reads.
            feeds: The inputs to run it with.
            threads: Threads that compute.
            resident: Whether the weights of the model stay in a core's own cache.
        """
        self._resident = resident
        self._graph = graph
        self._nodes = nodes
        self._profiled = profiled
        self._runtime = runtime
        self._feeds = feeds
        self._threads = threads

    def __contains__(self, signature: object) -> bool:
        return signature in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Signature]:
        return iter(self._nodes)

    def __getitem__(self, signature: Signature) -> Kernel:
        """Return what to time.

        Raises:
            KeyError: Nothing is known of this signature.
            ExecutionError: The graph does not run.
        """
        node = self._nodes[signature]
        names = list(dict.fromkeys(name for name in _read(node) if name))
        wanted = [name for name in names if name not in self._graph.constants]
        program = Program(str(self._graph.path), Level.NONE, self._threads)
        values = self._runtime.record(program, self._feeds, wanted)
        if isinstance(values, Failure):
            raise ExecutionError(f"the values that a node reads are not known: {values}")
        about = max(self._profiled.get(node.name, _UNKNOWN), 1e-6)
        small = _kernel(self._graph, node, names, values, about, self._resident)
        asks = demand(signature, self._resident)
        others = max(0, self._graph.weight_bytes - asks.streamed)
        return replace(
            small,
            seed=signature.seed(),
            threads=self._threads,
            demand=asks,
            between=min(others, FOOTPRINT) if small.copies == 1 and asks.streamed else 0,
        )


def _read(node: NodeProto) -> Sequence[str]:
    return (*node.input, *captured(node))


def _kernel(
    graph: RunningGraph,
    node: NodeProto,
    names: Sequence[str],
    values: Mapping[str, Array],
    about: float,
    resident: bool,
) -> Kernel:
    """Return the node, so often as what it takes allows, in a model of its own."""
    inner = bool(captured(node)) or any(each.HasField("g") for each in node.attribute)
    constants = {name: graph.array(name) for name in names if name in graph.constants}
    weights = sum(array.nbytes for array in constants.values())
    copies = 1 if inner else plan(weights, about, resident).copies
    made = GraphProto(name="kernel")
    held: dict[str, Filling] = {}
    for copy in range(copies):
        # Subgraphs read outer values by their names.
        own = {} if inner else _own(constants, copy)
        made.node.append(_copied(graph, node, own, copy))
        held.update(
            (name, _filling(name, array))
            for name, array in ((own.get(n, n), a) for n, a in constants.items())
        )
    inside = [each for each in held.values() if prod(each.dims) <= _INSIDE]
    made.initializer.extend(_tensor(each) for each in inside)
    outside = [each for each in held.values() if prod(each.dims) > _INSIDE]
    made.initializer.extend(map(external, outside))
    fed = [_filling(name, values[name]) for name in names if name not in constants]
    for filling in fed:
        # Sizes would be checked in branches that are not taken.
        dims = None if inner else filling.dims
        made.input.append(
            helper.make_tensor_value_info(filling.name, filling.onnx_type, dims)
        )
    last = made.node[-1].output
    outputs = [Filling(name, TensorProto.FLOAT, ()) for name in last if name]
    made.output.extend(onnx.ValueInfoProto(name=filling.name) for filling in outputs)
    opsets = [helper.make_opsetid(domain, v) for domain, v in graph.opsets.items()]
    model = helper.make_model(made, opset_imports=opsets, ir_version=10)
    return Kernel(
        model.SerializeToString(), tuple(fed), tuple(outside), tuple(outputs),
        copies=copies, budget=_BUDGET,
    )  # fmt: skip


def _own(constants: Mapping[str, Array], copy: int) -> dict[str, str]:
    """Return the names of large constants in one of the copies."""
    return {n: f"{n}#{copy}" for n, array in constants.items() if array.size > _INSIDE}


def _copied(
    graph: RunningGraph, node: NodeProto, own: Mapping[str, str], copy: int
) -> NodeProto:
    result = graph.whole(node)
    result.name = f"copy{copy}"
    for place, name in enumerate(node.input):
        result.input[place] = own.get(name, name)
    for place, name in enumerate(node.output):
        if name:
            result.output[place] = f"{name}@{copy}"
    return result


def _filling(name: str, array: Array) -> Filling:
    number = helper.np_dtype_to_tensor_dtype(array.dtype)
    return Filling(name, int(number), tuple(array.shape), array=np.asarray(array))


def _tensor(filling: Filling) -> TensorProto:
    assert filling.array is not None
    return onnx.numpy_helper.from_array(filling.array, filling.name)
