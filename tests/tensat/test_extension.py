"""Own operators and own rules: the worked example of the README, and what is refused."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from rulesets.errors import OperatorError
from rulesets.ops import OPERATORS, added, extended, operators_of, unary
from rulesets.store import load
from tensat.errors import UsageError
from tensat.extension import operators_in, own_operators, own_rules
from tensat.optimize import optimize, select_rules
from tensat.options import Options

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "own_operator"
RULE = """
[[rule]]
name = "{name}"
lhs = "{lhs}"
rhs = "{rhs}"
float = {{ tag = "exact" }}
instances = [{{ x = "{shape}" }}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a copy of the example's folder, with its model."""
    place = tmp_path_factory.mktemp("example") / "own"
    shutil.copytree(EXAMPLE, place)
    subprocess.run([sys.executable, "model.py"], cwd=place, check=True)
    return place


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a module's command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True
    )


def operators(path: Path) -> list[str]:
    """Return the operators of a model."""
    return [node.op_type for node in onnx.load(path).graph.node]


def write_rule(path: Path, lhs: str, rhs: str, shape: str = "2,3") -> Path:
    """Write a file with one rule."""
    path.write_text(RULE.format(name=path.stem, lhs=lhs, rhs=rhs, shape=shape))
    return path


def test_the_rule_of_the_example_is_proved(folder: Path) -> None:
    """The verifier knows the operator from its specification alone."""
    given = ("--operators", "softsign.py")
    found = run(folder, "rulesets", "verify", "softsign.toml", *given)
    assert found.returncode == 0, found.stdout
    assert "softsign-from-parts: all-sizes any" in found.stdout


def test_the_example_is_optimized(folder: Path) -> None:
    """Three operators become the own one, and the result computes the same."""
    assert operators(folder / "model.onnx") == ["MatMul", "Abs", "Add", "Div"]
    given = ("--operators", "softsign.py", "--rules", "softsign.toml")
    without_timing = ("--cost", "roofline", "--no-measure")
    command = ("tensat", "optimize", "model.onnx", "faster.onnx", *given, *without_timing)
    found = run(folder, *command)
    assert found.returncode == 0, found.stderr
    assert "Improved" in found.stdout
    assert operators(folder / "faster.onnx") == ["MatMul", "Softsign"]


def test_the_readme_shows_the_example() -> None:
    """Code that the README shows as a file of the example is that of the file."""
    blocks = re.findall(r"```\w+\n# (softsign\.\w+)\n(.*?)```", _readme(), re.DOTALL)
    for name, code in blocks:
        assert code.strip() in (EXAMPLE / name).read_text()


def _readme() -> str:
    return (ROOT / "README.md").read_text()


def test_in_python_the_explanation_names_the_rule(folder: Path) -> None:
    """Options take specifications and files; the rule counts as proved."""
    own = operators_of(str(folder / "softsign.py"))
    files = (folder / "softsign.toml",)
    options = Options(
        operators=own, rules=files, only_proved=True, cost="roofline", measure=False
    )
    result = optimize(folder / "model.onnx", options)
    assert "softsign-from-parts" in str(result.explain())
    assert "Softsign" not in OPERATORS


def test_without_the_operator_the_rule_is_an_error(folder: Path) -> None:
    """The text names the file, the rule and the operator."""
    with pytest.raises(UsageError, match=r"softsign\.toml, line 2.*operator 'Softsign'"):
        own_rules([folder / "softsign.toml"], ())


OF_SIZES = """
[[rule]]
name = "own-concat-of-concat"
lhs = "(Concat[axis=?a] (Concat[axis=?a] ?x ?y) ?z)"
rhs = "(Concat[axis=?a] ?x ?y ?z)"
float = { tag = "exact" }
instances = [{ x = "2,3", y = "2,4", z = "2,5", a = 1 }]
"""
"""A rule whose proof asks a question about integers, as softsign's does not."""


