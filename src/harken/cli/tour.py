"""`harken tour`: an auction in one process, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from harken.cli.explain import show_explanation
from harken.cli.json_text import to_json
from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen
from harken.cli.session import session

if TYPE_CHECKING:
    from rich.table import Table

    from harken.lab.workloads.auction.demo import DemoResult, Story


def tour(
    subscriptions: Annotated[int, typer.Option(metavar="N", min=1, help="How many generated subscriptions.")] = 3_000,
    events: Annotated[int, typer.Option(metavar="N", min=2, help="How many events.")] = 500,
    seed: Annotated[int, typer.Option(metavar="S", help="The same seed gives the same auction.")] = 1,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Watch a made-up auction market, and who is told of what."""
    with session(json, verbose) as screen:
        from harken.lab.workloads.auction.demo import run

        with screen.progress("matching events") as advance:
            result = run(subscriptions, events, seed, advance)
        if json:
            screen.line(_data(result))
        else:
            _show(screen, result)


def _show(screen: Screen, result: DemoResult) -> None:
    from rich.padding import Padding

    screen.show(
        f"An auction market: {result.subscriptions:,} subscriptions taken in {result.seconds_to_subscribe:.1f} s, "
        f"{result.events:,} events matched in {result.seconds_to_match:.1f} s, {result.matches:,} matches.\n"
    )
    screen.show("Ten of the subscriptions, and what they were told of:")
    screen.show(_table(result.stories), wrap=True)
    if result.refused:
        screen.show(f"{len(result.refused)} events were refused, the first of them because:")
        screen.show(f"  {result.refused[0].error}\n")
    screen.show(f"Why `{result.explained}` was not told of {to_json(result.event)}:\n")
    show_explanation(screen, result.explanation)
    screen.show(Padding(_NEXT, (1, 0, 0, 0)))


_NEXT = "Next: read README.md, and try  harken match --help"


def _table(stories: list[Story]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("subscription", overflow="fold")
    table.add_column("where", overflow="fold")
    table.add_column("told of", justify="right")
    table.add_column("for example", overflow="fold")
    for story in stories:
        example = "" if story.example is None else f"{story.example['description']}, {story.example['price']:,.2f}"
        table.add_row(story.subscription.id, story.subscription.where, f"{story.matched:,}", example)
    return table


def _data(result: DemoResult) -> dict[str, Any]:
    return {
        "subscriptions": result.subscriptions,
        "events": result.events,
        "refused": len(result.refused),
        "matches": result.matches,
        "seconds_to_subscribe": result.seconds_to_subscribe,
        "seconds_to_match": result.seconds_to_match,
        "matched": {story.subscription.id: story.matched for story in result.stories},
        "explanation": result.explanation.to_dict(),
    }
