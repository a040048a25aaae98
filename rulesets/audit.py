"""The audit: every rule of a folder is proved again, from nothing.

Verdicts are kept in the rule files, one for each row: the weakest of the rules the row
stands for (versions over operators, and the way back).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from rulesets.rule import TIERS, Rule
from rulesets.store import rule_files
from rulesets.verify import Verdict, verify

type Verdicts = Mapping[str, Verdict]


def audit(
    rules: Sequence[Rule], *, jobs: int = 1, seconds: float = 10, deep: bool = False
) -> Iterator[tuple[Rule, Verdict]]:
    """Verify rules, in their order.

    Args:
        rules: The rules.
        jobs: How many processes work.
        seconds: How long a proof may take.
        deep: Whether to go on to higher ranks.
    """
    prover = partial(verify, seconds=seconds, deep=deep)
    if jobs == 1:
        yield from ((rule, prover(rule)) for rule in rules)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from zip(rules, pool.map(prover, rules, chunksize=4), strict=True)


def row_of(name: str) -> str:
    """Return the name of the row that a rule comes from."""
    return re.sub(r"(\[.*\])?(\.reverse)?$", "", name)


def by_row(results: Iterable[tuple[Rule, Verdict]]) -> dict[str, tuple[str, str]]:
    """Return verdict and ranks of each row: the weakest verdict, the fewest ranks."""
    found: dict[str, tuple[str, str]] = {}
    for rule, verdict in results:
        row = row_of(rule.name)
        new = verdict.tier, verdict.ranks
        found[row] = min(found.get(row, new), new, key=_strength)
    return found


def _strength(verdict: tuple[str, str]) -> tuple[int, int]:
    tier, ranks = verdict
    numbers = [int(each) for each in re.findall(r"\d+", ranks.split(",")[0])]
    return -TIERS.index(tier), max(numbers, default=99 if ranks == "any" else 0)


def differences(
    rules: Iterable[Rule], rows: Mapping[str, tuple[str, str]]
) -> tuple[list[str], list[str]]:
    """Return the rows whose kept verdict is not found again, and those with a better one.

    Ranks are not compared: how far they go is a matter of time.
    """
    kept = {row_of(rule.name): rule.verdict for rule in rules}
    worse, better = [], []
    for row, (found, _) in rows.items():
        text = f"{row}: kept {kept[row] or 'nothing'}, found {found}"
        if kept[row] not in TIERS or TIERS.index(found) > TIERS.index(kept[row]):
            worse.append(text)
        elif found != kept[row]:
            better.append(text)
    return worse, better


def write(folder: Path, rows: Mapping[str, tuple[str, str]]) -> None:
    """Write verdicts into the rule files of a folder."""
    for path in rule_files(folder):
        text = path.read_text(encoding="utf-8")
        path.write_text("\n".join(_written(text.split("\n"), rows)), encoding="utf-8")


def _written(lines: Iterable[str], rows: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    row = ""
    for line in lines:
        name = re.match(r'name\s*=\s*"([^"]*)"', line)
        if name is not None:
            row = name[1]
        if row in rows and re.match(r"proof\s*=", line):
            continue
        yield line
        if row in rows and re.match(r"float\s*=", line):
            verdict, ranks = rows[row]
            yield f'proof = {{ verdict = "{verdict}", ranks = "{ranks}" }}'
