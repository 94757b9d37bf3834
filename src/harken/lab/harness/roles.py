"""The roles of a matcher beyond the protocol of all matchers. The lab asks for them here, and nowhere else."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from harken.events import validate
from harken.lab.harness.answers import Numbers

_NO_DETAILS = {"subscriptions", "rows", "predicates", "bytes", "memory", "events", "examined"}


def adds_in_bulk(matcher: Any) -> bool:
    """Whether it takes subscriptions as rows of arrays; others take them one by one, compiled."""
    return hasattr(matcher, "add_flat")


def takes_codes(matcher: Any) -> bool:
    """Whether a batch can be encoded first and matched then, so that matching is timed alone."""
    return hasattr(matcher, "encode") and hasattr(matcher, "find")


def numbers_of(matcher: Any, found: Numbers) -> Numbers:
    """The subscriptions of what `find` found, which is rows for the papers' algorithms."""
    rows: Any = getattr(matcher, "rows", None)
    return rows.numbers[found] if hasattr(rows, "numbers") else found


def plans(matcher: Any) -> bool:
    """Whether it lays out its index by a sample of events, when it merges."""
    return hasattr(matcher, "learn") and hasattr(matcher, "merge")


def plan_by(matcher: Any, sample: pa.Table) -> None:
    """Have it lay out its index for events like these, if it plans."""
    if plans(matcher):
        matcher.learn(validate(sample).batch)
        matcher.merge()


def merges_in_background(matcher: Any) -> bool:
    """Whether it merges in a thread of its own, unless made with `background=False`."""
    return hasattr(matcher, "merge")


def is_saved(matcher: Any) -> bool:
    """Whether its index is saved with an engine; others are filled again from texts when the engine is loaded."""
    return hasattr(matcher, "state")


def counts_predicates(matcher: Any) -> bool:
    """Whether `satisfied` tells how many predicates hold: the first of the two stages of counting."""
    return hasattr(matcher, "satisfied")


def details_of(matcher: Any) -> dict[str, Any]:
    """What one of the papers' algorithms says of its index, besides what all of them say."""
    stats = matcher.stats()
    return {name: value for name, value in stats.items() if name not in _NO_DETAILS} if "examined" in stats else {}
