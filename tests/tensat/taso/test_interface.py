"""The interface has TASO's names and parameters, in TASO's order and with its defaults."""

import inspect
import re

import pytest

import tensat
from tensat import TasoGraph

NAMES = """
new_input(*, dims) new_weight(*, dims, data=None)
conv2d(*, input, weight, strides, padding, activation='NONE')
maxpool2d(input, kernels, strides, padding, activation='NONE')
avgpool2d(*, input, kernels, strides, padding, activation='NONE')
matmul(input, weight, activation='NONE')
batchnorm(input, scale, bias, mean, var, epsilon=-1)
add(x, y) mul(x, y) sub(*, x, y) div(*, x, y) max(x, y) min(x, y)
equal(*, x, y) greater(*, x, y) less(*, x, y)
relu(input, inplace=False) sigmoid(input, inplace=False) tanh(input, inplace=False)
leakyrelu(input, alpha, inplace=False) prelu(*, x, slope)
exp(*, input) log(*, input) sqrt(*, input) ceil(*, input) logical_not(*, input)
round(input) cast(*, input, datatype) dropout(input, rate=0) identity(input)
concat(axis, inputs) split(input, axis, sizes) reshape(input, shape)
transpose(input, perm, shuffle=False) slice(input, start, end, axes, steps)
squeeze(*, input, axes) unsqueeze(input, axes) shape(input) size(*, input)
reduce_sum(*, input, axes, keepdims=True) reduce_mean(*, input, axes, keepdims=True)
reduce_max(*, input, axes, keepdims=True) reduce_min(*, input, axes, keepdims=True)
reduce_prod(*, input, axes, keepdims=True) reduce_argmax(*, input, axes, keepdims=True)
reduce_argmin(*, input, axes, keepdims=True)
run_time() cost() print_measurements() optimize(alpha, budget, print_subst)
get_operator_list() get_input_edges(op) get_input_dims(op, idx) get_output_dims(op, idx)
get_num_outputs(op) get_operator_type(op) get_operator_attr(op, attrname)
get_split_lens(op) get_weight_value(op)
"""
METHODS = dict(re.findall(r"(\w+)\(([^)]*)\)", NAMES))
FUNCTIONS = {
    "new_graph": "print_measurements=False",
    "load_onnx": "filename",
    "export_onnx": "graph",
}


def parameters(function: object) -> list[tuple[str, object, bool]]:
    """Name, default and whether only by name, of each parameter but self."""
    assert callable(function)
    return [
        (one.name, one.default, one.kind is one.KEYWORD_ONLY)
        for one in inspect.signature(function).parameters.values()
        if one.name != "self"
    ]


def check(function: object, text: str) -> None:
    """The function takes what the text says; more is optional."""
    found = parameters(function)
    by_name = False
    for wanted in filter(None, text.split(", ")):
        if wanted == "*":
            by_name = True
            continue
        name, equals, default = wanted.partition("=")
        given = found.pop(0)
        assert (given[0], given[2]) == (name, by_name)
        if equals:
            assert repr(given[1]) == default
    assert all(one[1] is not inspect.Parameter.empty for one in found)


@pytest.mark.parametrize("name", METHODS)
def test_method(name: str) -> None:
    """The graph's method can be called as TASO's."""
    check(getattr(TasoGraph, name), METHODS[name])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str) -> None:
    """The module's function can be called as TASO's."""
    check(getattr(tensat, name), FUNCTIONS[name])


def test_errors_and_version() -> None:
    """TASO's error exists, and the module says its version."""
    assert issubclass(tensat.InputNotFoundError, tensat.TensatError)
    assert isinstance(tensat.__version__, str)
