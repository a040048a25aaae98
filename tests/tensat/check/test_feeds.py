"""Inputs are found for models that say little about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper

from tensat.check.feed_sizes import candidate_shapes
from tensat.check.feed_values import NATURAL, STYLES, Style, value
from tensat.check.feeds import find_inputs, parse_input_shapes
from tensat.errors import ExecutionError, UsageError
from tensat.runtime import Runtime, Value

Declared = tuple[str, int, list[int | str | None]]


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """One child for all tests of this file."""
    with Runtime() as made:
        yield made


def _save(
    path: Path, nodes: Sequence[NodeProto], inputs: Sequence[Declared], **weights: object
) -> str:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*declared) for declared in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(np.asarray(w), name) for name, w in weights.items()],
    )
    opset = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return str(path)


def _node(op: str, *inputs: str, **attributes: object) -> NodeProto:
    return helper.make_node(op, list(inputs), ["y"], **attributes)


@pytest.mark.parametrize(
    ("dims", "first"),
    [
        pytest.param(("N", 3, "H", "W"), (1, 3, 224, 224), id="image"),
        pytest.param((None, 3, "?", "?"), (1, 3, 224, 224), id="image without names"),
        pytest.param((None, None, None, 3), (1, 224, 224, 3), id="channels last"),
        pytest.param(("batch", "seq"), (1, 16), id="tokens"),
        pytest.param(("time", 576), (16, 576), id="frames first"),
        pytest.param((2, None, 128), (2, 1, 128), id="recurrent state"),
        pytest.param(("b", "a", "a"), (1, 16, 16), id="one symbol twice"),
        pytest.param((4, 5), (4, 5), id="closed"),
    ],
)
def test_the_likeliest_size_comes_first(
    dims: tuple[int | str | None, ...], first: tuple[int, ...]
) -> None:
    """Open dimensions get what they usually are."""
    declared = [Value("x", "tensor(float)", dims)]
    assert dict(next(iter(candidate_shapes(declared, {})))) == {"x": first}


def test_question_marks_are_not_one_symbol() -> None:
    """Exporters write `?` for any size: the user may give two different ones."""
    declared = [Value("x", "tensor(float)", (1, 3, "?", "?"))]
    shapes = list(candidate_shapes(declared, {"x": (1, 3, 48, 192)}))
    assert shapes == [{"x": (1, 3, 48, 192)}]


def test_a_sum_of_symbols_is_summed() -> None:
    """Exporters of decoders write `past + seq`."""
    declared = [
        Value("ids", "tensor(int64)", ("batch", "seq")),
        Value("past", "tensor(float)", ("batch", "past")),
        Value("mask", "tensor(int64)", ("batch", "past + seq")),
    ]
    shapes = next(iter(candidate_shapes(declared, {"past": (1, 5)})))
    assert shapes["mask"] == (1, 21)


def test_the_same_seed_gives_the_same_values(runtime: Runtime, tmp_path: Path) -> None:
    """And another seed gives others."""
    path = _save(tmp_path / "m", [_node("Relu", "x")], [("x", TensorProto.FLOAT, ["n", 4])])
    found = find_inputs(runtime, path)
    assert found.sizes == {"n": 1}
    np.testing.assert_array_equal(found.feeds(3)["x"], found.feeds(3)["x"])
    assert not np.array_equal(found.feeds(3)["x"], found.feeds(4)["x"])


def test_a_length_that_only_fits_once_is_found(runtime: Runtime, tmp_path: Path) -> None:
    """The open dimension must be 576 here."""
    nodes = [_node("MatMul", "x", "w")]
    inputs: list[Declared] = [("x", TensorProto.FLOAT, ["batch", "samples"])]
    path = _save(tmp_path / "m", nodes, inputs, w=np.ones((576, 2), np.float32))
    assert find_inputs(runtime, path).shapes == {"x": (1, 576)}


def test_an_index_into_a_short_table_is_found(runtime: Runtime, tmp_path: Path) -> None:
    """Integers up to 100 fail here, smaller ones run."""
    nodes = [_node("Gather", "table", "x")]
    inputs: list[Declared] = [("x", TensorProto.INT64, [1, 8])]
    path = _save(tmp_path / "m", nodes, inputs, table=np.ones((2, 3), np.float32))
    found = find_inputs(runtime, path)
    assert found.style is not NATURAL
    assert set(found.feeds(0)["x"].reshape(-1)) <= {0, 1}


def test_values_with_a_finite_output_are_preferred(
    runtime: Runtime, tmp_path: Path
) -> None:
    """A logarithm wants positive inputs; where nothing is finite, what runs is taken."""
    inputs: list[Declared] = [("x", TensorProto.FLOAT, [1])]
    path = _save(tmp_path / "m", [_node("Log", "x")], inputs)
    assert find_inputs(runtime, path).feeds(0)["x"] > 0
    not_a_number = np.array([np.nan], np.float32)
    nan = _save(tmp_path / "n", [_node("Mul", "x", "w")], inputs, w=not_a_number)
    assert find_inputs(runtime, nan).attempts >= 1


def test_a_given_shape_is_used(runtime: Runtime, tmp_path: Path) -> None:
    """Its symbols hold for the other inputs too."""
    inputs: list[Declared] = [
        ("x", TensorProto.FLOAT, ["n", 4]),
        ("z", TensorProto.FLOAT, ["n", 4]),
    ]
    path = _save(tmp_path / "m", [_node("Add", "x", "z")], inputs)
    found = find_inputs(runtime, path, {"x": (7, 4)})
    assert found.shapes == {"x": (7, 4), "z": (7, 4)}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param({"q": (1,)}, "no such input; inputs: x", id="name"),
        pytest.param({"x": (7, 5)}, "x:7,5: the model declares n,4", id="closed size"),
        pytest.param({"x": (7,)}, "the model declares n,4", id="rank"),
    ],
)
def test_a_given_shape_must_fit(
    runtime: Runtime, tmp_path: Path, given: dict[str, tuple[int, ...]], text: str
) -> None:
    """The text says what the model declares."""
    path = _save(tmp_path / "m", [_node("Relu", "x")], [("x", TensorProto.FLOAT, ["n", 4])])
    with pytest.raises(UsageError, match=text):
        find_inputs(runtime, path, given)


def test_what_was_tried_is_told(runtime: Runtime, tmp_path: Path) -> None:
    """A model that runs on nothing names its first input and the remedy."""
    nodes = [_node("MatMul", "x", "w")]
    inputs: list[Declared] = [("x", TensorProto.FLOAT, ["batch", "samples"])]
    path = _save(tmp_path / "m", nodes, inputs, w=np.ones((577, 2), np.float32))
    with pytest.raises(ExecutionError, match=r"first x:1,16\).*--input-shape"):
        find_inputs(runtime, path)


@pytest.mark.parametrize(
    ("texts", "shapes"),
    [
        pytest.param(["x:1,3,224,224"], {"x": (1, 3, 224, 224)}, id="image"),
        pytest.param(["a:0:2, 3", "sr:"], {"a:0": (2, 3), "sr": ()}, id="colon, scalar"),
    ],
)
def test_shapes_are_read(texts: list[str], shapes: dict[str, tuple[int, ...]]) -> None:
    """The last colon separates name and sizes."""
    assert parse_input_shapes(texts) == shapes


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        pytest.param(["x"], "is not NAME:SIZE", id="no sizes"),
        pytest.param(["x:1,-2"], "is not NAME:SIZE", id="negative"),
        pytest.param([":1"], "is not NAME:SIZE", id="no name"),
        pytest.param(["x:1", "x:2"], "given twice", id="twice"),
    ],
)
def test_other_texts_are_refused(texts: list[str], problem: str) -> None:
    """The text says which form is possible."""
    with pytest.raises(UsageError, match=problem):
        parse_input_shapes(texts)


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize(
    "kind", ["float", "float16", "bfloat16", "int32", "bool", "string"]
)
def test_every_style_has_every_type(style: Style, kind: str) -> None:
    """Values have the declared type and the asked shape."""
    declared = Value("x", f"tensor({kind})", (2, 3))
    made = value(declared, (2, 3), style, np.random.default_rng(0))
    assert made.shape == (2, 3)
    expected = {"float": "float32", "string": "object"}.get(kind, kind)
    assert made.dtype.name == expected


def test_a_sequence_is_refused() -> None:
    """The text names the input and its type."""
    declared = Value("x", "seq(tensor(float))", ())
    with pytest.raises(UsageError, match=r"input x is a seq\(tensor\(float\)\)"):
        value(declared, (), NATURAL, np.random.default_rng(0))
