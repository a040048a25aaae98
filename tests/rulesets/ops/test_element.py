"""Element rules agree with ONNX: its reference evaluator and ONNX Runtime, in float32.

`python -m tests.rulesets.ops.test_element` prints, for each operator, on how many random
applications it was compared and the largest deviation from each, relative to the largest
value of the result.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from rulesets.ops import GENERATORS, OPERATORS, SPECIAL
from rulesets.reference import evaluate
from tensat.onnx_forms import lower
from tests.rulesets.ops.cases import Case, cases
from tests.tensat.onnx_forms.models import NEWEST, model_of, random_array, reference, run

EACH = 6
TOLERANCE = 2e-5
POSITIVE = {"Log", "Sqrt", "Reciprocal", "Pow", "Div", "BatchNormalization"}
WRONG_REFERENCE = {"LRN", "ConvTranspose"}
"""ONNX's reference evaluator fails on groups, and takes wrong channels for LRN."""

NAMES = [name for name in OPERATORS if name not in SPECIAL and name not in GENERATORS]


def applications(name: str, each: int = EACH) -> Iterator[Case]:
    """Yield random applications of an operator in float32 and other types."""
    yield from (case for case in cases(11, each) if case.name == name)


def feeds(case: Case, seed: int) -> list[np.ndarray]:
    """Make arguments an operator is defined on."""
    arrays = [random_array(tensor, seed + at) for at, tensor in enumerate(case.inputs)]
    if case.name in POSITIVE:
        return [
            np.asarray(np.abs(array) + 0.5, array.dtype)
            if array.dtype.kind == "f"
            else array
            for array in arrays
        ]
    return arrays


def deviations(case: Case, seed: int) -> tuple[float, float] | None:
    """Return the deviation from reference and runtime; None where ONNX has no form."""
    outputs = case.operator.infer(case.attributes, case.inputs)
    nodes = lower(case.name, case.attributes, case.inputs, outputs, NEWEST)
    if nodes is None:
        return None
    model = model_of(nodes, case.inputs, len(outputs), NEWEST)
    arrays = feeds(case, seed)
    exact = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
    with np.errstate(all="ignore"):
        found = evaluate(case.name, case.attributes, exact)
    named = {f"x{at}": array for at, array in enumerate(arrays)}
    runtime = _largest(found, run(model, arrays))
    if case.name in WRONG_REFERENCE:
        return runtime, runtime
    try:
        wanted = reference(model, named)
    except (IndexError, ValueError):  # it fails on some windows that round up
        return runtime, runtime
    return _largest(found, wanted), runtime


def _largest(found: tuple[np.ndarray, ...], wanted: list[np.ndarray]) -> float:
    worst = 0.0
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        a, b = one.astype(np.float64), np.asarray(other, np.float64)
        finite = np.isfinite(a)
        assert np.array_equal(finite, np.isfinite(b))
        scale = max(1.0, float(np.abs(a[finite]).max(initial=0.0)))
        worst = max(worst, float(np.abs(a - b)[finite].max(initial=0.0)) / scale)
    return worst


@pytest.mark.parametrize("name", NAMES)
def test_element_rule_agrees_with_onnx(name: str) -> None:
    """On random shapes and attributes the element rule gives what ONNX gives."""
    compared = 0
    for seed, case in enumerate(applications(name)):
        found = deviations(case, seed)
        if found is None or case.inputs[0].dtype in ("float16", "bfloat16"):
            continue
        compared += 1
        assert max(found) < TOLERANCE, str(case)
    assert compared > 0


def main() -> None:
    """Print the table."""
    for name in NAMES:
        both = [deviations(case, seed) for seed, case in enumerate(applications(name, 30))]
        kept = [each for each in both if each is not None]
        worst = [max((each[at] for each in kept), default=0.0) for at in (0, 1)]
        print(f"{name:24} {len(kept):4} {worst[0]:.1e} {worst[1]:.1e}")


if __name__ == "__main__":
    main()
