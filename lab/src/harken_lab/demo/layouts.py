"""The groups of rows of an index, described in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LAYOUTS = {
    "cluster": "rows that ask for the same attributes, sorted by the most selective of them, as in a telephone book. "
    "An event goes straight to the few rows with its own value and is compared with these only.",
    "sketch": "a cluster too large for the processor's cache. Each row also has a short form, which rules out nearly "
    "all rows without reading the rest.",
    "list": "rows that share the value of one attribute and have little else in common. Those that an event reaches "
    "are tested one by one.",
    "pool": "rows on attributes that have few values. For every value there is a bitmap with a bit a row; the bitmaps "
    "of an event's values are combined, and the bits that are left are the rows that match.",
    "sieve": "rows of many ranges. The values of an attribute fall into a few dozen buckets, each with a bitmap of the "
    "rows that may admit one of its values; the few rows that all bitmaps of an event have in common are tested.",
}
"""The ways to store a group of rows, and what each means."""


def attribute_of(column: str) -> str:
    """The attribute of a column. A column's name is an attribute and a kind."""
    return column.rpartition(" ")[0]


def reached(group: Mapping[str, Any]) -> str:
    """How an event finds the rows of a group that it is compared with."""
    if "directory" in group:
        return f"by its {_listed(group['directory'])}" if group["directory"] else "by bitmaps alone"
    steps = []
    if group["filter"]:
        steps.append(f"if any row asks for its {_listed(_columns(group['key'], *group['filter']))}")
    if group["key"]:
        steps.append(f"by its {attribute_of(group['key'])}")
    if group["range"]:
        steps.append(f"by the range of {attribute_of(group['range'])}")
    return ", then ".join(steps) or "all rows are compared"


def as_sentences(group: Mapping[str, Any]) -> str:
    """A group in sentences: its attributes, how an event finds its rows, and the expected time."""
    attributes = _listed(group["attributes"])
    way = reached(group)
    access = "It is compared with all rows" if way.startswith("all") else f"An event finds its rows {way}"
    return (
        f"{group['rows']:,} rows ask for {attributes}, and are stored as a {group['layout']}. {access}. On average it "
        f"is compared with {group['expected_candidates']:,.1f} of them, which is expected to take "
        f"{group['expected_ns']:,.1f} ns."
    )


def _columns(*columns: str | None) -> list[str]:
    return [each for each in columns if each]


def _listed(columns: Sequence[str]) -> str:
    names = list(dict.fromkeys(map(attribute_of, columns)))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nothing"
