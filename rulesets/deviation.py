"""What rounding does to a rule, measured: both sides in float32, against float64.

Proofs are over the reals. A rule that re-associates sums or folds a factor into a weight
changes the last bits; by how much is measured on its instances, several seeds and two
scales, and kept in `data/deviations.toml` with two significant digits. Operators are
computed by their element rules, which add up one by one, so a runtime is rarely worse.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rulesets.errors import OperatorError, RuleError, RuleFileError
from rulesets.find import matches
from rulesets.instance import Instance
from rulesets.rule import Rule, build, holds
from rulesets.store import shipped_folder
from rulesets.trial import built

FILE = "deviations.toml"
SEEDS = (0, 1, 2, 3, 4)
SCALES = (0.5, 1.0)
HEADER = """\
# How far float32 results are off, relative to the largest value of the result: `sides`
# between the two sides of a rule, `float64` from the exact left side to the right side.
# Written by `python -m rulesets measure --write`.
"""


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far float32 results are off, relative to the largest value of the result.

    Attributes:
        sides: Between both sides in float32; 0 if they have the same bits.
        float64: From the left side in float64 to the right side in float32.
    """

    sides: float
    float64: float


def measure(rule: Rule, seeds: Sequence[int] = SEEDS) -> Deviation:
    """Return the largest deviations over all instances of a rule, seeds and scales.

    Infinite where a side has no number and the other has one.

    Raises:
        RuleError: It fires nowhere.
    """
    found: list[Deviation] = []
    for instance in map(_single, rule.instances):
        for seed in seeds:
            for scale in SCALES:
                found += _on(rule.at_arity(instance.count), instance, seed, scale)
    if not found:
        raise RuleError(f"rule {rule.name!r} fires on none of its instances in float32")
    return Deviation(max(one.sides for one in found), max(one.float64 for one in found))


def _single(instance: Instance) -> Instance:
    """Turn the element type of an instance, where an attribute names it, to float32."""
    named = {
        name: "float32" if value == "float64" else value
        for name, value in instance.attributes.items()
    }
    return replace(instance, attributes=named)


def _on(rule: Rule, instance: Instance, seed: int, scale: float) -> list[Deviation]:
    """Measure each match that fires; none fires if rounding leaves no left side."""
    single, roots = built(rule, instance, seed, scale, ("float32",))
    double, exact = built(rule, instance, seed, scale, ("float32", "float64"))
    found = []
    for match in matches(rule, single, roots):
        if not holds(rule, match, single):
            continue
        try:
            rights = build(rule, match, single)
        except OperatorError:
            continue
        for root, left, right in zip(exact, match.roots, rights, strict=True):
            truth = double.values[root][0]
            left32, right32 = single.values[left][0], single.values[right][0]
            between = _apart(left32, right32, truth)
            found.append(Deviation(between, _apart(truth, right32, truth)))
    return found


def _apart(one: np.ndarray, other: np.ndarray, truth: np.ndarray) -> float:
    """Return the largest difference, relative to the largest finite value of the truth."""
    a, b, c = (np.asarray(each, np.float64) for each in (one, other, truth))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    largest = float(np.abs(c[np.isfinite(c)]).max(initial=0.0)) or 1.0
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(a - b) / largest)
    return float(np.nan_to_num(gap, nan=np.inf).max(initial=0.0))


def load_deviations(path: Path | None = None) -> Mapping[str, Deviation]:
    """Read the deviations of a file by rule name, by default those of the shipped rules.

    Raises:
        RuleFileError: The file is wrong; the error names the rule.
    """
    path = shipped_folder() / FILE if path is None else path
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise RuleFileError(f"{path.name} is not TOML: {error}") from error
    found = {}
    for name, row in document.items():
        if not isinstance(row, dict) or set(row) != {"sides", "float64"}:
            raise RuleFileError(
                f"{path.name} has {row!r} for {name!r}; possible: "
                "{ sides = 0.0, float64 = 6.0e-08 }"
            )
        found[name] = Deviation(float(row["sides"]), float(row["float64"]))
    return found


def write(path: Path, found: Iterable[tuple[Rule, Deviation]]) -> None:
    """Write deviations, in the order of the rules."""
    rows = "\n".join(f'"{rule.name}" = {_row(one)}' for rule, one in found)
    path.write_text(f"{HEADER}\n{rows}\n", encoding="utf-8")


def _row(one: Deviation) -> str:
    sides, float64 = (f"{x:.1e}" if x else "0.0" for x in (one.sides, one.float64))
    return f"{{ sides = {sides}, float64 = {float64} }}"
