"""The work of `harken explain --plan`: how the engine has laid out subscriptions, and what it expects of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harken.cli.screen import Screen, counted

if TYPE_CHECKING:
    from rich.table import Table

_SHOWN = 20
_EVENTS = 10_000
"""So many events are matched to see what they cost."""


def plan_of(subscriptions: str, events: str | None, schema: str | None, format: str | None) -> dict[str, Any]:
    """What the engine says of its matcher, after some events if there are any. Raises HarkenError."""
    from harken.engine import Engine
    from harken.errors import SourceError
    from harken.events import read_events, read_rows
    from harken.schema import load_schema
    from harken.subscriptions import records_of_rows

    known = None if schema is None else load_schema(schema)
    engine = Engine(known)
    batches = None if events is None else read_events(events, format, known)
    report = engine.subscribe_many(records_of_rows(read_rows(subscriptions, types=False)), replace=True)
    if not report.accepted:
        raise SourceError(f"{subscriptions} has no subscription that can be used")
    seen = 0
    if batches is not None:
        for decoded in batches:
            if seen == 0:
                engine.learn(decoded.batch)
            engine.match_decoded(decoded)
            seen += len(decoded.batch)
            if seen >= _EVENTS:
                break
    else:
        engine.merge()
    return {"subscriptions": len(engine), "refused": len(report.faults), **engine.stats()["matcher"]}


def show_plan(screen: Screen, plan: dict[str, Any]) -> None:
    """The layers and their groups, the most costly first."""
    screen.show(
        f"{counted(plan['subscriptions'], 'subscription')} in {counted(plan['rows'], 'row')}, "
        f"{plan['bytes'] / max(1, plan['rows']):.0f} bytes a row, {counted(plan['constants'], 'constant')} "
        f"in {counted(len(plan['columns']), 'column')}; {counted(plan['events_seen'], 'event')} seen"
    )
    for number, layer in enumerate(plan["layers"]):
        if len(plan["layers"]) > 1:
            screen.show(f"\nlayer {number}: {counted(layer['rows'], 'row')}")
        groups = sorted(layer["groups"], key=lambda group: -group["expected_ns"])
        screen.show(_table(groups[:_SHOWN]), wrap=True)
        if len(groups) > _SHOWN:
            rest = groups[_SHOWN:]
            cost = sum(group["expected_ns"] for group in rest)
            rows = sum(group["rows"] for group in rest)
            screen.show(f"and {counted(len(rest), 'group')} more: {counted(rows, 'row')}, {cost:,.0f} ns an event")


def _table(groups: list[dict[str, Any]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("layout", "rows", "attributes", "found by", "candidates", "seen", "ns", box=box.SIMPLE_HEAD)
    for column in (1, 4, 5, 6):
        table.columns[column].justify = "right"
    for group in groups:
        seen = group["seen_candidates"]
        table.add_row(
            group["layout"] + (" (verified)" if group["verified"] else ""),
            f"{group['rows']:,}",
            ", ".join(group["attributes"]),
            found_by(group),
            f"{group['expected_candidates']:,.1f}",
            "" if seen is None else f"{seen:,.1f}",
            f"{group['expected_ns']:,.1f}",
        )
    return table


def found_by(group: dict[str, Any], named: Callable[[str], str] = str) -> str:
    """What leads to the rows of a group, with the names that columns are to have."""

    def told(*columns: str | None) -> str:
        return ", ".join(named(column) for column in columns if column)

    if "directory" in group:
        return "directory of " + told(*group["directory"]) if group["directory"] else "bitmaps"
    parts = {
        "key": told(group["key"]),
        "filter of": told(group["key"], *group["filter"]) if group["filter"] else "",
        "range of": told(group["range"]) + (f" in {group['steps']} steps" if group["steps"] else ""),
    }
    return ", ".join(f"{what} {columns}" for what, columns in parts.items() if columns) or "all"
