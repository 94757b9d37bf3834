"""How a run goes, for people: what a line about it says."""

from __future__ import annotations

from collections.abc import Mapping

from harken.pipeline.counts import TYPE, Counts
from harken.pipeline.metrics import Meter, lag_of
from harken.pipeline.stream import BatchReport, Told


def text_of(told: Told) -> str:
    """A batch, or a change of the subscriptions, in a line."""
    if not isinstance(told, BatchReport):
        return str(told)
    counts = told.counts
    parts = [
        *parts_of(counts),
        f"{told.seconds:.1f} s",
        f"{_rate(counts.events, told.seconds)} events/s",
        *_lag(told),
        f"index version {told.version.version}",
    ]
    return f"batch {told.batch}{' (again)' if told.is_replay else ''}: {' · '.join(parts)}"


def running_text(meter: Meter) -> str:
    """The run so far, in a line."""
    counts = meter.counts
    parts = [
        *parts_of(counts),
        f"{_rate(counts.events, meter.seconds)} events/s",
        *([] if meter.last is None else [f"batch {meter.last.batch}", *_lag(meter.last)]),
    ]
    return " · ".join(parts)


def parts_of(counts: Counts) -> list[str]:
    """What came of events: how many there were, and of what is not usual, how many if there are some."""
    refused = counts.refused - counts.dead_letters.get(TYPE, 0)
    unusual = {"duplicate": counts.duplicates, "late event": counts.late, "dead letter": refused}
    usual = [counted(counts.events, "event"), counted(counts.notifications, "notification")]
    odd = counted(sum(counts.odd_values.values()), "odd value")
    return (
        usual
        + [counted(count, noun) for noun, count in unusual.items() if count]
        + ([f"{odd} ({told_odd(counts.odd_values)})"] if counts.odd_values else [])
    )


def told_odd(odd_values: Mapping[str, int]) -> str:
    """How many odd values each attribute has."""
    return ", ".join(f"{attribute} {count:,}" for attribute, count in odd_values.items())


def counted(count: int, noun: str) -> str:
    """A number and what it counts, in the plural unless it is one."""
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def _lag(told: BatchReport) -> list[str]:
    lag = lag_of(told)
    return [] if lag is None else [f"lag {span(lag)}"]


def span(seconds: float) -> str:
    """A time that passed, in the unit that suits it."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.1f} s"


def _rate(count: int, seconds: float) -> str:
    return f"{count / max(seconds, 1e-9):,.0f}"
