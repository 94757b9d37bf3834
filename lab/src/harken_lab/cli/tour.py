"""`harken tour`: a made-up auction, or a city watched from the air, in one process without Spark."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harken.cli.command_session import session
from harken.cli.explain import show_explanation
from harken.cli.json_output import to_json
from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen

if TYPE_CHECKING:
    from rich.table import Table

    from harken_lab.workloads.auction.market_tour import DemoResult, SubscriptionSummary

EXAMPLES = "Example: harken tour --subscriptions 10000 --events 1000"


class Destination(StrEnum):
    """The places that the tour can show."""

    AUCTION = "auction"
    OPERATORS = "operators"


def tour(
    place: Annotated[
        Destination, typer.Argument(help="An auction market, or a city watched from the air, with expensive operators.")
    ] = Destination.AUCTION,
    subscriptions: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many generated subscriptions.  [default: 3000, operators 150]"),
    ] = None,
    events: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="How many events.  [default: 500, operators 100]")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="The same seed gives the same tour.")] = 1,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Show which subscriptions match the events of a made-up market or city."""
    with session(json, verbose) as screen:
        if place is Destination.OPERATORS:
            _watch(screen, subscriptions or 150, events or 100, seed)
            return
        from harken_lab.workloads.auction.market_tour import run

        with screen.progress("matching events") as advance:
            result = run(subscriptions or 3_000, events or 500, seed, advance)
        if json:
            screen.line(_data(result))
        else:
            _show(screen, result)


def _watch(screen: Screen, subscriptions: int, events: int, seed: int) -> None:
    from harken_lab.workloads.surveillance import run

    with screen.progress("matching events") as advance:
        watch = run(subscriptions, events, seed, advance)
    if screen.json:
        screen.line({**asdict(watch), "explanation": watch.explanation.to_dict()})
        return
    from rich import box
    from rich.padding import Padding
    from rich.table import Table

    screen.show(
        f"A city watched from the air: {watch.subscriptions:,} subscriptions over {watch.events:,} pictures, "
        f"{watch.matches:,} matches in {watch.seconds:.1f} s.\n"
    )
    notified = Table("subscription", "matches", box=box.SIMPLE_HEAD)
    notified.columns[1].justify = "right"
    for id, count in watch.told.items():
        notified.add_row(id, f"{count:,}")
    screen.show(notified, wrap=True)
    screen.show(f"Evaluations and time a picture, by order, with {watch.predicates:,} distinct predicates:")
    orders = Table("order", "evaluated", "ms in operators", box=box.SIMPLE_HEAD)
    for column in orders.columns[1:]:
        column.justify = "right"
    for order, spent in watch.spent.items():
        milliseconds = 1e3 * spent["seconds"] / watch.events
        orders.add_row(order, f"{spent['evaluations'] / watch.events:,.1f}", f"{milliseconds:,.1f}")
    screen.show(orders, wrap=True)
    screen.show("Calls of the operators, with the last of these orders:")
    called = Table("operator", "calls", "evaluations", "seconds", box=box.SIMPLE_HEAD)
    for column in called.columns[1:]:
        column.justify = "right"
    for name, each in watch.operators.items():
        called.add_row(name, f"{each['calls']:,}", f"{each['evaluations']:,}", f"{each['seconds']:.2f}")
    screen.show(called, wrap=True)
    screen.show(f"Why `{watch.explained}` does not match a picture:\n")
    show_explanation(screen, watch.explanation)
    screen.show(Padding("Next: read docs/operators.md", (1, 0, 0, 0)))


def _show(screen: Screen, result: DemoResult) -> None:
    from rich.padding import Padding

    screen.show(
        f"An auction market: {result.subscriptions:,} subscriptions added in {result.seconds_to_subscribe:.1f} s, "
        f"{result.events:,} events matched in {result.seconds_to_match:.1f} s, {result.matches:,} matches.\n"
    )
    screen.show("Ten of the subscriptions, and their matches:")
    screen.show(_table(result.summaries), wrap=True)
    if result.rejected:
        rejected = (
            "1 event was rejected" if len(result.rejected) == 1 else f"{len(result.rejected)} events were rejected"
        )
        screen.show(f"{rejected}. The first because:")
        screen.show(f"  {result.rejected[0].error}\n")
    screen.show(f"Why `{result.explained}` does not match {to_json(result.event)}:\n")
    show_explanation(screen, result.explanation)
    screen.show(Padding(_NEXT, (1, 0, 0, 0)))


_NEXT = "Next: read README.md, and try  harken match --help"


def _table(summaries: list[SubscriptionSummary]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("subscription", overflow="fold")
    table.add_column("where", overflow="fold")
    table.add_column("matches", justify="right")
    table.add_column("for example", overflow="fold")
    for summary in summaries:
        event = summary.example
        example = "" if event is None else f"{event['description']}, {event['price']:,.2f}"
        table.add_row(summary.subscription.id, summary.subscription.where, f"{summary.matched:,}", example)
    return table


def _data(result: DemoResult) -> dict[str, Any]:
    return {
        "subscriptions": result.subscriptions,
        "events": result.events,
        "rejected": len(result.rejected),
        "matches": result.matches,
        "seconds_to_subscribe": result.seconds_to_subscribe,
        "seconds_to_match": result.seconds_to_match,
        "matched": {summary.subscription.id: summary.matched for summary in result.summaries},
        "explanation": result.explanation.to_dict(),
    }
