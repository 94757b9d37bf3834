"""Plots for a page: shapes are inline SVG that stretches; text is HTML, which stays readable on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from harken_lab.demo.timeline import SparkStep

_HOURS = (0, 3, 6, 9, 12, 15, 18, 21, 24)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart: its label, its length, and its value as text."""

    label: str
    length: float
    value: str
    hint: str = ""


def day(values: Sequence[int], unit: str, colour: str) -> str:
    """A value for every minute of a day, as an area."""
    top = nice(max(values, default=0))
    points = " ".join(f"{minute},{100 - 100 * value / top:.2f}" for minute, value in enumerate(values))
    peak = max(range(len(values)), key=values.__getitem__)
    marks = "".join(f'<span style="left:{100 * hour / 24:.2f}%">{hour:02d}:00</span>' for hour in _HOURS)
    note = f"{values[peak]:,} {escape(unit)} at {peak // 60:02d}:{peak % 60:02d}"
    side = "right" if peak > len(values) * 0.6 else "left"
    place = f"{side}:{100 * ((len(values) - peak) if side == 'right' else peak) / len(values):.2f}%"
    return (
        f'<div class="day {colour}"><div class="plot">'
        f'<span class="top">{top:,}</span><span class="half">{top // 2:,}</span>'
        f'<svg viewBox="0 0 {len(values)} 100" preserveAspectRatio="none" role="img" aria-label="{escape(unit)}">'
        f'<polygon points="0,100 {points} {len(values)},100"/><polyline points="{points}"/></svg>'
        f'<span class="peak {side}" style="{place}">{note}</span></div><div class="hours">{marks}</div></div>'
    )


def bars(rows: Sequence[Bar], colour: str = "one") -> str:
    """Horizontal bars, with labels before and values after them."""
    longest = max((row.length for row in rows), default=0) or 1
    lines = []
    for row in rows:
        share = 100 * row.length / longest
        lines.append(
            f'<div class="bar" title="{escape(row.hint)}"><span>{escape(row.label)}</span>'
            f'<svg height="14" role="presentation"><rect width="{share:.2f}%" height="14" rx="3"/></svg>'
            f"<b>{escape(row.value)}</b></div>"
        )
    return f'<div class="bars {colour}">{"".join(lines)}</div>'


def columns(rows: Sequence[Bar], colour: str = "one") -> str:
    """Vertical bars, with values above and labels below them."""
    highest = max((row.length for row in rows), default=0) or 1
    cells = []
    for row in rows:
        share = 100 * row.length / highest
        cells.append(
            f'<div title="{escape(row.hint)}"><b>{escape(row.value)}</b><svg role="presentation">'
            f'<rect y="{100 - share:.2f}%" width="100%" height="{share:.2f}%" rx="2"/></svg>'
            f"<span>{escape(row.label)}</span></div>"
        )
    return f'<div class="columns {colour}">{"".join(cells)}</div>'


def heat(rows: dict[str, list[int]], unit: str) -> str:
    """Values by row and hour; larger ones are darker."""
    most = max((max(values) for values in rows.values()), default=0) or 1
    head = "".join(f"<i>{hour if hour % 3 == 0 else ''}</i>" for hour in range(24))
    lines = [f'<div class="row"><span></span>{head}</div>']
    for name, values in rows.items():
        cells = "".join(
            f'<i style="--heat:{100 * (value / most) ** 0.6:.0f}%" title="{escape(name)}, {hour:02d}:00 to '
            f'{hour + 1:02d}:00: {value:,} {escape(unit)}"></i>'
            for hour, value in enumerate(values)
        )
        lines.append(f'<div class="row"><span>{escape(name)}</span>{cells}</div>')
    return f'<div class="heat">{"".join(lines)}</div>'


def gantt(steps: Sequence[SparkStep], start: float, seconds: float) -> str:
    """A Gantt chart: when each step ran, from `start` and for `seconds`."""
    lines = []
    for name in dict.fromkeys(step.name for step in steps):
        own = [step for step in steps if step.name == name]
        rects = "".join(
            f'<rect x="{100 * (step.start - start) / seconds:.2f}%" width="{100 * step.seconds / seconds:.2f}%" '
            f'height="14" rx="3"><title>{escape(name)}: {step.seconds:,.1f} s</title></rect>'
            for step in own
        )
        lines.append(
            f'<div class="bar"><span>{escape(name)}</span><svg class="track" height="14" role="presentation">{rects}'
            f"</svg><b>{sum(step.seconds for step in own):,.1f} s</b></div>"
        )
    return f'<div class="bars two">{"".join(lines)}</div>'


def nice(most: int) -> int:
    """The next round number: `most` or above."""
    unit = 10 ** max(0, len(str(most)) - 1)
    return next((each * unit for each in (1, 2, 3, 4, 5, 6, 8, 10) if each * unit >= most), 10 * unit) or 1


def doubling(counts: Sequence[int], most: int = 10) -> list[tuple[str, int]]:
    """A histogram as buckets 0, 1, 2, 3–4, 5–8 and so on, at most `most`; the last bucket has all the rest."""
    buckets = [("0", sum(counts[:1])), ("1", sum(counts[1:2])), ("2", sum(counts[2:3]))]
    low = 3
    while low < len(counts):
        high = 2 * (low - 1)
        if len(buckets) == most - 1 and high < len(counts) - 1:
            buckets.append((f"{low}+", sum(counts[low:])))
            break
        buckets.append((f"{low}–{high}", sum(counts[low : high + 1])))
        low = high + 1
    return buckets
