"""The ONNX forms of the canonical operators, at every opset."""

from tensat.onnx_forms.call import (
    Absent,
    Arg,
    Const,
    Node,
    OnnxCall,
    OnnxNode,
    Operand,
    Raised,
    Ref,
)
from tensat.onnx_forms.data import Known, propagate
from tensat.onnx_forms.lowering import domain_of, lower
from tensat.onnx_forms.raising import raise_call, result_types

__all__ = [
    "Absent",
    "Arg",
    "Const",
    "Known",
    "Node",
    "OnnxCall",
    "OnnxNode",
    "Operand",
    "Raised",
    "Ref",
    "domain_of",
    "lower",
    "propagate",
    "raise_call",
    "result_types",
]
