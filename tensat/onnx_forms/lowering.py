"""Lowering: a canonical operator becomes ONNX nodes of a given opset, if it can.

An operator that only one runtime has is named ``domain:Type``; it is written as it is. A
composite operator that the opset does not have yet is written out.
"""

from collections.abc import Mapping

from rulesets.ops import Attributes
from rulesets.tensor import Tensor
from tensat.onnx_forms import layout, norm, plain, resize, upsample, window
from tensat.onnx_forms.call import (
    Absent,
    Arg,
    Lowering,
    NotExpressibleError,
    OnnxNode,
    Ref,
)
from tensat.onnx_forms.form import Lower
from tensat.onnx_forms.schema import OLDEST, allowed, schema_of
from tensat.onnx_forms.written_out import WRITTEN_OUT

LOWERING: Mapping[str, Lower] = {
    name: form
    for module in (plain, window, norm, layout, resize, upsample)
    for name, form in module.LOWERING.items()
}


def domain_of(name: str) -> str:
    """Return the domain of an operator that only one runtime has; "" for canonical ones."""
    return name.rpartition(":")[0]


def lower(
    name: str,
    attributes: Attributes,
    inputs: tuple[Tensor | None, ...],
    outputs: tuple[Tensor, ...],
    opset: int,
) -> tuple[OnnxNode, ...] | None:
    """Return ONNX nodes that compute an operator.

    Args:
        name: A canonical operator, or ``domain:Type`` for one of another domain.
        attributes: All its attributes; of a ``domain:Type`` those of the ONNX node.
        inputs: The types of its arguments; of a ``domain:Type`` None for an absent one.
        outputs: The types of its results.
        opset: The version of the standard domain.

    Returns:
        The nodes, in order; the outputs of the last one are the results. None if the
        opset, the element types or symbolic sizes do not allow it.
    """
    if domain := domain_of(name):
        refs = tuple([_argument(place, one) for place, one in enumerate(inputs)])
        return (OnnxNode(name.removeprefix(f"{domain}:"), attributes, refs, domain),)
    form = LOWERING.get(name) or plain.own_lower(name)
    if schema_of(name, opset) is None:
        form = WRITTEN_OUT.get(name, form)
    present = tuple([one for one in inputs if one is not None])
    if form is None or opset < OLDEST:
        return None
    try:
        nodes = form(Lowering(name, attributes, present, outputs, opset))
    except NotExpressibleError:
        return None
    return nodes if all(allowed(node, present, opset) for node in nodes) else None


def _argument(place: int, tensor: Tensor | None) -> Ref:
    return Absent() if tensor is None else Arg(place)
