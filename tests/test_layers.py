"""The architecture, held by a test: who imports whom, who uses what, how long files get.

Rows of `ORDER` are layers, from the ground up: a module may import modules of rows above
its own, and in its own row those that stand before it. `extraction` and `rulesets` know
nothing of each other or of `tensat`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("extraction", "rulesets", "tensat")
LONGEST = 400
ORDER = {
    package: (ROOT / "tests" / "layers" / f"{package}.txt").read_text().splitlines()
    for package in PACKAGES
}
LIBRARIES = {
    "egglog": {"tensat.egraph.engine"},
    "ortools": {"extraction"},
    "onnxruntime": {
        "tensat.cuda.cupy_device",
        "tensat.runtime.prepare",
        "tensat.runtime.worker",
    },
    "cupy": {"tensat.cuda.cupy_device"},
    "typer": {
        "tensat.cli",
        "tensat.cli_compare",
        "tensat.cli_costs",
        "tensat.cli_errors",
        "tensat.cli_explain",
        "tensat.cli_network",
        "tensat.cli_profile",
        "tensat.cli_search",
        "tensat.cli_target",
        "rulesets.cli",
        "rulesets.cli_generate",
        "rulesets.cli_origins",
        "rulesets.cli_records",
    },
    "z3": {"rulesets"},
}
"""Libraries that only these modules, or modules of these packages, may import."""


def _modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


MODULES = _modules()


def _imports(path: Path) -> Iterator[str]:
    """Yield what a file imports: modules of ours by full name, libraries by theirs."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in inner if name in MODULES)
            if not all(name in MODULES for name in inner):
                yield node.module


def _places(package: str) -> dict[str, int]:
    names = [name for row in ORDER[package] for name in row.split()]
    return {name: place for place, name in enumerate(names)}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_has_one_place(package: str) -> None:
    """The order names each module of the package once, and no other."""
    names = [name for row in ORDER[package] for name in row.split()]
    wanted = {name for name in MODULES if name.split(".")[0] == package}
    assert len(names) == len(set(names))
    assert set(names) == wanted


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_go_one_way(name: str) -> None:
    """A module imports what stands before it, and other packages only downwards."""
    package = name.split(".")[0]
    places = _places(package)
    for found in set(_imports(MODULES[name])):
        other = found.split(".")[0]
        if other == package and found != name:
            assert places[found] < places[name], f"{name} imports {found}"
        elif other in PACKAGES and other != package:
            assert package == "tensat", f"{name} imports {found}"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_libraries_stay_where_they_belong(name: str) -> None:
    """Heavy libraries are wrapped in one place each."""
    for found in set(_imports(MODULES[name])):
        allowed = LIBRARIES.get(found.split(".")[0])
        if allowed is not None:
            assert name in allowed or name.split(".")[0] in allowed, f"{name}: {found}"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_files_have_one_subject(name: str) -> None:
    """A file opens with a docstring and ends before line 400."""
    text = MODULES[name].read_text()
    assert ast.get_docstring(ast.parse(text)), f"{name} has no docstring"
    assert len(text.splitlines()) <= LONGEST


def test_planted_violations_are_seen() -> None:
    """The reader of imports sees each form that an import can take."""
    planted = ROOT / "tests" / "layers" / "planted.txt"
    found = set(_imports(planted))
    assert {"tensat.optimize", "rulesets.rule", "extraction", "tensat.cli"} <= found
