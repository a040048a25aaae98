"""The command line: ``tensat optimize IN OUT``.

Exit codes: 0 done (improved, or nothing better was found: the output then is the original),
2 bad arguments, 3 the model cannot be read or is invalid, or the result cannot be written.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tensat.cli_compare import add_compare_command
from tensat.cli_costs import add_costs_commands
from tensat.cli_errors import OneLineGroup, check_files
from tensat.cli_explain import add_explain_commands
from tensat.cli_network import add_network_command
from tensat.cli_profile import add_profile_command
from tensat.cli_search import with_search_options
from tensat.cli_target import add_target_command
from tensat.errors import ModelError, UsageError, WriteError
from tensat.model.put_file import put_file

if TYPE_CHECKING:
    from tensat.optimize import Result
    from tensat.options import Options

app = typer.Typer(
    name="tensat",
    cls=OneLineGroup,
    help="Optimize ONNX models: proved rewrites, exact extraction, measured costs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tensat {version('tensat')}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="print it"),
    ] = False,
) -> None:
    """Optimize ONNX models: proved rewrites, exact extraction, measured costs."""


@app.command()
@with_search_options
def optimize(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="ONNX model; - reads standard input")
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="OUT",
            help="where the result goes, may be IN; - writes standard output",
        ),
    ],
    measure: Annotated[
        bool,
        typer.Option("--measure/--no-measure", help="time the result against the original"),
    ] = True,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="write the report: a page if FILE is *.html, else JSON"
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="print nothing")] = False,
    *,
    options: Options,
) -> None:
    """Write a model that computes the same as IN and runs faster, or IN itself."""
    check_files({"OUT": Path(target), "--report": report}, [source], replacing="OUT")
    _optimize(source, target, replace(options, measure=measure), report, quiet)


add_profile_command(app)
add_target_command(app)
add_costs_commands(app)
add_explain_commands(app)
add_compare_command(app)
add_network_command(app)


def _optimize(
    source: str, target: str, options: Options, report: Path | None, quiet: bool
) -> None:
    # Imported here: --help and bad arguments need none of it.
    from tensat.optimize import optimize as run
    from tensat.options import PORTABLE
    from tensat.table import render

    if options.target != PORTABLE:
        _check_twin(source, target)
    console = Console(stderr="-" in (target, str(report)), quiet=quiet)
    with tempfile.TemporaryDirectory(prefix="tensat-") as folder:
        path = _source_path(source, Path(folder))
        with _Bars(quiet) as bars, _named(path, source):
            result = run(path, options, progress=bars)
        _write(result, path, target)
        if report is not None:
            _write_text(report, _report_text(result, report, source))
    console.print(render(result.report))


def _report_text(result: Result, report: Path, source: str) -> str:
    """The report in the form that its file's name asks for."""
    if report.suffix.lower() not in {".html", ".htm"}:
        return result.report.to_json()
    from tensat.html_report import html_report

    title = "standard input" if source == "-" else Path(source).name
    return html_report(result.report, result.explain(), title)


@contextmanager
def _named(path: Path, source: str) -> Iterator[None]:
    """Let errors speak of standard input, not of the file where it was put."""
    try:
        yield
    except ModelError as error:
        if source != "-":
            raise
        raise ModelError(str(error).replace(f"'{path}'", "standard input")) from error


def _write(result: Result, path: Path, target: str) -> None:
    if target == "-":
        _write_stdout(result)
        return
    _check_weights(path, Path(target))
    if result.portable is not None:
        from tensat.target import portable_path

        _check_weights(path, portable_path(target))
    if result.report.improved:
        result.save(target)
    else:
        _copy(path, Path(target), result)


def _write_stdout(result: Result) -> None:
    from tensat.model.onnx_write import write_stream

    try:
        write_stream(result.ir_model, sys.stdout.buffer)
    except WriteError:
        # Else Python tries once more at its end, and complains.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _check_twin(source: str, target: str) -> None:
    """Refuse to put the portable form of the result where IN is.

    Raises:
        UsageError: It would go there.
    """
    from tensat.target import portable_path

    twin = portable_path(target)
    if twin.exists() and Path(source).exists() and twin.samefile(source):
        raise UsageError(
            f"OUT '{target}' has its portable form in '{twin}', which is IN; "
            "another name is needed"
        )


def _check_weights(source: Path, target: Path) -> None:
    """Refuse to put weights where those of another model are, the one that is read.

    Raises:
        UsageError: The file that would hold them is a weight file of IN.
    """
    data = Path(f"{target}.data")
    if not data.exists() or (target.exists() and source.samefile(target)):
        return
    import onnx_ir as ir

    from tensat.model.onnx_read import external_tensors

    if any(data.samefile(tensor.path) for tensor in external_tensors(ir.load(source))):
        raise UsageError(
            f"OUT '{target}' would replace '{data}', which holds weights of IN; "
            "another name is needed"
        )


def _source_path(source: str, folder: Path) -> Path:
    if source != "-":
        return Path(source)
    path = folder / "standard-input.onnx"
    path.write_bytes(sys.stdin.buffer.read())
    return path


def _copy(source: Path, target: Path, result: Result) -> None:
    """Put the original, which is the result, at the target; byte for byte if one file."""
    if target.exists() and source.samefile(target):
        return
    from tensat.model.onnx_read import external_tensors

    if next(iter(external_tensors(result.ir_model)), None) is not None:
        result.save(target)
        return
    with source.open("rb") as original:
        put_file(target, lambda file: shutil.copyfileobj(original, file))


def _write_text(path: Path, text: str) -> None:
    if str(path) == "-":
        sys.stdout.write(text)
    else:
        put_file(path, lambda file: file.write(text.encode()))


class _Bars:
    """Shows stages as they pass; nothing where standard error is no terminal."""

    def __init__(self, quiet: bool) -> None:
        console = Console(stderr=True, quiet=quiet)
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:10}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task: object = None

    def __enter__(self) -> _Bars:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def stage(self, name: str) -> None:
        """Begin a line; the one before is complete."""
        if self._task is not None:
            self._bars.update(self._task, total=1, completed=1)  # type: ignore[arg-type]
        self._task = self._bars.add_task(name, total=None, note="")

    def step(self, done: int, total: int) -> None:
        """Move the bar."""
        self._bars.update(self._task, completed=done, total=total, note=f"{done}/{total}")  # type: ignore[arg-type]

    def note(self, text: str) -> None:
        """Say something beside the bar."""
        self._bars.update(self._task, note=text)  # type: ignore[arg-type]


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
