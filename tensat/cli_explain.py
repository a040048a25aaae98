"""The commands `tensat explain MODEL` and `tensat egraph MODEL`: nothing is optimized.

Both search as `tensat optimize` does and then tell what was found instead of writing it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tensat.cli_errors import check_folder, errors_in_one_line
from tensat.errors import UsageError

if TYPE_CHECKING:
    from tensat.optimize import Result
    from tensat.options import Options

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="ONNX model; - reads standard input")
]
Shapes = Annotated[
    list[str] | None,
    typer.Option("--input-shape", metavar="NAME:1,3,224,224", help="sizes to search for"),
]
Seconds = Annotated[float, typer.Option(help="time for the search")]
MaxNodes = Annotated[int, typer.Option(help="e-nodes at which the e-graph stops")]
Cost = Annotated[
    str, typer.Option(metavar="cpu|table|roofline", help="where costs come from")
]
CostDb = Annotated[
    Path | None, typer.Option(metavar="FILE", help="measured costs; default: user's cache")
]
CostTable = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="recorded costs of any device, for --cost table"),
]
Skip = Annotated[
    list[str] | None, typer.Option(metavar="RULE", help="do not use this rule")
]
OnlyProved = Annotated[
    bool, typer.Option("--only-proved", help="use no rule that is not proved")
]
Seed = Annotated[int, typer.Option(help="for random inputs and the solver")]


def add_explain_commands(app: typer.Typer) -> None:
    """Add both commands to a command line."""
    app.command("explain")(explain)
    app.command("egraph")(egraph)


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
    input_shape: Shapes = None,
    seconds: Seconds = 60.0,
    max_nodes: MaxNodes = 50_000,
    cost: Cost = "cpu",
    cost_db: CostDb = None,
    cost_table: CostTable = None,
    skip: Skip = None,
    only_proved: OnlyProved = False,
    seed: Seed = 0,
) -> None:
    """Say which rules would change a model, where and why; write no model."""
    with errors_in_one_line():
        check_folder(json, "--json")
        check_folder(html, "--html")
        # Imported here: --help and bad arguments need none of it.
        from rulesets.store import load
        from tensat.optimize import named, select_rules

        rules = load()
        asked = [named(rules, name) for name in why_not or ()]
        options = _options(
            input_shape,
            seconds,
            max_nodes,
            cost,
            cost_db,
            cost_table,
            skip,
            only_proved,
            seed,
        )
        used = {rule.name for rule in select_rules(rules, options.skip, only_proved)}
        result = _search(model, options)
        if json is not None:
            _put(json, result.explain().to_json())
        if html is not None:
            from tensat.html_report import html_report

            _put(html, html_report(result.report, result.explain(), _title(model)))
        if asked:
            for rule in asked:
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
        Path | None, typer.Option(metavar="FILE", help="a picture; small e-graphs only")
    ] = None,
    input_shape: Shapes = None,
    seconds: Seconds = 60.0,
    max_nodes: MaxNodes = 50_000,
    cost: Cost = "cpu",
    cost_db: CostDb = None,
    cost_table: CostTable = None,
    skip: Skip = None,
    only_proved: OnlyProved = False,
    seed: Seed = 0,
) -> None:
    """Write the e-graph of a model, with the rule behind each e-node."""
    with errors_in_one_line():
        if json is None and svg is None:
            raise UsageError("nothing to write; possible: --json FILE, --svg FILE")
        check_folder(json, "--json")
        check_folder(svg, "--svg")
        from tensat.egraph_export import egraph_json, egraph_svg
        from tensat.model.put_file import put_file

        options = _options(
            input_shape,
            seconds,
            max_nodes,
            cost,
            cost_db,
            cost_table,
            skip,
            only_proved,
            seed,
        )
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


def _options(
    input_shape: list[str] | None,
    seconds: float,
    max_nodes: int,
    cost: str,
    cost_db: Path | None,
    cost_table: Path | None,
    skip: list[str] | None,
    only_proved: bool,
    seed: int,
) -> Options:
    from tensat.check.feeds import parse_input_shapes
    from tensat.options import Options

    return Options(
        input_shapes=parse_input_shapes(input_shape or []),
        seconds=seconds,
        max_nodes=max_nodes,
        cost=cost,
        cost_db=cost_db,
        cost_table=cost_table,
        measure=False,
        skip=tuple(skip or ()),
        only_proved=only_proved,
        seed=seed,
    )


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
    note = "" if used else "It was left out of the search by an option."
    return str(why_not(*result.found, rule, note))


def _title(model: str) -> str:
    return "standard input" if model == "-" else Path(model).name


def _put(path: Path, text: str) -> None:
    from tensat.model.put_file import put_file

    if str(path) == "-":
        typer.echo(text, nl=False)
    else:
        put_file(path, lambda file: file.write(text.encode()))
