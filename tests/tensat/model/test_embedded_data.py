"""Tensors in a model file that have too little data, or too much."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from tensat.errors import ModelError
from tensat.model.embedded_data import check_embedded_data
from tensat.model.onnx_import import read
from tests.tensat.model.onnx_models import FLOAT, body, model, node, value

X, Y = [value("x", [2, 3])], [value("y", [2, 3])]

KINDS = [
    kind
    for kind in ir.DataType
    if kind not in (ir.DataType.UNDEFINED, ir.DataType.STRING)
    and "COMPLEX" not in kind.name
]


def with_weight(tensor: onnx.TensorProto) -> onnx.ModelProto:
    """A model that adds a weight."""
    proto = model([node("Add", "x w", "y")], X, Y)
    tensor.name = "w"
    proto.graph.initializer.append(tensor)
    return proto


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "needs 24 bytes of data and has 0"),
        (bytes(23), "needs 24 bytes of data and has 23"),
        (bytes(28), "needs 24 bytes of data and has 28"),
    ],
    ids=["none", "short", "long"],
)
def test_raw_data_fits_the_shape(raw: bytes, text: str) -> None:
    """The error names the tensor, its shape and both amounts."""
    tensor = TensorProto(data_type=FLOAT, dims=[2, 3], raw_data=raw)
    with pytest.raises(ModelError, match=rf"tensor 'w' of shape \[2, 3\] {text}"):
        read(with_weight(tensor))


def test_numbers_fit_the_shape() -> None:
    """Those that are no raw data are counted."""
    tensor = TensorProto(data_type=FLOAT, dims=[2, 3], float_data=[1.0, 2.0])
    with pytest.raises(ModelError, match="needs 6 elements of data and has 2"):
        read(with_weight(tensor))


@pytest.mark.parametrize("place", ["subgraph", "function", "attribute"])
def test_all_places_are_looked_at(place: str) -> None:
    """Tensors stand in attributes, too, and in bodies."""
    short = TensorProto(name="w", data_type=FLOAT, dims=[3], raw_data=b"1234")
    constant = helper.make_node("Constant", [], ["c"], value=short)
    proto = model([node("Relu", "x", "y")], X, Y)
    if place == "subgraph":
        branch = body([node("Relu", "x", "o")], [value("o", [2, 3])])
        branch.initializer.append(short)
        proto = model(
            [node("If", "b", "y", then_branch=branch, else_branch=branch)],
            [*X, value("b", [], TensorProto.BOOL)], Y,
        )  # fmt: skip
    elif place == "function":
        opsets = [helper.make_opsetid("", 17)]
        proto.functions.append(
            helper.make_function("own", "F", [], ["c"], [constant], opsets)
        )
    else:
        proto.graph.node.append(constant)
    with pytest.raises(ModelError, match=r"the model: tensor 'w' of shape .* 12 bytes"):
        read(proto)


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "fields"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_libraries_write_passes(kind: ir.DataType, raw: bool) -> None:
    """Of every element type, odd numbers of small elements among them."""
    values = np.arange(5).astype(kind.numpy())
    if raw:
        tensor = ir.to_proto(ir.Tensor(values, dtype=kind, name="w"))
    else:
        tensor = helper.make_tensor("w", kind.value, [5], values.astype(np.float32))
    check_embedded_data(with_weight(tensor), "the model")


@pytest.mark.parametrize(
    "tensor",
    [
        helper.make_tensor("w", TensorProto.COMPLEX64, [2], [1 + 2j, 3j]),
        helper.make_tensor("w", TensorProto.STRING, [2], [b"a", b"bc"]),
        helper.make_tensor("w", FLOAT, [0, 4], []),
        helper.make_tensor("w", FLOAT, [], [1.0]),
        TensorProto(data_type=99, dims=[2]),
        TensorProto(dims=[2]),
    ],
    ids=["complex", "strings", "empty", "scalar", "unknown type", "no type"],
)
def test_other_tensors_pass(tensor: onnx.TensorProto) -> None:
    """What is known fits; what is not known is not judged."""
    check_embedded_data(with_weight(tensor), "the model")
