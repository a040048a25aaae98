"""Lowering: a canonical operator becomes ONNX nodes of a given opset, if it can."""

from collections.abc import Mapping

from rulesets.ops import Attributes
from rulesets.tensor import Tensor
from tensat.onnx_forms import layout, norm, plain, resize, window
from tensat.onnx_forms.call import Lowering, NotExpressibleError, OnnxNode
from tensat.onnx_forms.form import Lower
from tensat.onnx_forms.schema import OLDEST, allowed

LOWERING: Mapping[str, Lower] = {
    name: form
    for module in (plain, window, norm, layout, resize)
    for name, form in module.LOWERING.items()
}


def lower(
    name: str,
    attributes: Attributes,
    inputs: tuple[Tensor, ...],
    outputs: tuple[Tensor, ...],
    opset: int,
) -> tuple[OnnxNode, ...] | None:
    """Return ONNX nodes that compute a canonical operator.

    Args:
        name: The operator.
        attributes: All its attributes.
        inputs: The types of its arguments.
        outputs: The types of its results.
        opset: The version of the standard domain.

    Returns:
        The nodes, in order; the outputs of the last one are the results. None if the
        opset, the element types or symbolic sizes do not allow it.
    """
    form = LOWERING.get(name)
    if form is None or opset < OLDEST:
        return None
    try:
        nodes = form(Lowering(name, attributes, inputs, outputs, opset))
    except NotExpressibleError:
        return None
    return nodes if all(allowed(node, inputs, opset) for node in nodes) else None
