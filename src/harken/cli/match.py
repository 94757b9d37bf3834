"""`harken match`: events in, rows of events and subscriptions out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.command_session import session
from harken.cli.completion import algorithm_names, document_names
from harken.cli.exits import ExitCode
from harken.cli.options import EVENT_FILES, FILES, EventFormat, Json, Operators, SchemaFile, Split, Verbose
from harken.language.registry import DEFAULT_LANGUAGE

if TYPE_CHECKING:
    from harken.cli.matching_files import MatchSummary

EXAMPLES = """\b
Examples:
  harken match events.jsonl --subscriptions subscriptions.jsonl
  harken match events.jsonl --where "price < 5" --where "category = 'Toy'"
  harken match events.parquet -s subscriptions.csv -o matches.parquet
  harken match monday.jsonl.gz tuesday/ 'old/*.csv' -s subscriptions.jsonl
  harken match docs.xml --split dataset --subscriptions xpaths.jsonl
  tail -f log.jsonl | harken match - -s subscriptions.jsonl --batch-size 1

\b
With --json, standard error has JSON lines too. Their `kind` is event,
subscription or match (what was rejected), more, log, error or summary.
"""

_SUBSCRIPTIONS, _MATCHING, _OUTPUT = "Subscriptions", "Matching", "Output"


_SubscriptionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--subscriptions",
        "-s",
        metavar="FILE",
        help=f"{FILES}, with the fields id and where; or the folder of a saved engine.",
        rich_help_panel=_SUBSCRIPTIONS,
    ),
]
_WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT", help="Match this text instead, which is its own id. Repeatable.", rich_help_panel=_SUBSCRIPTIONS
    ),
]
_LanguageOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The language of --where: sql, xpath, or a package's.  [default: sql]",
        rich_help_panel=_SUBSCRIPTIONS,
    ),
]
_AlgorithmOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="One of those in `harken algorithms`.",
        autocompletion=algorithm_names,
        rich_help_panel=_MATCHING,
    ),
]
_DocumentsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The algorithm for XPath subscriptions.",
        autocompletion=document_names,
        rich_help_panel=_MATCHING,
    ),
]
_DatabaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The database for algorithms that match in one: duckdb, sqlite, or the URL of a server or file.",
        rich_help_panel=_MATCHING,
    ),
]
_OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="A .jsonl or .csv file, also with .gz, .xz or .zst, or .parquet; - is standard output.",
        rich_help_panel=_OUTPUT,
    ),
]
_EventIdOption = Annotated[
    str | None,
    typer.Option(metavar="FIELD", help="Name events by this field, not by position from 0.", rich_help_panel=_OUTPUT),
]
_RejectedOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Write everything rejected to this file, as JSON lines.", rich_help_panel=_OUTPUT
    ),
]
_SaveOption = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER", help="Save the engine to this folder, to be used as FILE later.", rich_help_panel=_OUTPUT
    ),
]
_BatchSizeOption = Annotated[
    int, typer.Option(metavar="N", min=1, help="Number of events matched together.", rich_help_panel=_MATCHING)
]
_ThreadsOption = Annotated[
    int, typer.Option(metavar="N", min=1, help="Threads that share the events of a batch.", rich_help_panel=_MATCHING)
]
_ReplaceOption = Annotated[
    bool, typer.Option("--replace", help="Of subscriptions with one id, take the last.", rich_help_panel=_SUBSCRIPTIONS)
]
_StrictOption = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 if anything was rejected.", rich_help_panel=_OUTPUT)
]


def match(
    events: Annotated[list[str], typer.Argument(metavar="EVENTS", help=f"{EVENT_FILES}; - is standard input.")],
    subscriptions: _SubscriptionsOption = None,
    where: _WhereOption = None,
    language: _LanguageOption = None,
    schema: SchemaFile = None,
    algorithm: _AlgorithmOption = None,
    documents: _DocumentsOption = None,
    database: _DatabaseOption = None,
    output: _OutputOption = None,
    event_id: _EventIdOption = None,
    rejected: _RejectedOption = None,
    format: EventFormat = None,
    split: Split = None,
    operators: Operators = None,
    batch_size: _BatchSizeOption = 4_096,
    threads: _ThreadsOption = 1,
    save: _SaveOption = None,
    replace: _ReplaceOption = False,
    strict: _StrictOption = False,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Find the subscriptions that are true of each event.

    There is a row for every event and subscription that match, with all further fields of the subscription. On a
    terminal the first rows are shown as a table; a pipe gets all of them as JSON lines. A summary goes to standard
    error. Invalid events and subscriptions are rejected and reported there, and the others are matched.
    """
    with session(json, verbose) as screen:
        from harken.cli.inputs import event_files, subscription_files
        from harken.cli.matching_files import MatchRequest, run

        _reject_contradictions(subscriptions, where, language)
        files_of_events, files_of_subscriptions = event_files(events, format), subscription_files(subscriptions or [])
        inputs = [*files_of_events, *files_of_subscriptions, *([] if schema is None else [schema])]
        _reject_confusion(inputs, {"--output": output, "--rejected": rejected, "--save": save})
        request = MatchRequest(
            files_of_events,
            files_of_subscriptions,
            schema,
            algorithm,
            output,
            event_id,
            rejected,
            format,
            batch_size,
            replace,
            threads,
            save,
            split,
            operators,
            documents,
            database,
            where or (),
            language or DEFAULT_LANGUAGE,
        )
        summary = run(request, screen)
        screen.aside(summary.to_dict(), str(summary))
        _exit(summary, strict)


def _exit(summary: MatchSummary, strict: bool) -> None:
    """Exit with a code if no event could be used, or anything was rejected under --strict."""
    if summary.events and summary.events == summary.rejected_events:
        raise typer.Exit(ExitCode.UNUSABLE)
    if strict and summary.has_rejections:
        raise typer.Exit(ExitCode.FAULTS)


def _reject_contradictions(subscriptions: list[str] | None, where: list[str] | None, language: str | None) -> None:
    if bool(subscriptions) is bool(where):
        raise typer.BadParameter("give one of them", param_hint="--subscriptions or --where")
    if language is not None and not where:
        raise typer.BadParameter("only for --where: a subscription has its own language", param_hint="--language")


def _reject_confusion(inputs: list[str], outputs: dict[str, str | None]) -> None:
    """Raise BadParameter if an output would overwrite another file of the command, or standard input is read twice."""
    if inputs.count("-") > 1:
        raise typer.BadParameter("standard input can be read only once", param_hint="-")
    used = {os.path.realpath(path) for path in inputs if path != "-"}
    for option, path in outputs.items():
        if path is not None and path != "-":
            if os.path.realpath(path) in used:
                raise typer.BadParameter(f"{path} is used for something else in this command", param_hint=option)
            used.add(os.path.realpath(path))