def test_without_z3_own_rules_are_an_error(folder: Path) -> None:
    """One line says what to install; no rule is used without a proof."""
    (folder / "sizes.toml").write_text(OF_SIZES)
    blocked = "import sys; sys.modules['z3'] = None; from tensat.cli import main; main()"
    own = ("--rules", "sizes.toml")
    found = subprocess.run(
        [sys.executable, "-c", blocked, "explain", "model.onnx", *own],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 2
    assert "own rules are proved before use" in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("lhs", "rhs", "shape", "message"),
    [
        ("(Neg (Relu ?x))", "(Relu (Neg ?x))", "2,3", "is refuted, not proved: at"),
        (
            "(Transpose[perm=[1, 0]] ?x)",
            "(Reshape[shape=[(dim ?x 1), (dim ?x 0)]] ?x)",
            "1,3",
            "is at-sizes, not proved",
        ),
        ("(Relu ?x)", "(Relu (Relu ?y))", "2,3", r"\?y is not bound"),
    ],
    ids=["false", "true at one size", "no rule"],
)
def test_what_is_not_proved_is_refused(
    tmp_path: Path, lhs: str, rhs: str, shape: str, message: str
) -> None:
    """A rule that may be wrong somewhere is not used at all."""
    path = write_rule(tmp_path / "mine.toml", lhs, rhs, shape)
    with pytest.raises(UsageError, match=message):
        own_rules([path], ())


def test_only_proved_keeps_to_the_ranks_of_proofs() -> None:
    """Rules without a proof are gone, the others are bounded; else nothing changes."""
    shipped = load()
    one = replace(shipped[0], name="unproved", verdict="tested")
    chosen = select_rules((*shipped, one), only_proved=True)
    assert [rule.name for rule in chosen] == [rule.name for rule in shipped]
    assert all(rule.bounded for rule in chosen)
    assert select_rules(shipped) == shipped


def test_names_must_differ(tmp_path: Path) -> None:
    """A second rule of one name is refused, also of a shipped one."""
    path = write_rule(tmp_path / "mine.toml", "(Relu (Relu ?x))", "(Relu ?x)")
    (rule,) = own_rules([path], ())
    with pytest.raises(UsageError, match="a rule 'mine' is there already"):
        own_rules([path], (rule,))
    with pytest.raises(UsageError, match="a rule 'mine' is there already"):
        own_rules([path, path], ())


def test_a_missing_file_is_a_users_fault(tmp_path: Path) -> None:
    """The error says which file cannot be read."""
    with pytest.raises(UsageError, match=r"the rules '.*none\.toml' cannot be read"):
        own_rules([tmp_path / "none.toml"], ())


@pytest.mark.parametrize(
    ("text", "message"),
    [("1 / 0", "cannot be run: ZeroDivisionError"), ("x = 1", "must hold OPERATORS = ")],
    ids=["fails", "none there"],
)
def test_a_file_without_operators_is_named(tmp_path: Path, text: str, message: str) -> None:
    """The error says what the file must hold."""
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        operators_in([path])


def _fail() -> None:
    raise ValueError("inside")


def test_operators_are_known_for_a_while() -> None:
    """Behind the block they are gone, also when it failed."""
    mine = unary("Mine", lambda m, a, x: x + x)
    with extended(mine):
        assert OPERATORS["Mine"] is mine
        assert added("Mine")
        assert not added("Relu")
    assert "Mine" not in OPERATORS
    with pytest.raises(ValueError, match="inside"), extended(mine):
        _fail()
    assert "Mine" not in OPERATORS


def test_a_known_operator_is_not_replaced() -> None:
    """The shipped rules are proved for the shipped specifications."""
    relu = unary("Relu", lambda m, a, x: x)
    with pytest.raises(OperatorError, match="'Relu' is specified already"), extended(relu):
        pass
    with pytest.raises(UsageError, match="'Relu'"), own_operators([relu]):
        pass
    assert OPERATORS["Relu"] is not relu
