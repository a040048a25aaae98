"""Channels-last convolutions: the operator's meaning, its schema, what stands around it."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tensat.cuda.nhwc import as_standard, channels_last, packed_weights
from tensat.errors import InternalError
from tests.tensat.cuda.nhwc_reference import NhwcConv

SIZES = {"x": [2, 6, 9, 7]}


def _model(text: str, dtype: type = np.float32, **weights: tuple[int, ...]) -> ir.Model:
    """Return a model from ONNX's text form of its nodes, with random weights."""
    rng = np.random.default_rng(3)
    graph = onnx.parser.parse_graph(
        f"g ({_kind(dtype)}[2,6,9,7] x) => ({_kind(dtype)} y) {{ {text} }}"
    )
    for name, dims in weights.items():
        array = rng.uniform(-1, 1, dims).astype(dtype)
        graph.initializer.append(numpy_helper.from_array(array, name))
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    model.graph.output[0].ClearField("type")
    return ir.from_proto(onnx.shape_inference.infer_shapes(model, strict_mode=True))


def _kind(dtype: type) -> str:
    return {np.float32: "float", np.float16: "float16", np.float64: "double"}[dtype]


def _run(model: ir.Model, dtype: type = np.float32) -> list[np.ndarray]:
    x = np.random.default_rng(4).uniform(-1, 1, SIZES["x"]).astype(dtype)
    evaluator = ReferenceEvaluator(ir.to_proto(model), new_ops=[NhwcConv])
    return list(evaluator.run(None, {"x": x}))


