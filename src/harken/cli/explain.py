"""`harken explain`: why an event matches a subscription, or why it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harken.cli.command_session import session
from harken.cli.options import EVENT_FILES, EventFormat, Json, Operators, SchemaFile, Split, Verbose
from harken.cli.screen import Screen, printable

if TYPE_CHECKING:
    from rich.text import Text

    from harken.cli.selecting import EventChoice, SubscriptionChoice
    from harken.language.explanation import Clause, Explanation
    from harken.operators import OperatorSet

EXAMPLES = """\b
Examples:
  harken explain events.jsonl --subscriptions subscriptions.jsonl --id bob
  harken explain events.jsonl --event-id order --event A17 --where "price < 5"
  harken explain --event-json '{"price": 3}' --where "price < 5 AND qty = 2"
  harken explain docs.xml --where "/order/total > 9" --language xpath
  harken explain events.jsonl --subscriptions subscriptions.jsonl --plan
"""
_STYLES = {True: "green", False: "red", None: "yellow"}


_EventsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="EVENTS", help=f"{EVENT_FILES}; - is standard input.")
]
_SubscriptionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--subscriptions",
        "-s",
        metavar="FILE",
        help="Where to look for --id: files with the fields id and where, or the folder of a saved engine.",
    ),
]
_LanguageOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The language of --where: sql, xpath, or a package's.  [default: sql]"),
]
_EventOption = Annotated[
    str | None,
    typer.Option(
        metavar="EVENT", help="The position of the event, from 0, or its value of --event-id.  [default: the first]"
    ),
]
_EventIdOption = Annotated[
    str | None, typer.Option(metavar="FIELD", help="Name events by this field, not by position from 0.")
]
_PlanOption = Annotated[
    bool, typer.Option("--plan", help="Show how the subscriptions are indexed, and what events cost.")
]


def explain(
    events: _EventsArgument = None,
    subscriptions: _SubscriptionsOption = None,
    id: Annotated[str | None, typer.Option("--id", metavar="ID", help="The subscription to explain.")] = None,
    where: Annotated[str | None, typer.Option(metavar="TEXT", help="Explain this text instead.")] = None,
    language: _LanguageOption = None,
    event: _EventOption = None,
    event_id: _EventIdOption = None,
    event_json: Annotated[str | None, typer.Option(metavar="JSON", help="Take this event, and no EVENTS.")] = None,
    plan: _PlanOption = False,
    schema: SchemaFile = None,
    format: EventFormat = None,
    split: Split = None,
    operators: Operators = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Show why an event matches a subscription, or why it does not.

    Every part of the condition is shown with its truth for the event, ✓ true, ✗ false or ? unknown, and with the
    values of the event that it was tested on.

    With --plan: how the engine has indexed the subscriptions, group by group, and how many of them it expects to
    examine for an event. With EVENTS the plan is made for them, and measured figures are shown beside the expected.
    """
    with session(json, verbose) as screen:
        from harken.cli.inputs import event_files, loaded_operators, subscription_files

        files_of_events = event_files(events, format) if events else None
        files_of_subscriptions = subscription_files(subscriptions) if subscriptions else None
        if plan:
            choices = [id, where, language, event, event_id, event_json]
            _show_plan(screen, files_of_events, files_of_subscriptions, schema, format, split, operators, choices)
            return
        from harken.cli.selecting import EventChoice, SubscriptionChoice

        explanation = _explained(
            SubscriptionChoice(files_of_subscriptions, id, where, language),
            EventChoice(files_of_events, event, event_id, event_json, format, split),
            schema,
            loaded_operators(operators),
        )
        if json:
            screen.line(explanation.to_dict())
        else:
            show_explanation(screen, explanation)


def _explained(
    subscription: SubscriptionChoice, event: EventChoice, schema: str | None, operators: OperatorSet
) -> Explanation:
    from harken.cli.inputs import saved_engine
    from harken.engine import Engine
    from harken.events import looked_at
    from harken.language.compiled import Compiler
    from harken.limits import DEFAULT_LIMITS
    from harken.matchers.kinds import OPERATORS
    from harken.schema import load_schema

    saved = saved_engine(subscription.files, {"--schema": schema}, operators) if subscription.files else None
    used_schema = saved.schema if saved is not None else None if schema is None else load_schema(schema)
    limits = DEFAULT_LIMITS if saved is None else saved.internals.limits
    text, language = subscription.find(saved)

    def find_event(names: frozenset[str]) -> Mapping[str, Any]:
        return event.find(used_schema, looked_at(names, used_schema)).attributes

    compiler = Compiler(used_schema, limits, operators.signatures)
    if not operators or compiler.compile(text, language).plan.kind != OPERATORS:
        return compiler.explain(text, find_event, language)
    engine = Engine(used_schema, limits=limits, operators=operators)
    engine.subscribe("explained", text)
    return engine.explain("explained", event.find(used_schema, None).attributes)


def _show_plan(
    screen: Screen,
    events: list[str] | None,
    subscriptions: list[str] | None,
    schema: str | None,
    format: str | None,
    split: str | None,
    operators: Sequence[str] | None,
    choices: Sequence[object],
) -> None:
    from harken.cli.plan_view import plan_of, show_plan

    if subscriptions is None:
        raise typer.BadParameter("it needs --subscriptions FILE", param_hint="--plan")
    if any(choice is not None for choice in choices):
        raise typer.BadParameter(
            "it covers all subscriptions: choose no subscription and no event", param_hint="--plan"
        )
    plan = plan_of(screen, subscriptions, events, schema, format, split, operators)
    if screen.json:
        screen.line(plan)
    else:
        show_plan(screen, plan)


def show_explanation(screen: Screen, explanation: Explanation) -> None:
    """Show the verdict and the tree, in colours."""
    from rich.text import Text

    verdict = "matches" if explanation.matched else "does not match"
    screen.show(Text(verdict, f"bold {_STYLES[explanation.matched]}"))
    for line in _lines(explanation.tree, ""):
        screen.show(line)


def _lines(part: Clause, indent: str) -> Iterator[Text]:
    """The tree of a part, as `Clause.lines` writes it, in colours."""
    from rich.text import Text

    from harken.language.explanation import MARKS

    line = Text.assemble(indent, (MARKS[part.truth], f"bold {_STYLES[part.truth]}"), " ", printable(part.text))
    if part.met:
        line.append(f"   ({printable(part.values)})", "cyan")
    if part.note is not None:
        line.append(f"   -- {printable(part.note)}", "dim")
    yield line
    for inner in part.parts:
        yield from _lines(inner, indent + "  ")
