"""What only a GPU can show; skipped where there is none, saying what is missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from tensat.costs.cost import Origin
from tensat.costs.cuda import CudaCosts
from tensat.costs.source import Argument, Signature
from tensat.costs.store import CostStore
from tensat.cuda.bench import LocalBench
from tensat.cuda.cupy_device import CupyDevice, open_device
from tensat.cuda.nhwc import channels_last
from tensat.cuda.provider import PROVIDER, Settings, provider_options
from tensat.errors import UsageError

pytestmark = pytest.mark.gpu

F = "float32"


@pytest.fixture(scope="module")
def device() -> Iterator[CupyDevice]:
    """The first GPU."""
    try:
        yield open_device()
    except UsageError as error:
        pytest.skip(str(error))


def test_operators_are_measured_and_compared(device: CupyDevice) -> None:
    """A product, a sum, a reduction and a transposition have a cost and a check each."""
    x, w = Argument(F, (64, 512)), Argument(F, (512, 512), True)
    column = Argument(F, (64, 1))
    asked = [
        Signature("MatMul", (), (x, w), (Argument(F, (64, 512)),), 21),
        Signature("Add", (), (x, x), (x,), 21),
        Signature("ReduceSum", (("axes", (1,)), ("keepdims", 1)), (x,), (column,), 21),
        Signature("Transpose", (("perm", (1, 0)),), (x,), (Argument(F, (512, 64)),), 21),
    ]
    with CostStore.in_memory() as store:
        source = CudaCosts(store, LocalBench(device))
        costs = source.costs(asked)
        known = CudaCosts(store, LocalBench(device)).costs(asked)
    assert {cost.origin for cost in costs} == {Origin.MEASURED}, source.troubles
    assert {cost.origin for cost in known} == {Origin.KNOWN}
    assert {check.signature for check in source.checks} == set(asked)
    assert not any("CPU" in cost.note for cost in costs)


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["float32", "float16"])
@pytest.mark.parametrize("group", [1, 2, 8], ids=["dense", "grouped", "depthwise"])
def test_channels_last_convolutions_compute_the_same(
    device: CupyDevice, dtype: type, group: int
) -> None:
    """The runtime's own operator gives what the standard Conv gives on the CPU."""
    rng = np.random.default_rng(1)
    kind = {np.float32: "float", np.float16: "float16"}[dtype]
    graph = onnx.parser.parse_graph(
        f"g ({kind}[2,8,12,10] x) => ({kind}[2,16,6,5] y) "
        f"{{ y = Conv<group={group},pads=[1,1,1,1],strides=[2,2]>(x, w, b) }}"
    )
    for name, dims in (("w", (16, 8 // group, 3, 3)), ("b", (16,))):
        array = rng.uniform(-1, 1, dims).astype(dtype)
        graph.initializer.append(numpy_helper.from_array(array, name))
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    x = rng.uniform(-1, 1, (2, 8, 12, 10)).astype(dtype)
    on_cpu = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    rewritten = ir.to_proto(channels_last(ir.from_proto(model)).model)
    on_gpu = onnxruntime.InferenceSession(
        rewritten.SerializeToString(),
        providers=[(PROVIDER, provider_options(Settings(), 0))],
    )
    assert PROVIDER in on_gpu.get_providers()
    (wanted,), (found,) = on_cpu.run(None, {"x": x}), on_gpu.run(None, {"x": x})
    tolerance = 1e-4 if dtype is np.float32 else 3e-2
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
