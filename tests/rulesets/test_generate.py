"""Generation from end to end, interrupted and continued, here and on workers."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from rulesets.equation import Equation
from rulesets.errors import RulesetsError
from rulesets.families import SIZES
from rulesets.family import Family, Step, splits, step
from rulesets.generate import PROVED, Generated, Plan, generate
from rulesets.ground import Leaf
from rulesets.minimize import minimize, prune
from rulesets.parallel import Workers
from rulesets.rule import Rule
from rulesets.size import symbol
from rulesets.tensor import Shape
from rulesets.verify import Verdict

K = symbol("k")
W = tuple(Leaf(f"w{n}", (K, K), "w") for n in range(3))


def unary(shape: Shape) -> Iterator[Step]:
    """Relu and a transpose."""
    yield step("Relu")
    yield step("Transpose", perm=(1, 0))


def binary(a: Shape, b: Shape) -> Iterator[Step]:
    """Products."""
    yield step("MatMul")


SMALL = Family("small", W, SIZES, {"k": 2}, unary, binary)


def never(equation: Equation, rules: Sequence[Rule], sizes: Mapping[str, int]) -> bool:
    """Derive nothing."""
    return False


def by_name(equation: Equation, rules: Sequence[Rule], sizes: Mapping[str, int]) -> bool:
    """Derive what a rule of as many operators says; a stand-in for the e-graph."""
    wanted = str(equation.lhs).count("(")
    return any(len(rule.name.split("-is-")[0].split("-")) == wanted for rule in rules)


def believe(rule: Rule) -> Verdict:
    """Prove everything."""
    return Verdict("all-sizes")


def silent(stage: str, done: int, total: int) -> None:
    """Show nothing."""


def run(folder: Path, workers: Workers | None = None) -> Generated:
    """Generate the small family up to size 2."""
    plan = Plan(SMALL, 2, folder)
    return generate(plan, by_name, believe, workers or Workers(), silent)


def test_known_laws_are_found(tmp_path: Path) -> None:
    """Everything below size 3 about products, transposes and relu."""
    plan = Plan(SMALL, 2, tmp_path)
    found = generate(plan, never, believe, Workers(), silent)
    texts = {str(one.equation) for one in found.laws}
    assert texts == {
        "(Relu (Relu w0)) == (Relu w0)",
        "(Transpose[perm=[1,0]] (Transpose[perm=[1,0]] w0)) == w0",
        "(Relu (Transpose[perm=[1,0]] w0)) == (Transpose[perm=[1,0]] (Relu w0))",
        "(MatMul (MatMul w0 w1) w2) == (MatMul w0 (MatMul w1 w2))",
        "(MatMul (Transpose[perm=[1,0]] w0) (Transpose[perm=[1,0]] w1)) == "
        "(Transpose[perm=[1,0]] (MatMul w1 w0))",
    }


def test_the_counts_add_up(tmp_path: Path) -> None:
    """Every candidate tried was derived, kept or refused, before laws are minimised."""
    found = run(tmp_path)
    tested = sum(count.candidates for count in found.counts)
    assert tested == sum(count.derived + count.refused for count in found.counts) + len(
        found.laws
    )
    states = [
        one["status"]
        for file in tmp_path.glob("chunk-*.json")
        for one in json.loads(file.read_text())
    ]
    assert tested == len(states)
    assert json.loads((tmp_path / "counts.json").read_text())[1]["size"] == 2


class _KilledError(Exception):
    """Stands for a kill."""


def test_a_killed_run_continues(tmp_path: Path) -> None:
    """Stopped after the first layer, it does not write that layer again."""

    def kill(stage: str, done: int, total: int) -> None:
        if stage.startswith("size 2"):
            raise _KilledError

    plan = Plan(SMALL, 2, tmp_path / "killed")
    with pytest.raises(_KilledError):
        generate(plan, by_name, believe, Workers(), kill)
    first = tmp_path / "killed" / "size-1.json"
    written = first.stat().st_mtime_ns
    assert not (tmp_path / "killed" / "size-2.json").exists()
    again = generate(plan, by_name, believe, Workers(), silent)
    assert first.stat().st_mtime_ns == written
    assert again == run(tmp_path / "whole")


def test_a_run_killed_between_chunks_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks that are there are read, not made again."""
    monkeypatch.setattr("rulesets.generate.CHUNK", 2)
    plan = Plan(SMALL, 2, tmp_path / "killed")

    def kill(stage: str, done: int, total: int) -> None:
        if stage == "size 2: prune":
            raise _KilledError

    with pytest.raises(_KilledError):
        generate(plan, never, believe, Workers(), kill)
    chunk = tmp_path / "killed" / "chunk-2-0.json"
    written = chunk.stat().st_mtime_ns
    again = generate(plan, never, believe, Workers(), silent)
    assert chunk.stat().st_mtime_ns == written
    whole = Plan(SMALL, 2, tmp_path / "whole")
    assert again == generate(whole, never, believe, Workers(), silent)


