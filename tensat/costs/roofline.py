"""Costs from arithmetic and bytes alone: no device is touched, nothing is measured.

An operator takes one launch plus the longer of its arithmetic and its memory traffic.
The balance of the machine and the relative prices of elementwise functions are those
of ONNX Runtime's CPU kernels on one core; what counts is that the *order* of two ways
to compute the same thing is right more often than not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from tensat.costs.source import (
    FREE_OPERATORS,
    VIEW_OPERATORS,
    Argument,
    Progress,
    Signature,
)


@dataclass(frozen=True, slots=True)
class Machine:
    """What one core can do.

    Attributes:
        flops: Multiplications and additions per second in MatMul and Conv.
        near: Bytes per second while the operands fit the core's own cache.
        far: Bytes per second beyond it.
        dram: Bytes per second for weights, which no cache keeps between two runs.
        near_bytes: Size of the core's own cache.
        launch: Seconds that any kernel takes before it does something.
        elements: Factor on what functions take per element beside their traffic.
    """

    flops: float = 100e9
    near: float = 100e9
    far: float = 40e9
    dram: float = 20e9
    near_bytes: int = 1 << 20
    launch: float = 1e-6
    elements: float = 1.0

    def traffic(self, nbytes: float) -> float:
        """Return the seconds it takes to move activations of that many bytes."""
        near = min(nbytes, self.near_bytes)
        return near / self.near + (nbytes - near) / self.far


# Nanoseconds per element beyond what memory costs; the larger of both is taken.
_ELEMENT_NS: dict[str, float] = {
    "Relu": 0.2, "Clip": 0.2, "Neg": 0.2, "Abs": 0.2, "Not": 0.2, "LeakyRelu": 0.25,
    "Floor": 0.2, "Ceil": 0.2, "Round": 0.3, "Sign": 0.3, "Cast": 0.25,
    "Add": 0.23, "Sub": 0.23, "Mul": 0.23, "Max": 0.25, "Min": 0.25, "Sum": 0.23,
    "Div": 0.27, "Reciprocal": 0.27, "Sqrt": 0.3, "Sigmoid": 0.3, "HardSigmoid": 0.22,
    "HardSwish": 0.43, "Tanh": 0.35, "Exp": 0.3, "Log": 0.9, "Erf": 0.4, "Gelu": 0.64,
    "Elu": 0.9, "Softplus": 2.0, "Sin": 1.5, "Cos": 1.5, "Pow": 4.5, "Mod": 2.0,
    "Equal": 0.25, "Less": 0.25, "Greater": 0.25, "LessOrEqual": 0.25,
    "GreaterOrEqual": 0.25, "And": 0.2, "Or": 0.2, "Where": 0.5,
    "Softmax": 1.0, "LogSoftmax": 1.2, "LayerNormalization": 0.6,
    "RMSNormalization": 0.5, "BatchNormalization": 0.25, "InstanceNormalization": 0.6,
    "LRN": 28.0, "ReduceProd": 0.5, "ReorderInput": 0.2, "ReorderOutput": 0.2,
    "QuickGelu": 0.4, "FastGelu": 0.5, "BiasGelu": 0.7, "SkipLayerNormalization": 6.0,
    "SimplifiedLayerNormalization": 0.5, "SkipSimplifiedLayerNormalization": 6.0,
}  # fmt: skip

# A fractional power calls the C library for every element, a small whole one does not.
_POWER_NS = {0.0: 0.3, 0.5: 0.35, 1.0: 0.2, 2.0: 0.36, 3.0: 0.45}

# Rows of a Conv's channel block; with fewer channels per group the rest computes zeros.
_CHANNEL_BLOCK = 16
_DEPTHWISE = 1 / 6

Arithmetic = Callable[[Signature], float]


def _name(signature: Signature) -> str:
    """Return the operator without the domain of the runtime that it may have."""
    return signature.op.rpartition(":")[2]


def _dense_flops(signature: Signature) -> float:
    """Return the flops of MatMul and Gemm; inner size = a's elements per output row."""
    a, b = signature.present[:2]
    attributes = dict(signature.attributes)
    if _name(signature).endswith("Gemm"):
        inner = a.dims[0] if attributes.get("transA") else a.dims[-1]
    else:
        inner = a.dims[-1] if a.dims else b.elements
    return 2.0 * signature.outputs[0].elements * inner


