"""`harken generate`: the subscriptions and events of a workload, as files."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harken.cli.command_session import session
from harken.cli.completion import starting
from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen, counted

if TYPE_CHECKING:
    from harken_lab.workloads.workload import Workload

Form = Literal["where", "predicates"]

EXAMPLES = """\b
Examples:
  harken generate --list
  harken generate w4 --subscriptions 1000000 --events 10000 --to w4
  harken generate le-subscribe --to le --format parquet --set equality=0.9
"""

_FORMATS = ("jsonl", "parquet", "arrow")
_EVENTS_AT_ONCE = 4_096
"""Events a batch: few enough that the widest ones, as text, stay within the 2 GB of an Arrow array."""


def workload_names(incomplete: str) -> list[str]:
    """The names of workloads with this beginning, for the shell's completion."""
    from harken_lab.workloads.recipes import WORKLOADS

    return starting(WORKLOADS, incomplete)


def generate(
    workload: Annotated[
        str | None,
        typer.Argument(metavar="WORKLOAD", help="A workload that --list shows.", autocompletion=workload_names),
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="FOLDER", help="The folder for the files; made if missing.")] = None,
    subscriptions: Annotated[
        int, typer.Option("--subscriptions", "-s", metavar="N", min=0, help="Number of subscriptions.")
    ] = 1_000_000,
    events: Annotated[int, typer.Option("--events", "-e", metavar="N", min=0, help="Number of events.")] = 10_000,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="The same seed gives the same files.")] = 0,
    format: Annotated[
        str,
        typer.Option(metavar="NAME", help="One of jsonl, parquet and arrow.", autocompletion=lambda: list(_FORMATS)),
    ] = "jsonl",
    predicates: Annotated[
        bool, typer.Option("--predicates", help="Write lists of predicates, not texts; not as jsonl.")
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the workload, as JSON.")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the workloads, and write nothing.")] = False,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Write the subscriptions and events of a workload.

    FOLDER gets a file of subscriptions (id and where) and a file of events, each as a whole or not at all. Files of
    the same names are replaced.
    """
    with session(json, verbose) as screen:
        if list_all:
            _show_all(screen)
            return
        if workload is None:
            raise typer.BadParameter("name a workload; --list shows them", param_hint="WORKLOAD")
        if to is None:
            raise typer.BadParameter("name a folder for the files", param_hint="--to")
        if format not in _FORMATS:
            raise typer.BadParameter(f"choose one of {', '.join(_FORMATS)}, not {format}", param_hint="--format")
        if predicates and format == "jsonl":
            raise typer.BadParameter("lists of predicates need --format parquet or arrow", param_hint="--predicates")
        parameters = _parameters(settings or [])
        _check(workload, parameters, predicates)
        from harken_lab.workloads import generate as draw

        started = perf_counter()
        drawn = draw(workload, subscriptions, events, seed, **parameters)
        files = _write(screen, drawn, to, format, "predicates" if predicates else "where")
        _show_summary(screen, drawn, files, perf_counter() - started)


def _parameters(settings: list[str]) -> dict[str, Any]:
    parameters = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign:
            raise typer.BadParameter(f"write NAME=VALUE, not {setting}", param_hint="--set")
        try:
            parameters[name] = json_module.loads(value)
        except ValueError:
            raise typer.BadParameter(f"{value} is not JSON", param_hint="--set") from None
    return parameters


def _check(workload: str, parameters: dict[str, Any], predicates: bool) -> None:
    """Raise BadParameter unless there is such a workload, with these parameters and in this form."""
    from harken_lab.workloads.recipes import find_recipe

    try:
        recipe = find_recipe(workload)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="WORKLOAD") from None
    if predicates and not recipe.has_table:
        raise typer.BadParameter(
            f"the subscriptions of {workload} cannot be written as lists of predicates", param_hint="--predicates"
        )
    try:
        recipe.model_with(parameters)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--set") from None


def _write(screen: Screen, drawn: Workload, to: str, format: str, form: Form) -> dict[str, str]:
    """Write both files. Returns their paths. Raises SourceError."""
    from harken.versions.atomic import output_file
    from harken_lab.workloads.workload import subscription_schema
    from harken_lab.workloads.workload_files import write_rows

    _make_folder(to)
    files = {name: str(Path(to, f"{name}.{format}")) for name in ("subscriptions", "events")}
    with output_file(files["subscriptions"]) as subscriptions, output_file(files["events"]) as events:
        with screen.progress("writing subscriptions") as advance:
            schema = subscription_schema(form, drawn.language)
            write_rows(subscriptions, format, schema, drawn.batches(form), advance)
        with screen.progress("writing events") as advance:
            batches = drawn.events.to_batches(_EVENTS_AT_ONCE)
            write_rows(events, format, drawn.events.schema, batches, advance)
    return files


def _make_folder(path: str) -> None:
    from harken.errors import SourceError

    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"{path} cannot be made a folder: {error.strerror or error}") from error


def _show_summary(screen: Screen, drawn: Workload, files: dict[str, str], seconds: float) -> None:
    data = {
        "kind": "summary",
        "workload": drawn.name,
        "seed": drawn.seed,
        "parameters": drawn.parameters,
        "subscriptions": drawn.subscriptions,
        "events": drawn.events.num_rows,
        "files": files,
        "seconds": round(seconds, 3),
    }
    text = (
        f"{drawn.name} with seed {drawn.seed}: {counted(drawn.subscriptions, 'subscription')} in "
        f"{files['subscriptions']}, {counted(drawn.events.num_rows, 'event')} in {files['events']}; {seconds:.1f} s"
    )
    screen.aside(data, text)


def _show_all(screen: Screen) -> None:
    from harken_lab.workloads import WORKLOADS

    if screen.json:
        for name, recipe in WORKLOADS.items():
            screen.line({"name": name, "description": recipe.description, "parameters": recipe.all_parameters()})
        return
    from rich import box
    from rich.table import Table

    table = Table("workload", "description", box=box.SIMPLE_HEAD)
    for name, recipe in WORKLOADS.items():
        table.add_row(name, recipe.description)
    screen.show(table, wrap=True)