def test_a_finished_run_writes_nothing_twice(tmp_path: Path) -> None:
    """Laws and chunks stay as they are; the result is the same."""
    first = run(tmp_path)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("[cs]*-*.json")}
    assert run(tmp_path) == first
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert not list(tmp_path.glob("*.part"))


def test_a_folder_keeps_its_plan(tmp_path: Path) -> None:
    """Another size needs another folder."""
    run(tmp_path)
    with pytest.raises(RulesetsError, match="use another folder or remove it"):
        generate(Plan(SMALL, 3, tmp_path), by_name, believe, Workers(), silent)


def test_refused_candidates_are_kept_with_a_reason(tmp_path: Path) -> None:
    """Nothing unproved becomes a law."""

    def doubt(rule: Rule) -> Verdict:
        return Verdict("tested", reason="left over")

    found = generate(Plan(SMALL, 2, tmp_path), never, doubt, Workers(), silent)
    assert not found.laws
    assert {one.reason for one in found.refused} == {"tested: left over"}


def test_conditions_of_a_proof_join_the_rule() -> None:
    """What the verifier asks for is written into the rule and proved again."""
    asked: list[int] = []

    def careful(rule: Rule) -> Verdict:
        asked.append(len(rule.where))
        return Verdict("all-sizes", conditions=("dim ?a 0 = 3",))

    w = step("Transpose", perm=(1, 0)).of(W[0])
    chunk = [Equation(step("Transpose", perm=(1, 0)).of(w), w)]
    (outcome,) = prune(
        chunk,
        (),
        sizes=SIZES,
        derivable=never,
        prove=careful,
        accept=PROVED,
        workers=Workers(),
    )
    assert outcome.law is not None
    assert '"dim ?a 0 = 3"' in outcome.law.texts[0]
    assert len(asked) == 2
    assert asked[1] == asked[0] + 1


def test_laws_that_others_derive_are_dropped(tmp_path: Path) -> None:
    """The largest are tried first."""
    plan = Plan(SMALL, 2, tmp_path)
    laws = generate(plan, never, believe, Workers(), silent).laws
    asked: list[Equation] = []

    def derives(one: Equation, rules: Sequence[Rule], sizes: Mapping[str, int]) -> bool:
        asked.append(one)
        return len(asked) == 1

    assert minimize(laws, sizes=SIZES, derivable=derives) == list(laws[:-1])
    assert asked == [one.equation for one in reversed(laws)]


def test_a_law_closes_its_instances(tmp_path: Path) -> None:
    """What an associative product says of fewer matrices is never a candidate."""
    found = generate(Plan(SMALL, 2, tmp_path), never, believe, Workers(), silent)
    (_, second) = found.counts
    assert second.open > second.candidates
    assert second.candidates == second.kept


def test_two_processes_find_the_same(tmp_path: Path) -> None:
    """Work on processes changes nothing in the result."""
    pytest.importorskip("joblib")
    assert run(tmp_path / "two", Workers(2)) == run(tmp_path / "one")


@pytest.mark.slow
def test_a_cluster_finds_the_same(tmp_path: Path) -> None:
    """The same on a dask cluster of this machine."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        dashboard_address=None,
    ) as cluster:
        workers = Workers(backend="dask", scheduler=cluster.scheduler_address)
        assert run(tmp_path / "cluster", workers) == run(tmp_path / "one")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"backend": "threads"}, "unknown backend 'threads'; possible: processes, dask"),
        ({"backend": "dask"}, "needs the address of a scheduler; none given"),
    ],
    ids=["backend", "scheduler"],
)
def test_wrong_workers_are_refused(settings: dict[str, str], message: str) -> None:
    """The error says what is possible."""
    with pytest.raises(RulesetsError, match=message):
        Workers(**settings)  # type: ignore[arg-type]


def test_merging_rules_come_with_the_run(tmp_path: Path) -> None:
    """A family with concatenations and splits gives rules with two roots, proved."""

    def more(shape: Shape) -> Iterator[Step]:
        yield step("Relu")
        yield from splits(shape, 0, K)

    def joins(a: Shape, b: Shape) -> Iterator[Step]:
        if a == b:
            yield step("Concat", axis=0)

    family = Family("joined", W, SIZES, {"k": 2}, more, joins)
    found = generate(Plan(family, 3, tmp_path), never, believe, Workers(), silent)
    (merge,) = found.merges
    assert merge.name == "merge-relu-1"
    assert 'verdict = "all-sizes"' in (tmp_path / "merges.toml").read_text()
