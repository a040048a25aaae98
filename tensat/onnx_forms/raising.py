"""Raising: an ONNX node becomes a canonical operator, or stays as it is."""

from collections.abc import Mapping

from rulesets.errors import OperatorError
from rulesets.ops import OPERATORS, complete
from rulesets.tensor import Tensor
from tensat.onnx_forms import layout, norm, plain, resize, upsample, window
from tensat.onnx_forms.call import NotExpressibleError, OnnxCall, Raised
from tensat.onnx_forms.form import Raise
from tensat.onnx_forms.lowering import lower
from tensat.onnx_forms.schema import OLDEST, schema_of

RAISING: Mapping[str, Raise] = {
    name: form
    for module in (plain, window, norm, layout, resize, upsample)
    for name, form in module.RAISING.items()
}


def raise_call(call: OnnxCall) -> Raised | None:
    """Return the canonical form of an ONNX node of the standard domain.

    The form means exactly the same, its attributes are complete, its shape rule accepts
    the arguments, and `lower` can write it at the same opset. Where any of this fails, or
    an output besides the canonical ones is used, there is none.
    """
    found = _canonical(call)
    if found is None:
        return None
    raised, outputs = found
    tensors = _arguments(call, raised)
    if lower(raised.name, raised.attributes, tensors, outputs, call.opset) is None:
        return None
    return raised


def result_types(call: OnnxCall) -> tuple[Tensor, ...] | None:
    """Return the types of a node's canonical results, even if `lower` cannot write it.

    A Reshape to two sizes that only the shape operand knows, say, cannot be written with
    a constant operand, but its type is known. None if there is no canonical form.
    """
    found = _canonical(call)
    return None if found is None else found[1]


def _canonical(call: OnnxCall) -> tuple[Raised, tuple[Tensor, ...]] | None:
    """Return the canonical form, with complete attributes, and the types of its results."""
    form = RAISING.get(call.op_type) or plain.own_raise(call.op_type)
    schema = schema_of(call.op_type, call.opset)
    if form is None or schema is None or call.opset < OLDEST:
        return None
    if not set(call.attributes) <= form.attributes & set(schema.attributes):
        return None
    if call.op_type != "Split" and not call.used_outputs <= {0}:
        return None
    try:
        raised = form.form(call)
        operator = OPERATORS[raised.name]
        attributes = complete(operator, raised.attributes)
        outputs = operator.infer(attributes, _arguments(call, raised))
    except (NotExpressibleError, OperatorError):
        return None
    return Raised(raised.name, attributes, raised.operands), outputs


def _arguments(call: OnnxCall, raised: Raised) -> tuple[Tensor, ...]:
    return tuple([call.operand(position).tensor for position in raised.operands])