def _conv_flops(signature: Signature) -> float:
    """Return flops as a Conv spends them: few channels per group waste the rest."""
    x, w = signature.present[:2]
    group = _integer(signature, "group", 1)
    transposed = signature.op == "ConvTranspose"
    positions = prod((x if transposed else signature.outputs[0]).dims[2:])
    batch = x.dims[0]
    flops = 2.0 * batch * positions * w.elements
    ins, outs = x.dims[1] // max(group, 1), signature.outputs[0].dims[1] // max(group, 1)
    if group > 1 and ins == 1:
        return flops / _DEPTHWISE
    return flops / min(1.0, outs / _CHANNEL_BLOCK) if group > 1 else flops


def _last_flops(signature: Signature) -> float:
    """Return flops of a channels-last Conv, of x [n, h, w, c] and w [m, kh, kw, c / g]."""
    x, w = signature.present[:2]
    return 2.0 * x.dims[0] * prod(signature.outputs[0].dims[1:3]) * w.elements


def _pool_flops(signature: Signature) -> float:
    window = dict(signature.attributes).get("kernel", ())
    size = prod(window) if isinstance(window, tuple) else 1
    return 10.0 * size * signature.outputs[0].elements


_FLOPS: dict[str, Arithmetic] = {
    "MatMul": _dense_flops,
    "Gemm": _dense_flops,
    "Conv": _conv_flops,
    "ConvTranspose": _conv_flops,
    "MaxPool": _pool_flops,
    "AveragePool": _pool_flops,
    "FusedConv": _conv_flops,
    "NhwcConv": _last_flops,
    "FusedGemm": _dense_flops,
    "FusedMatMul": _dense_flops,
}


class Roofline:
    """The estimating cost source."""

    name = "roofline"

    def __init__(self, machine: Machine | None = None) -> None:
        self.machine = machine or Machine()

    def seconds(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[float]:
        """Return an estimate per signature; never infinite, positive unless free."""
        result = [self.estimate(signature) for signature in signatures]
        if progress is not None:
            progress(len(result), len(result))
        return result

    def estimate(self, signature: Signature) -> float:
        """Return the estimated seconds of one operator."""
        machine = self.machine
        if signature.op in FREE_OPERATORS:
            return 0.0
        if signature.op in VIEW_OPERATORS:
            return machine.launch
        work = _FLOPS.get(_name(signature))
        if work is not None and signature.present:
            arithmetic = work(signature) / machine.flops
        else:
            arithmetic = machine.elements * _element_seconds(signature)
        return machine.launch + max(arithmetic, self._memory(signature))

    def _memory(self, signature: Signature) -> float:
        """Return the seconds of traffic; large constants stream, the rest is warm."""
        touched = _touched(signature)
        weights = sum(a.bytes for a in touched if a.constant)
        activations = sum(a.bytes for a in touched if not a.constant)
        activations += sum(a.bytes for a in signature.outputs)
        if weights <= self.machine.near_bytes // 16:
            return self.machine.traffic(activations + weights)
        return self.machine.traffic(activations) + weights / self.machine.dram


def _touched(signature: Signature) -> tuple[Argument, ...]:
    """Return the inputs that are read whole; Gather and Slice read what they return."""
    if signature.op in {"Gather", "Slice"}:
        read = signature.present[1:]
        return (*read, *(Argument(o.dtype, o.dims) for o in signature.outputs))
    return signature.present


def _element_seconds(signature: Signature) -> float:
    sizes = [argument.elements for argument in signature.outputs]
    sizes += [argument.elements for argument in signature.present]
    count = max(sizes, default=0)
    if signature.op == "Pow":
        exponent = signature.inputs[1] if len(signature.inputs) > 1 else None
        power = exponent.value if exponent is not None else None
        default = _ELEMENT_NS["Pow"]
        return count * 1e-9 * (default if power is None else _POWER_NS.get(power, default))
    extra = max(1, len(signature.present) - 1) if signature.op == "Sum" else 1
    return count * extra * 1e-9 * _ELEMENT_NS.get(_name(signature), 0.1)


def _integer(signature: Signature, name: str, default: int) -> int:
    value = dict(signature.attributes).get(name, default)
    return value if isinstance(value, int) else default
