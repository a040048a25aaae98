"""Raising: an ONNX node becomes a canonical operator, or stays as it is."""

from collections.abc import Mapping

from rulesets.errors import OperatorError
from rulesets.ops import OPERATORS, complete
from tensat.onnx_forms import layout, norm, plain, resize, window
from tensat.onnx_forms.call import NotExpressibleError, OnnxCall, Raised
from tensat.onnx_forms.form import Raise
from tensat.onnx_forms.lowering import lower
from tensat.onnx_forms.schema import OLDEST, schema_of

RAISING: Mapping[str, Raise] = {
    name: form
    for module in (plain, window, norm, layout, resize)
    for name, form in module.RAISING.items()
}


def raise_call(call: OnnxCall) -> Raised | None:
    """Return the canonical form of an ONNX node of the standard domain.

    The form means exactly the same, its attributes are complete, its shape rule accepts
    the arguments, and `lower` can write it at the same opset. Where any of this fails, or
    an output besides the canonical ones is used, there is none.
    """
    form = RAISING.get(call.op_type)
    schema = schema_of(call.op_type, call.opset)
    if form is None or schema is None or call.opset < OLDEST:
        return None
    if not set(call.attributes) <= form.attributes & set(schema.attributes):
        return None
    if call.op_type != "Split" and not call.used_outputs <= {0}:
        return None
    try:
        raised = form.form(call)
        tensors = tuple([call.operand(position).tensor for position in raised.operands])
        operator = OPERATORS[raised.name]
        attributes = complete(operator, raised.attributes)
        outputs = operator.infer(attributes, tensors)
    except (NotExpressibleError, OperatorError):
        return None
    if lower(raised.name, attributes, tensors, outputs, call.opset) is None:
        return None
    return Raised(raised.name, attributes, raised.operands)
