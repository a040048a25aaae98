"""The kernels that ONNX Runtime has on a machine, put together."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, save_model

from tensat.kernels.blocked_elementwise import on_blocks
from tensat.kernels.blocked_ops import BLOCKED_FUSIONS, BLOCKED_SINGLE
from tensat.kernels.blocked_reorder import to_blocked, to_plain
from tensat.kernels.collect import PLAIN_MACHINE, Machine
from tensat.kernels.fusions import FUSIONS
from tensat.kernels.kernel import Fusion, Layout
from tensat.kernels.nhwc_moves import to_first, to_last
from tensat.kernels.nhwc_ops import LAST_SINGLE
from tensat.runtime import Failure, Program, Runtime

NCHWC = "com.microsoft.nchwc"
"""The runtime's domain of operators on blocked tensors."""

ALL_FUSIONS: tuple[Fusion, ...] = (*map(on_blocks, FUSIONS), *BLOCKED_FUSIONS)
"""Everything that the runtime computes as one kernel."""


def cpu_machine(block: int, *, targeted: bool = False) -> Machine:
    """ONNX Runtime's CPU provider.

    Args:
        block: Channels in a block; 0 where it does not block.
        targeted: Whether the result may hold kernels that the runtime would not make by
            itself.
    """
    return Machine(
        block,
        targeted,
        BLOCKED_SINGLE,
        partial(to_blocked, targeted=targeted),
        partial(to_plain, targeted=targeted),
    )


def cuda_machine(*, targeted: bool = False) -> Machine:
    """ONNX Runtime's CUDA provider, as it is without `prefer_nhwc`.

    Args:
        targeted: Whether the result may hold channels-last convolutions, which the runtime
            would not make by itself.
    """
    if not targeted:
        return PLAIN_MACHINE
    return Machine(1, True, LAST_SINGLE, to_last, to_first, Layout.CHANNELS_LAST)


def block_size(runtime: Runtime) -> int:
    """Channels in a block on this machine; 0 where the runtime does not block.

    Asked with a reorder of four channels, which it fills up to a block.
    """
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    node = helper.make_node("ReorderInput", ["x"], ["y"], domain=NCHWC)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(NCHWC, 1)]
    graph = helper.make_graph([node], "block", types[:1], types[1:])
    with tempfile.TemporaryDirectory(prefix="tensat-") as folder:
        path = Path(folder) / "block.onnx"
        save_model(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
        program = Program(str(path))
        answer = runtime.run(program, {"x": np.zeros((1, 4, 1, 1), np.float32)})
        runtime.forget()
    if isinstance(answer, Failure):
        return 0
    return int(answer[0].shape[1])
