"""Formats the progress of a run in lines for people."""

from __future__ import annotations

from collections.abc import Mapping

from harken.live.notifications import TYPE
from harken.pipeline.counts import Counts
from harken.pipeline.reports import BatchReport, Report
from harken.pipeline.run_metrics import Meter, lag_of


def text_of(report: Report) -> str:
    """A report in one line."""
    if not isinstance(report, BatchReport):
        return str(report)
    counts = report.counts
    parts = [
        *parts_of(counts),
        f"{report.seconds:.1f} s",
        f"{_rate(counts.events, report.seconds)} events/s",
        *_lag(report),
        f"index version {report.version.version}",
    ]
    return f"batch {report.batch}{' (again)' if report.is_replay else ''}: {' · '.join(parts)}"


def running_text(meter: Meter) -> str:
    """The run so far, in one line."""
    counts = meter.counts
    parts = [
        *parts_of(counts),
        f"{_rate(counts.events, meter.seconds)} events/s",
        *([] if meter.last is None else [f"batch {meter.last.batch}", *_lag(meter.last)]),
    ]
    return " · ".join(parts)


def parts_of(counts: Counts) -> list[str]:
    """The counts in words: events and notifications always, duplicates and the like only if there are any."""
    dead = counts.dead_letter_count - counts.dead_letters.get(TYPE, 0)
    unusual = {"duplicate": counts.duplicates, "late event": counts.late, "dead letter": dead}
    usual = [counted(counts.events, "event"), counted(counts.notifications, "notification")]
    odd = counted(sum(counts.odd_values.values()), "odd value")
    return (
        usual
        + [counted(count, noun) for noun, count in unusual.items() if count]
        + ([f"{odd} ({odd_text(counts.odd_values)})"] if counts.odd_values else [])
    )


def odd_text(odd_values: Mapping[str, int]) -> str:
    """The counts of odd values in words, attribute by attribute."""
    return ", ".join(f"{attribute} {count:,}" for attribute, count in odd_values.items())


def counted(count: int, noun: str) -> str:
    """A number with its noun, in the plural if needed."""
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def _lag(report: BatchReport) -> list[str]:
    lag = lag_of(report)
    return [] if lag is None else [f"lag {span(lag)}"]


def span(seconds: float) -> str:
    """A duration in a suitable unit."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.1f} s"


def _rate(count: int, seconds: float) -> str:
    return f"{count / max(seconds, 1e-9):,.0f}"
