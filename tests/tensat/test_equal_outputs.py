"""Whatever is chosen computes the same: random models under roofline and random costs.

Costs that mean nothing let extraction choose any of the equal graphs, so every rule that
fires is tried, not only those that pay. To look for failures for longer, give
``search`` other seeds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tensat.check.equivalence import Tolerance, compare
from tensat.costs.roofline import Roofline
from tensat.runtime import Runtime
from tests.tensat.model.onnx_models import run
from tests.tensat.pipeline import RandomCosts, improved
from tests.tensat.random_models import Choose, feeds, random_model
from tests.tensat.random_nodes import MAKERS

KEPT = Path(__file__).parent.parent / "kept"
"""Models on which an earlier version failed."""

TOLERANCES = {"float32": Tolerance(2e-3, 1e-5, 1e-4)}
LARGEST = 1e5


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """One child for all tests of this file."""
    with Runtime() as made:
        yield made


def _outputs(proto: onnx.ModelProto, batch: int) -> list[np.ndarray]:
    return run(proto, feeds(proto, batch, batch))


def _check(
    proto: onnx.ModelProto, runtime: Runtime, salt: int, batches: tuple[int, ...]
) -> None:
    """Compare the model with what becomes of it, at each size of the batch."""
    source = RandomCosts(salt) if salt else Roofline()
    result, plan = improved(proto, runtime, source, sizes={"N": 2})
    onnx.checker.check_model(result)
    names = [output.name for output in proto.graph.output]
    for batch in batches:
        found = compare(names, _outputs(proto, batch), _outputs(result, batch), TOLERANCES)
        assert found.equal, f"batch {batch}: {found.text}; rules {plan.rules}"


def _tame(proto: onnx.ModelProto) -> bool:
    """Whether its outputs are numbers that rounding does not swamp."""
    return all(
        bool(np.isfinite(a).all()) and np.abs(a).max(initial=0) < LARGEST
        for a in _outputs(proto, 2)
    )


@st.composite
def _choosers(draw: st.DrawFn) -> Choose:
    """Random numbers that Hypothesis knows and can shrink."""
    return lambda n: draw(st.integers(0, n - 1))


@settings(
    max_examples=12, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(choose=_choosers(), symbolic=st.booleans(), salt=st.integers(0, 1000))
def test_small_random_models(
    runtime: Runtime, choose: Choose, symbolic: bool, salt: int
) -> None:
    """A few operators, which shrink to a smallest failure."""
    proto = random_model(choose, MAKERS, symbolic=symbolic, most=5)
    assume(_tame(proto))
    _check(proto, runtime, salt, (2, 3) if symbolic else (2,))


@pytest.mark.parametrize("seed", range(28))
def test_random_models(runtime: Runtime, seed: int) -> None:
    """Up to some thirty operators; every fourth is optimized under roofline costs."""
    symbolic = seed % 3 == 0
    proto = random_model(random.Random(seed).randrange, MAKERS, symbolic=symbolic)
    if _tame(proto):
        _check(proto, runtime, seed % 4, (2, 3, 1) if symbolic else (2,))


@pytest.mark.parametrize("salt", range(3))
@pytest.mark.parametrize("path", sorted(KEPT.glob("*.onnx")), ids=lambda path: path.stem)
def test_models_that_failed_once(runtime: Runtime, path: Path, salt: int) -> None:
    """They are kept, and right for ever."""
    _check(onnx.load(path), runtime, salt, (2,))


def test_a_wrong_result_would_be_seen(runtime: Runtime) -> None:
    """The check is able to fail: another constant in a model is noticed."""
    proto = random_model(random.Random(0).randrange, MAKERS)
    other = onnx.ModelProto()
    other.CopyFrom(proto)
    tensor = onnx.numpy_helper.to_array(other.graph.initializer[0])
    other.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(tensor + 1, other.graph.initializer[0].name)
    )
    names = [output.name for output in proto.graph.output]
    found = compare(names, _outputs(proto, 2), _outputs(other, 2), TOLERANCES)
    assert not found.equal
