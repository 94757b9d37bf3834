"""Planning a matcher by a sample of events, and the statistics that are its algorithm's own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from harken.events import validate
from harken.matchers import Matcher
from harken.matchers.roles import Plans

_NO_DETAILS = {"subscriptions", "rows", "predicates", "bytes", "memory", "events", "examined"}


def plan_by(matcher: Matcher, sample: pa.Table) -> None:
    """Plan the index of a matcher for events like these, if the matcher plans at all."""
    if isinstance(matcher, Plans):
        matcher.learn(validate(sample).batch)
        matcher.merge()


def details_of(matcher: Matcher) -> dict[str, Any]:
    """The statistics that one of the papers' algorithms has beyond those of all; empty for other matchers."""
    stats = matcher.stats()
    return {name: value for name, value in stats.items() if name not in _NO_DETAILS} if "examined" in stats else {}
