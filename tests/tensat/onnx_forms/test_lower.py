"""Every canonical operator, written as ONNX at every opset, against ONNX itself."""

import numpy as np
import onnx
import pytest

from rulesets.ops import OPERATORS, SPECIAL, array_of
from rulesets.tensor import Tensor
from tensat.onnx_forms import Arg, Const, OnnxCall, OnnxNode, Operand, lower, raise_call
from tensat.onnx_forms.schema import schema_of, type_number
from tests.rulesets.ops.cases import Case, cases
from tests.tensat.onnx_forms.models import (
    NEWEST,
    OPSETS,
    model_of,
    random_array,
    reference,
    run,
    types_of,
)

SEED = 20260
CASES = tuple(cases(SEED, 5))
FIRST = {
    **dict.fromkeys(("Erf", "Sign", "Where"), 9),
    "Expand": 8,
    "Round": 11,
    **dict.fromkeys(("LessOrEqual", "GreaterOrEqual"), 12),
}


def _written(case: Case, opset: int) -> tuple[OnnxNode, ...] | None:
    outputs = case.operator.infer(case.attributes, case.inputs)
    return lower(case.name, case.attributes, case.inputs, outputs, opset)


def _call(case: Case, node: OnnxNode, opset: int) -> OnnxCall:
    """Return the only node of a form as a call, as an importer would see it."""
    outputs = len(case.operator.infer(case.attributes, case.inputs))
    operands: list[Operand | None] = []
    for ref in node.inputs:
        if isinstance(ref, Arg):
            operands.append(Operand(case.inputs[ref.position]))
        elif isinstance(ref, Const):
            tensor = Tensor(ref.array.dtype.name, ref.array.shape)
            operands.append(Operand(tensor, ref.array))
        else:
            operands.append(None)
    used = frozenset(range(outputs))
    return OnnxCall(node.op_type, opset, node.attributes, tuple(operands), outputs, used)


def _opsets(case: Case) -> list[int]:
    """Return the oldest opset and those at which the operator's schema changed."""
    schemas = [schema_of(case.name, opset) for opset in OPSETS]
    since = {schema.since_version for schema in schemas if schema is not None}
    return [opset for opset in OPSETS if opset == OPSETS[0] or opset in since]


def _plain(case: Case) -> bool:
    return case.operator.arity != (0, 0)


_APPLIED = [case for case in CASES if _plain(case)]


@pytest.mark.parametrize("case", _APPLIED, ids=str)
def test_raising_what_was_lowered_gives_the_operator_back(case: Case) -> None:
    """At every opset that has it, reading it back gives the same operator."""
    found = 0
    for opset in OPSETS:
        nodes = _written(case, opset)
        if nodes is None or schema_of(case.name, opset) is None:
            continue  # not at all, or written out
        found += 1
        assert len(nodes) == 1
        raised = raise_call(_call(case, nodes[0], opset))
        assert raised is not None, (opset, nodes)
        assert (raised.name, raised.attributes) == (case.name, case.attributes), opset
        assert raised.operands == tuple(range(len(case.inputs)))
    assert found > 0


@pytest.mark.parametrize("name", sorted(set(OPERATORS) - SPECIAL))
def test_newest_opset_writes_every_operator(name: str) -> None:
    """At the newest opset every operator with float arguments can be written."""
    assert any(_written(case, NEWEST) for case in CASES if case.name == name)


@pytest.mark.parametrize(("name", "first"), FIRST.items(), ids=FIRST)
def test_first_opset(name: str, first: int) -> None:
    """An operator is not written before the opset that introduced it."""
    some = [case for case in CASES if case.name == name]
    assert all(_written(case, first - 1) is None for case in some)
    assert any(_written(case, first) is not None for case in some)


@pytest.mark.parametrize("case", _APPLIED, ids=str)
def test_shape_rule_agrees_with_onnx(case: Case) -> None:
    """Shape rule, ONNX's shape inference and the value's shape are the same."""
    expected = case.operator.infer(case.attributes, case.inputs)
    nodes = _written(case, NEWEST)
    assert nodes is not None
    model = model_of(nodes, case.inputs, len(expected), NEWEST)
    onnx.checker.check_model(model, full_check=True)
    assert types_of(model) == tuple((type_number(one.dtype), one.shape) for one in expected)
    arrays = [random_array(one, SEED + index) for index, one in enumerate(case.inputs)]
    for array, one in zip(_feed(case, NEWEST, arrays), expected, strict=True):
        assert (array.dtype.name, array.shape) == (one.dtype, one.shape)


def _feed(case: Case, opset: int, arrays: list[np.ndarray]) -> list[np.ndarray]:
    outputs = len(case.operator.infer(case.attributes, case.inputs))
    nodes = _written(case, opset)
    assert nodes is not None
    return run(model_of(nodes, case.inputs, outputs, opset), _tamed(case, arrays))


def _tamed(case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return arguments on which every operator is defined."""
    positive = {"Log", "Sqrt", "Reciprocal", "Div", "Pow", "BatchNormalization"}
    if case.name not in positive:
        return arrays
    return [np.asarray(np.abs(array) + 1).astype(array.dtype) for array in arrays]


@pytest.mark.parametrize("case", _APPLIED, ids=str)
def test_value_does_not_depend_on_the_opset(case: Case) -> None:
    """Written at old and new opsets an operator is valid and gives one value."""
    arrays = [random_array(one, SEED + index) for index, one in enumerate(case.inputs)]
    expected = None
    for opset in _opsets(case)[::-1]:
        nodes = _written(case, opset)
        if nodes is None:
            continue
        outputs = len(case.operator.infer(case.attributes, case.inputs))
        onnx.checker.check_model(model_of(nodes, case.inputs, outputs, opset))
        found = _feed(case, opset, arrays)
        expected = expected or found
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["Fill", "Eye", "Band"])
@pytest.mark.parametrize("opset", [7, NEWEST])
def test_generator_is_written_as_a_constant(name: str, opset: int) -> None:
    """A generator becomes a Constant node with the generator's value."""
    (case,) = (one for one in CASES if one.name == name)
    nodes = _written(case, opset)
    assert nodes is not None
    (found,) = reference(model_of(nodes, (), 1, opset), {})
    np.testing.assert_array_equal(found, array_of(name, case.attributes))