def _types(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


CASES = {
    "plain": ("y = Conv<pads=[1,1,1,1]>(x, w)", {"w": (8, 6, 3, 3)}),
    "bias": ("y = Conv<kernel_shape=[3,1]>(x, w, b)", {"w": (8, 6, 3, 1), "b": (8,)}),
    "strides": ("y = Conv<strides=[2,1], dilations=[1,2]>(x, w)", {"w": (5, 6, 2, 3)}),
    "asymmetric": ("y = Conv<pads=[0,1,2,0]>(x, w)", {"w": (4, 6, 3, 3)}),
    "auto_pad": ('y = Conv<auto_pad="SAME_UPPER">(x, w)', {"w": (4, 6, 3, 3)}),
    "depthwise": ("y = Conv<group=6>(x, w)", {"w": (6, 1, 3, 3)}),
    "grouped": ("y = Conv<group=2>(x, w)", {"w": (8, 3, 1, 1)}),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["float32", "float16"])
@pytest.mark.parametrize(("text", "weights"), CASES.values(), ids=list(CASES))
def test_a_convolution_keeps_its_value(
    text: str, weights: dict[str, tuple[int, ...]], dtype: type
) -> None:
    """Between its two transpositions the operator computes what the Conv did."""
    model = _model(text, dtype, **weights)
    result = channels_last(model)
    assert _types(result.model) == ["Transpose", "NhwcConv", "Transpose"]
    assert (result.convolutions, result.transpositions) == (("y",), 2)
    (wanted,), (found,) = _run(model, dtype), _run(result.model, dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["float32", "float16"])
@pytest.mark.parametrize(("text", "weights"), CASES.values(), ids=list(CASES))
def test_it_can_be_written_in_standard_operators(
    text: str, weights: dict[str, tuple[int, ...]], dtype: type
) -> None:
    """Such a model computes the same, and the processor runs it."""
    model = _model(text, dtype, **weights)
    last = channels_last(model).model
    written = as_standard(last)
    assert "NhwcConv" in _types(last)
    assert {node.domain for node in written.graph} == {""}
    (wanted,), (found,) = _run(model, dtype), _run(written, dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)
    proto = ir.to_proto(written).SerializeToString()
    onnxruntime.InferenceSession(proto, providers=["CPUExecutionProvider"])


def test_weights_that_are_not_stored_are_found() -> None:
    """The operator would take them in another order, or not at all."""
    model = channels_last(_model(*CASES["plain"][:1], **CASES["plain"][1])).model
    (conv,) = [node for node in model.graph if node.op_type == "NhwcConv"]
    conv.replace_input_with(1, model.graph.inputs[0])
    with pytest.raises(InternalError, match=r"weights of .* are not stored"):
        as_standard(model)


@pytest.mark.parametrize(("text", "weights"), CASES.values(), ids=list(CASES))
def test_the_runtime_knows_the_operator(
    text: str, weights: dict[str, tuple[int, ...]]
) -> None:
    """ONNX Runtime's schema and strict shape inference accept it; the CPU cannot run it."""
    proto = ir.to_proto(channels_last(_model(text, **weights)).model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.strict_shape_type_inference", "1")
    with pytest.raises(Exception, match=r"NOT_IMPLEMENTED : .* NhwcConv\(1\)"):
        onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )


CHAIN = """
    a = Conv<pads=[1,1,1,1]>(x, w)
    r = Relu(a)
    c = Conv<pads=[1,1,1,1]>(r, v)
    s = Add(c, a)
    h = HardSigmoid(s)
    m = Mul(s, h)
    y = Conv(m, w)
"""


def test_transpositions_meet_and_go() -> None:
    """Of a chain with a residual only the first and the last transposition are left."""
    model = _model(CHAIN, w=(6, 6, 3, 3), v=(6, 6, 3, 3))
    result = channels_last(model)
    types = _types(result.model)
    assert (types[0], types[-1], types.count("Transpose")) == ("Transpose",) * 2 + (2,)
    assert result.transpositions == 2
    (wanted,), (found,) = _run(model), _run(result.model)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    assert sorted(result.model.graph.initializers) == ["v_nhwc", "w_nhwc"]
    assert result.model.graph.outputs[0].name == "y"


def test_the_given_model_is_not_changed() -> None:
    """The result is a new model."""
    model = _model(CHAIN, w=(6, 6, 3, 3), v=(6, 6, 3, 3))
    before = ir.to_proto(model).SerializeToString()
    channels_last(model)
    assert ir.to_proto(model).SerializeToString() == before


def test_a_choice_is_kept() -> None:
    """Only the chosen convolutions change; transpositions stand around them."""
    model = _model(CHAIN, w=(6, 6, 3, 3), v=(6, 6, 3, 3))
    result = channels_last(model, lambda node: node.outputs[0].name == "c")
    assert result.convolutions == ("c",)
    assert _types(result.model).count("Conv") == 2
    assert sorted(result.model.graph.initializers) == ["v_nhwc", "w"]
    np.testing.assert_allclose(_run(result.model)[0], _run(model)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axis", [1, 2, -1, -4], ids=str)
def test_concatenation_changes_its_axis(axis: int) -> None:
    """Pieces that are channels-last are put together along the axis that it is there."""
    text = f"a = Conv(x, w)\nb = Conv(x, v)\ny = Concat<axis={axis}>(a, b)"
    model = _model(text, w=(5, 6, 3, 3), v=(5, 6, 3, 3))
    result = channels_last(model)
    assert _types(result.model)[-2:] == ["Concat", "Transpose"]
    assert _types(result.model).count("Transpose") == 3
    np.testing.assert_allclose(_run(result.model)[0], _run(model)[0], rtol=1e-4, atol=1e-4)


BROADCAST = """
    a = Conv(x, w)
    s = Add(a, row)
    y = Conv(s, v)
"""


def test_broadcast_operands_stay_where_they_are() -> None:
    """A constant per column would be added along channels: nothing moves past it."""
    model = _model(BROADCAST, w=(5, 6, 3, 3), v=(4, 5, 1, 1), row=(5,))
    result = channels_last(model)
    assert _types(result.model).count("Transpose") == 4
    np.testing.assert_allclose(_run(result.model)[0], _run(model)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dims", [(), (1,), (1, 1, 1)], ids=str)
def test_single_numbers_fit_any_layout(dims: tuple[int, ...]) -> None:
    """An operand of one number does not keep a transposition."""
    text = "a = Conv(x, w)\ns = Mul(a, k)\ny = Conv(s, v)"
    model = _model(text, w=(5, 6, 3, 3), v=(4, 5, 1, 1), k=dims)
    result = channels_last(model)
    assert _types(result.model).count("Transpose") == 2
    np.testing.assert_allclose(_run(result.model)[0], _run(model)[0], rtol=1e-4, atol=1e-4)


def test_a_gate_is_broadcast_in_either_layout() -> None:
    """A factor per channel is channels-last where what it scales is."""
    text = """
        a = Conv(x, w)
        g = Conv<kernel_shape=[7,5]>(a, v)
        h = Sigmoid(g)
        y = Mul(a, h)
    """
    model = _model(text, w=(5, 6, 3, 3), v=(5, 5, 7, 5))
    result = channels_last(model)
    assert _types(result.model).count("Transpose") == 2
    np.testing.assert_allclose(_run(result.model)[0], _run(model)[0], rtol=1e-4, atol=1e-4)


def test_an_inner_value_that_is_returned_keeps_its_layout() -> None:
    """An output in the middle has name and sizes as before."""
    model = _model(
        "a = Conv(x, w)\nr = Relu(a)\ny = Conv(r, v)", w=(5, 6, 3, 3), v=(4, 5, 1, 1)
    )
    inner = next(n for n in model.graph if n.op_type == "Relu").outputs[0]
    model.graph.outputs.append(inner)
    result = channels_last(model)
    assert [value.name for value in result.model.graph.outputs] == ["y", "r"]
    for found, wanted in zip(_run(result.model), _run(model), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_other_convolutions_stay() -> None:
    """Weights that are computed or inputs, other types and other ranks are left alone."""
    computed = _model("v = Relu(w)\ny = Conv(x, v)", w=(5, 6, 3, 3))
    double = _model("y = Conv(x, w)", np.float64, w=(5, 6, 3, 3))
    weight_input = _model("y = Conv(x, w)", w=(5, 6, 3, 3))
    weight_input.graph.inputs.append(weight_input.graph.initializers["w"])
    for model in (computed, double, weight_input):
        result = channels_last(model)
        assert result.convolutions == ()
        assert "Conv" in _types(result.model)
        assert "com.microsoft" not in result.model.graph.opset_imports


def test_weights_of_constant_nodes_become_initializers() -> None:
    """The operator needs an initializer; the node that held the weights goes."""
    model = _model("y = Conv(x, w)", w=(5, 6, 3, 3))
    weights = model.graph.initializers.pop("w")
    assert weights.const_value is not None
    constant = ir.node("Constant", [], {"value": weights.const_value})
    conv = model.graph.node(0)
    model.graph.insert_before(conv, constant)
    conv.replace_input_with(1, constant.outputs[0])
    result = channels_last(model)
    assert _types(result.model) == ["Transpose", "NhwcConv", "Transpose"]
    assert len(result.model.graph.initializers) == 1
    np.testing.assert_allclose(_run(result.model)[0], _run(model)[0], rtol=1e-4, atol=1e-4)


def test_weights_are_packed_as_the_kernel_reads_them() -> None:
    """Output channels first, input channels last; contiguous."""
    weights = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    packed = packed_weights(weights)
    assert packed.shape == (2, 4, 5, 3)
    assert packed[1, 3, 2, 0] == weights[1, 0, 3, 2]
    assert packed.flags["C_CONTIGUOUS"]


def test_types_of_the_result_are_stated() -> None:
    """The new values have types and sizes, so that the model can be checked."""
    result = channels_last(_model("y = Conv(x, w)", w=(5, 6, 3, 3)))
    conv = next(node for node in result.model.graph if node.op_type == "NhwcConv")
    assert conv.outputs[0].dtype == ir.DataType.FLOAT
    assert list(conv.outputs[0].shape or ()) == [2, 7, 5, 5]
    assert conv.attributes["kernel_shape"].as_ints() == (3, 3)
