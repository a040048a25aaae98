"""The options of a search, stated once for the commands that search."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tensat.cli_errors import errors_in_one_line, named_as_options

if TYPE_CHECKING:
    from tensat.options import Options

OPTIONS = "options"
"""The parameter of a command that stands for all of them."""


def with_search_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes the options of a search, too, and is given them as one.

    Args:
        command: Its parameter `options` is an `Options`; the others are its own.

    Returns:
        The command as typer wants it: in place of `options` stand the parameters of
        `_options`. Its errors become lines.
    """
    own = inspect.signature(command, eval_str=True, locals={"Options": object}).parameters
    added = inspect.signature(
        _options, eval_str=True, locals={"Options": object}
    ).parameters
    names = [name for name in own if name != OPTIONS]

    @wraps(command)
    def run(**given: object) -> None:
        with errors_in_one_line():
            options = _options(**{name: given[name] for name in added})  # type: ignore[arg-type]
            command(**{name: given[name] for name in names}, options=options)

    parameters = [*(own[name] for name in names), *added.values()]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _options(
    input_shape: Annotated[
        list[str] | None,
        typer.Option(
            "--input-shape",
            metavar="NAME:1,3,224,224",
            help="sizes to optimize and time for",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="time for search and operator timing")
    ] = 60.0,
    max_nodes: Annotated[
        int, typer.Option(help="e-nodes at which the e-graph stops")
    ] = 50_000,
    cost: Annotated[
        str,
        typer.Option(
            metavar="cpu|cuda|table|roofline",
            help="where costs come from; default: the device of the target",
            show_default=False,
        ),
    ] = "",
    cost_db: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="measured costs; default: user's cache"),
    ] = None,
    cost_table: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="recorded costs of any device, for --cost table"),
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="do not use this rule")
    ] = None,
    only_proved: Annotated[
        bool, typer.Option("--only-proved", help="use no rule beyond its proof")
    ] = False,
    rules: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="use these rules too, once they are proved"),
    ] = None,
    operators: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.py", help="know the operators specified here"),
    ] = None,
    for_target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="portable|ort-cpu|ort-cuda",
            help="what the result is to run on",
        ),
    ] = "portable",
    seed: Annotated[int, typer.Option(help="for random inputs and the solver")] = 0,
    threads: Annotated[int, typer.Option(help="threads for timing")] = 1,
) -> Options:
    """Options as the command line gives them; nothing is timed but operators.

    Raises:
        UsageError: One of them makes no sense.
    """
    # Imported here: --help and bad arguments need none of it.
    from tensat.check.feeds import parse_input_shapes
    from tensat.extension import operators_in
    from tensat.options import Options

    given = {
        "input_shapes": parse_input_shapes(input_shape or []),
        "seconds": seconds,
        "max_nodes": max_nodes,
        "cost": cost,
        "cost_db": cost_db,
        "cost_table": cost_table,
        "measure": False,
        "skip": tuple(skip or ()),
        "only_proved": only_proved,
        "rules": tuple(rules or ()),
        "operators": operators_in(operators or ()),
        "target": for_target,
        "seed": seed,
        "threads": threads,
    }
    with named_as_options(given):
        return Options(**given)  # type: ignore[arg-type]
