"""The notebooks: light, executed once, and still running from top to bottom."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 200_000
MOST_PICTURE = 60_000

by_name = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem[:2])


def _code(path: Path) -> list[Any]:
    """The code cells of a notebook."""
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_six() -> None:
    """Numbered in the order in which to read them."""
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05", "06"]


@by_name
def test_a_notebook_is_light(path: Path) -> None:
    """Pictures, too."""
    assert path.stat().st_size < MOST_BYTES
    for cell in _code(path):
        for output in cell.outputs:
            data = output.get("data", {})
            assert len(data.get("image/svg+xml", "")) < MOST_PICTURE
            assert len(base64.b64decode(data.get("image/png", ""))) < MOST_PICTURE


@by_name
def test_a_notebook_is_committed_with_outputs(path: Path) -> None:
    """It was run in order, without errors and without warnings; it names no place."""
    cells = _code(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output.output_type for cell in cells for output in cell.outputs}
    assert kinds <= {"stream", "display_data", "execute_result"}
    streams = {output.get("name") for cell in cells for output in cell.outputs}
    assert "stderr" not in streams
    text = path.read_text(encoding="utf-8")
    assert str(ROOT) not in text


@by_name
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From top to bottom, in its folder, with this repository's packages."""
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    known = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), known])))
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(FOLDER)}}
    )
    client.execute()
    last = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
    assert last.execution_count == len(_code(path))
