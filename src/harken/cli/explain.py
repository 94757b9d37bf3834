"""`harken explain`: why an event matches a subscription, or why it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.options import FORMATS, EventFormat, Json, SchemaFile, Verbose
from harken.cli.screen import Screen, printable
from harken.cli.session import session

if TYPE_CHECKING:
    from rich.text import Text

    from harken.explain import Explanation, Part

EXAMPLES = """\b
Examples:
  harken explain events.jsonl --subscriptions subscriptions.jsonl --id bob
  harken explain events.jsonl --event-id order=A17 --where "price < 5"
  harken explain --event-json '{"price": 3}' --where "price < 5 AND qty = 2"
  harken explain events.jsonl --subscriptions subscriptions.jsonl --plan
"""
_STYLES = {True: "green", False: "red", None: "yellow"}


def explain(
    events: Annotated[str | None, typer.Argument(metavar="EVENTS", help=f"{FORMATS}; - is standard input.")] = None,
    subscriptions: Annotated[
        str | None, typer.Option("--subscriptions", "-s", metavar="FILE", help="Where to look for --id.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", metavar="ID", help="The subscription to explain.")] = None,
    where: Annotated[str | None, typer.Option(metavar="TEXT", help="Explain this text instead.")] = None,
    event: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The position of the event, from 0.  [default: 0]")
    ] = None,
    event_id: Annotated[
        str | None, typer.Option(metavar="FIELD=VALUE", help="Take the first event whose field has this value.")
    ] = None,
    event_json: Annotated[str | None, typer.Option(metavar="JSON", help="Take this event, and no EVENTS.")] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show how the subscriptions are indexed, and what events cost.")
    ] = False,
    schema: SchemaFile = None,
    format: EventFormat = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Show why an event matches a subscription, or why it does not.

    Every part of the condition is shown with its truth for the event, ✓ true, ✗ false or ? unknown, and with the
    values that it met there.

    With --plan: how the engine has laid out the subscriptions, group by group, and how many it expects to look at for
    an event. With EVENTS the plan is made for them, and what was seen is shown beside what was expected.
    """
    with session(json, verbose) as screen:
        if plan:
            _show_plan(screen, events, subscriptions, schema, format, [id, where, event, event_id, event_json])
            return
        from harken.cli.selecting import EventChoice, SubscriptionChoice
        from harken.explain import explain as explained
        from harken.language.compiled import Compiler
        from harken.schema import load_schema

        subscription = SubscriptionChoice(subscriptions, id, where)
        chosen = EventChoice(events, event, event_id, event_json, format)
        known = None if schema is None else load_schema(schema)
        compiled = Compiler(known).compile(*subscription.find())
        explanation = explained(compiled.expression, chosen.find(known).attributes, known)
        if json:
            screen.line(explanation.to_dict())
        else:
            show_explanation(screen, explanation)


def _show_plan(
    screen: Screen,
    events: str | None,
    subscriptions: str | None,
    schema: str | None,
    format: str | None,
    choices: list[object],
) -> None:
    from harken.cli.planning import plan_of, show_plan

    if subscriptions is None:
        raise typer.BadParameter("a plan is one of --subscriptions FILE", param_hint="--plan")
    if any(choice is not None for choice in choices):
        raise typer.BadParameter("a plan is of all subscriptions: choose neither one nor an event", param_hint="--plan")
    found = plan_of(subscriptions, events, schema, format)
    if screen.json:
        screen.line(found)
    else:
        show_plan(screen, found)


def show_explanation(screen: Screen, explanation: Explanation) -> None:
    """The verdict and the tree, in colours."""
    from rich.text import Text

    verdict = "matches" if explanation.matched else "does not match"
    screen.show(Text(verdict, f"bold {_STYLES[explanation.matched]}"))
    for line in _lines(explanation.tree, ""):
        screen.show(line)


def _lines(part: Part, indent: str) -> Iterator[Text]:
    """The tree of a part, as `Part.lines` has it, in colours."""
    from rich.text import Text

    from harken.explain import MARKS

    line = Text.assemble(indent, (MARKS[part.truth], f"bold {_STYLES[part.truth]}"), " ", printable(part.text))
    if part.met:
        line.append(f"   ({printable(part.values)})", "cyan")
    if part.note is not None:
        line.append(f"   -- {printable(part.note)}", "dim")
    yield line
    for inner in part.parts:
        yield from _lines(inner, indent + "  ")
