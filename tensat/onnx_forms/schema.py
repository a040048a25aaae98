"""What the ONNX operator schemas allow at an opset: operators, attributes, element types.

Source: the schemas of the installed `onnx` package.
"""

from functools import cache

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
from onnx.defs import OpSchema

from rulesets.tensor import Tensor
from tensat.onnx_forms.call import Arg, Const, OnnxNode, Ref

OLDEST = 7
_ONNX_NAME = {"float32": "float", "float64": "double"}


@cache
def schema_of(op_type: str, opset: int) -> OpSchema | None:
    """Return the schema of a standard operator at an opset, None if there is none."""
    try:
        schema = onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        return None
    return None if schema.deprecated else schema


def allowed(node: OnnxNode, tensors: tuple[Tensor, ...], opset: int) -> bool:
    """Return whether a node is valid at an opset, by its attributes and element types.

    Args:
        node: The node.
        tensors: The types of the arguments its `Arg` inputs mean.
        opset: The version of the standard domain.
    """
    schema = schema_of(node.op_type, opset)
    if schema is None or not set(node.attributes) <= set(schema.attributes):
        return False
    types = [_dtype(ref, tensors) for ref in node.inputs]
    return len(types) <= schema.max_input and all(
        dtype is None or _takes(node.op_type, opset, position, dtype)
        for position, dtype in enumerate(types)
    )


def array_dtype(dtype: str) -> np.dtype[np.generic]:
    """Return NumPy's type for an element type such as "float32" or "bfloat16"."""
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def dtype_of(array: npt.NDArray[np.generic]) -> str:
    """Return the name of an array's element type."""
    return array.dtype.name


def type_number(dtype: str) -> int:
    """Return ONNX's number of an element type."""
    return int(onnx.TensorProto.DataType.Value(_ONNX_NAME.get(dtype, dtype).upper()))


def type_name(number: int) -> str | None:
    """Return the element type with ONNX's number, None if there is none."""
    if number not in onnx.TensorProto.DataType.values():
        return None
    found = str(onnx.TensorProto.DataType.Name(number))
    return {"FLOAT": "float32", "DOUBLE": "float64"}.get(found, found.lower())


def _dtype(ref: Ref, tensors: tuple[Tensor, ...]) -> str | None:
    if isinstance(ref, Arg):
        return tensors[ref.position].dtype
    return dtype_of(ref.array) if isinstance(ref, Const) else None


@cache
def _takes(op_type: str, opset: int, position: int, dtype: str) -> bool:
    schema = schema_of(op_type, opset)
    assert schema is not None
    formal = schema.inputs[min(position, len(schema.inputs) - 1)]
    return f"tensor({_ONNX_NAME.get(dtype, dtype)})" in formal.types
