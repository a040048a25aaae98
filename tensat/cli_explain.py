"""The commands `tensat explain MODEL` and `tensat egraph MODEL`: nothing is optimized.

Both search as `tensat optimize` does and then tell what was found instead of writing it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tensat.cli_errors import check_files
from tensat.cli_search import with_search_options
from tensat.errors import UsageError

if TYPE_CHECKING:
    from tensat.optimize import Result
    from tensat.options import Options

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="ONNX model; - reads standard input")
]


def add_explain_commands(app: typer.Typer) -> None:
    """Add both commands to a command line."""
    app.command("explain")(with_search_options(explain))
    app.command("egraph")(with_search_options(egraph))


def explain(
    model: Model,
    why_not: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="say what stopped this rule, and where"),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="the explanation as JSON")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="the report as a page")
    ] = None,
    *,
    options: Options,
) -> None:
    """Say which rules would change a model, where and why; write no model."""
    check_files({"--json": json, "--html": html}, [model])
    # Imported here: --help and bad arguments need none of it.
    from rulesets.store import load
    from tensat.extension import own_operators, own_rules
    from tensat.optimize import named, select_rules

    shipped = load()
    with own_operators(options.operators):
        rules = (*shipped, *own_rules(options.rules, shipped))
    asked = [named(rules, name) for name in why_not or ()]
    chosen = select_rules(rules, options.skip, options.only_proved, options.cost)
    used = {rule.name for rule in chosen}
    result = _search(model, options)
    if json is not None:
        _put(json, result.explain().to_json())
    if html is not None:
        from tensat.html_report import html_report

        _put(html, html_report(result.report, result.explain(), _title(model)))
    if asked:
        for rule in asked:
            with own_operators(options.operators):
                typer.echo(_follow(result, rule, rule.name in used), nl=False)
    elif "-" not in (str(json), str(html)):
        typer.echo(str(result.explain()), nl=False)


def egraph(
    model: Model,
    json: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="as extraction-gym reads it; .gz compresses"),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="a picture; of 120 classes at most")
    ] = None,
    *,
    options: Options,
) -> None:
    """Write the e-graph of a model, with the rule behind each e-node."""
    if json is None and svg is None:
        raise UsageError("nothing to write; possible: --json FILE, --svg FILE")
    check_files({"--json": json, "--svg": svg}, [model])
    from tensat.egraph_export import egraph_json, egraph_svg
    from tensat.model.put_file import put_file

    result = _search(model, options)
    if result.found is None:
        raise UsageError(f"there is no e-graph: {result.report.reason}")
    graph, plan = result.found
    if svg is not None:
        _put(svg, egraph_svg(graph, plan))
    if json is not None:
        data = egraph_json(graph, plan, compress=json.suffix == ".gz")
        if str(json) == "-":
            sys.stdout.buffer.write(data)
        else:
            put_file(json, lambda file: file.write(data))


def _search(model: str, options: Options) -> Result:
    import onnx

    from tensat.optimize import optimize

    if model != "-":
        return optimize(model, options)
    from tensat.errors import ModelError

    try:
        proto = onnx.load_model_from_string(sys.stdin.buffer.read())
    except Exception as error:  # protobuf's errors have no common base
        raise ModelError(f"standard input is no ONNX model: {error}") from error
    return optimize(proto, options)


def _follow(result: Result, rule: object, used: bool) -> str:
    from rulesets.rule import Rule
    from tensat.why_not import why_not

    assert isinstance(rule, Rule)
    if result.found is None:
        return f"{result.report.reason}\n"
    note = "" if used else "It was left out of the search: --skip, --only-proved, --cost."
    return str(why_not(*result.found, rule, note))


def _title(model: str) -> str:
    return "standard input" if model == "-" else Path(model).name


def _put(path: Path, text: str) -> None:
    from tensat.model.put_file import put_file

    if str(path) == "-":
        typer.echo(text, nl=False)
    else:
        put_file(path, lambda file: file.write(text.encode()))
