"""Forms of convolutions and pools: `auto_pad` is resolved into explicit pads."""

from collections.abc import Mapping

from rulesets.ops.spec import integer, integers
from rulesets.size import Size
from tensat.onnx_forms.call import Lowering, NotExpressibleError, OnnxCall, OnnxNode, Raised
from tensat.onnx_forms.form import Lower, Raise

_COMMON = frozenset({"auto_pad", "dilations", "kernel_shape", "pads", "strides"})


def _per_axis(call: OnnxCall, name: str, count: int, default: int) -> tuple[int, ...]:
    found = call.integers(name)
    if found is None:
        return (default,) * count
    if len(found) != count:
        raise NotExpressibleError
    return found


def _same_pads(size: Size, kernel: int, stride: int, dilation: int) -> int:
    """Return the total padding with which the result has size ceil(size / stride)."""
    extent = (kernel - 1) * dilation + 1
    if stride == 1:
        return extent - 1
    if not isinstance(size, int):
        raise NotExpressibleError
    return max(0, (-(-size // stride) - 1) * stride + extent - size)


def _pads(call: OnnxCall, kernel: tuple[int, ...]) -> tuple[int, ...]:
    count = len(kernel)
    mode = call.text("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return _per_axis(call, "pads", 2 * count, 0)
    if mode == "VALID":
        return (0,) * (2 * count)
    if mode not in {"SAME_UPPER", "SAME_LOWER"}:
        raise NotExpressibleError
    spatial = call.shape()[2:]
    strides = _per_axis(call, "strides", count, 1)
    dilations = _per_axis(call, "dilations", count, 1)
    totals = tuple(map(_same_pads, spatial, kernel, strides, dilations))
    if len(totals) != count:
        raise NotExpressibleError
    small = tuple([one // 2 for one in totals])
    large = tuple([one - one // 2 for one in totals])
    return small + large if mode == "SAME_UPPER" else large + small


def _window(call: OnnxCall, kernel: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {
        "strides": _per_axis(call, "strides", len(kernel), 1),
        "dilations": _per_axis(call, "dilations", len(kernel), 1),
        "pads": _pads(call, kernel),
    }


def _weight_kernel(call: OnnxCall) -> tuple[int, ...]:
    """Return the kernel's sizes from the weight, which must agree with the attribute."""
    sizes = call.shape(1)[2:]
    kernel = tuple([size for size in sizes if isinstance(size, int)])
    if len(kernel) != len(sizes) or call.integers("kernel_shape") not in {None, kernel}:
        raise NotExpressibleError
    return kernel


def _weighted(call: OnnxCall) -> tuple[int, ...]:
    return (0, 1) if call.optional(2) is None else (0, 1, 2)


def _raise_conv(call: OnnxCall) -> Raised:
    window = _window(call, _weight_kernel(call))
    return Raised("Conv", {**window, "group": call.integer("group", 1)}, _weighted(call))


def _raise_conv_transpose(call: OnnxCall) -> Raised:
    kernel = _weight_kernel(call)
    if call.text("auto_pad", "NOTSET") not in {"NOTSET", "VALID"}:
        raise NotExpressibleError
    extra = _per_axis(call, "output_padding", len(kernel), 0)
    group = call.integer("group", 1)
    window = _window(call, kernel)
    attributes: dict[str, int | tuple[int, ...]]
    attributes = {**window, "group": group, "output_padding": extra}
    return Raised("ConvTranspose", attributes, _weighted(call))


def _raise_pool(call: OnnxCall) -> Raised:
    kernel = call.integers("kernel_shape")
    if kernel is None:
        raise NotExpressibleError
    mode = call.text("auto_pad", "NOTSET")
    ceil = call.integer("ceil_mode", 0)
    if ceil and mode != "NOTSET":
        # Runtimes differ on this.
        raise NotExpressibleError
    attributes: dict[str, int | tuple[int, ...]] = {
        **_window(call, kernel),
        "kernel": kernel,
        "ceil_mode": int(ceil != 0),
    }
    if call.op_type == "AveragePool":
        attributes["count_include_pad"] = int(call.integer("count_include_pad", 0) != 0)
    return Raised(call.op_type, attributes)


def _written(asked: Lowering, *names: str) -> dict[str, object]:
    return {name: integers(asked.attributes, name) for name in names}


def _lower_conv(asked: Lowering) -> tuple[OnnxNode, ...]:
    given = _written(asked, "strides", "pads", "dilations")
    given["group"] = integer(asked.attributes, "group")
    kernel = (asked.inputs[1].shape or ())[2:]
    if kernel and all(isinstance(size, int) for size in kernel):
        given["kernel_shape"] = kernel
    if asked.name == "ConvTranspose" and any(integers(asked.attributes, "output_padding")):
        given["output_padding"] = integers(asked.attributes, "output_padding")
    return (OnnxNode(asked.name, given, asked.arguments),)


def _lower_pool(asked: Lowering) -> tuple[OnnxNode, ...]:
    given = _written(asked, "strides", "pads")
    given["kernel_shape"] = integers(asked.attributes, "kernel")
    dilations = integers(asked.attributes, "dilations")
    if any(one != 1 for one in dilations):
        given["dilations"] = dilations
    for name in ("ceil_mode", "count_include_pad"):
        if asked.attributes.get(name):
            given[name] = 1
    return (OnnxNode(asked.name, given, asked.arguments),)


RAISING: Mapping[str, Raise] = {
    "Conv": Raise(_COMMON | {"group"}, _raise_conv),
    "ConvTranspose": Raise(_COMMON | {"group", "output_padding"}, _raise_conv_transpose),
    "MaxPool": Raise(_COMMON | {"ceil_mode", "storage_order"}, _raise_pool),
    "AveragePool": Raise(_COMMON | {"ceil_mode", "count_include_pad"}, _raise_pool),
}
LOWERING: Mapping[str, Lower] = {
    "Conv": _lower_conv,
    "ConvTranspose": _lower_conv,
    "MaxPool": _lower_pool,
    "AveragePool": _lower_pool,
}
