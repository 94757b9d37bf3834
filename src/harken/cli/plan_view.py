"""The work of `harken explain --plan`: how the engine has indexed subscriptions, and the expected costs of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harken.cli.screen import Screen, counted

if TYPE_CHECKING:
    from rich.table import Table

    from harken.cli.inputs import EventFiles
    from harken.engine import Engine

_SHOWN = 20
_EVENTS = 10_000
"""At most this many events are matched to measure their costs."""


def plan_of(
    screen: Screen,
    subscriptions: Sequence[str],
    events: Sequence[str] | None,
    schema: str | None,
    format: str | None,
    split: str | None = None,
    operators: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The engine's statistics of its matcher, after some events if there are any. Raises HarkenError.

    Rejected subscriptions are reported. A saved engine is shown as it was saved, not planned again.
    """
    from harken.cli.inputs import EventFiles, loaded_operators, saved_engine
    from harken.engine import Engine
    from harken.errors import CapabilityError
    from harken.schema import load_schema

    loaded = loaded_operators(operators)
    saved = saved_engine(subscriptions, {"--schema": schema}, loaded)
    engine_schema = None if schema is None else load_schema(schema)
    engine = Engine(engine_schema, operators=loaded) if saved is None else saved
    files = None if events is None else EventFiles(events, format, engine.schema, split=split)
    rejected = 0 if saved is not None else _subscribe(engine, subscriptions, screen)
    if files is not None:
        _match_some(engine, files, is_planned=saved is not None)
    elif saved is None:
        engine.merge()
    stats = engine.stats()
    if "layers" not in stats["matcher"]:
        raise CapabilityError(f"the algorithm `{engine.algorithm}` makes no plan")
    programs = {"programs": stats["programs"]} if "programs" in stats else {}
    calling = {"operators": engine.internals.operator_plan()} if loaded else {}
    return {"subscriptions": len(engine), "rejected": rejected, **stats["matcher"], **programs, **calling}


def _subscribe(engine: Engine, files: Sequence[str], screen: Screen) -> int:
    """Load the subscriptions and show the first rejected ones. Returns the number rejected."""
    from harken.cli.inputs import SubscriptionFiles
    from harken.cli.matching_files import subscribe
    from harken.cli.rejections import rejections

    with rejections(screen, None, more="`harken check` lists all of them") as rejected:
        subscribe(engine, SubscriptionFiles(files), True, screen, rejected)
    return rejected.counts["subscription"]


def _match_some(engine: Engine, events: EventFiles, is_planned: bool) -> None:
    seen = 0
    for batch in events.batches(engine.attributes()):
        if seen == 0 and not is_planned:
            engine.learn(batch.decoded.batch)
        engine.match_batch(batch.decoded)
        seen += batch.size
        if seen >= _EVENTS:
            return


def show_plan(screen: Screen, plan: dict[str, Any]) -> None:
    """Show the layers and their groups, the most costly first."""
    rejected = f" ({plan['rejected']:,} rejected)" if plan["rejected"] else ""
    screen.show(
        f"{counted(plan['subscriptions'], 'subscription')}{rejected} in {counted(plan['rows'], 'row')}, "
        f"{plan['bytes'] / max(1, plan['rows']):.0f} bytes a row, {counted(plan['constants'], 'constant')} "
        f"in {counted(len(plan['columns']), 'column')}; {counted(plan['events_seen'], 'event')} seen"
    )
    _show_costs(screen, plan)
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
    if "programs" in plan:
        _show_programs(screen, plan["programs"])
    if "operators" in plan:
        _show_operators(screen, plan["operators"])


def _show_costs(screen: Screen, plan: dict[str, Any]) -> None:
    """Show the total cost of an event, expected and measured."""
    besides = {what: each["expected_ns"] for what, each in plan["besides"].items()}
    searching = sum(group["expected_ns"] for layer in plan["layers"] for group in layer["groups"])
    parts = ", ".join(f"{what} {cost:,.0f}" for what, cost in {**besides, "searching": searching}.items())
    seen = "" if plan["seen_ns"] is None else f"; {plan['seen_ns']:,} seen"
    screen.show(f"expected ns an event: {searching + sum(besides.values()):,.0f} ({parts}){seen}")


def _show_operators(screen: Screen, literals: list[dict[str, Any]]) -> None:
    """Show the statistics of predicates of operators, in the order in which they are evaluated at first."""
    from rich import box
    from rich.table import Table

    screen.show(f"\n{counted(len(literals), 'predicate')} of operators, those first that settle most for their cost")
    table = Table("predicate", "conjunctions", "holds", "tried", "cost", "worth", box=box.SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    for each in literals[:_SHOWN]:
        holding = f"{each['holding']:.3f}" if each["tried"] else f"{each['holding']:.3f}?"
        figures = (
            f"{each['conjunctions']:,}",
            holding,
            f"{each['tried']:,}",
            f"{each['cost']:g}",
            f"{each['worth']:g}",
        )
        table.add_row(each["text"], *figures)
    screen.show(table, wrap=True)


def _show_programs(screen: Screen, programs: dict[str, Any]) -> None:
    """Show the indexes of programs: the number of programs run per event, expected and measured."""
    from rich import box
    from rich.table import Table

    memory = programs["memory"]["bytes"] / max(1, programs["subscriptions"])
    count = counted(programs["subscriptions"], "subscription")
    screen.show(f"\n{count} with patterns or many alternatives as programs, {memory:.0f} bytes each")
    table = Table("programs", "patterns", "always run", "run", "seen", "ns", "seen", box=box.SIMPLE_HEAD)
    for column in table.columns:
        column.justify = "right"
    for index in programs["indexes"]:
        seen_programs, seen_ns = index["seen_programs"], index["seen_ns"]
        table.add_row(
            f"{index['programs']:,}",
            f"{index['patterns']:,}",
            f"{index['always']:,}",
            f"{index['expected_programs']:,.1f}",
            "" if seen_programs is None else f"{seen_programs:,.1f}",
            f"{index['expected_ns']:,}",
            "" if seen_ns is None else f"{seen_ns:,}",
        )
    screen.show(table, wrap=True)


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


def found_by(group: dict[str, Any]) -> str:
    """How the index finds the rows of a group."""

    def listed(*columns: str | None) -> str:
        return ", ".join(column for column in columns if column)

    if "directory" in group:
        return "directory of " + listed(*group["directory"]) if group["directory"] else "bitmaps"
    parts = {
        "key": listed(group["key"]),
        "filter of": listed(group["key"], *group["filter"]) if group["filter"] else "",
        "range of": listed(group["range"]),
    }
    return ", ".join(f"{what} {columns}" for what, columns in parts.items() if columns) or "all"
