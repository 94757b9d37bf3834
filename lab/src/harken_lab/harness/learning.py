"""What the lab asks of a matcher besides its roles."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from harken.events import validate
from harken.matchers import Matcher
from harken.matchers.roles import Plans

_NO_DETAILS = {"subscriptions", "rows", "predicates", "bytes", "memory", "events", "examined"}


def plan_by(matcher: Matcher, sample: pa.Table) -> None:
    """Have it lay out its index for events like these, if it plans."""
    if isinstance(matcher, Plans):
        matcher.learn(validate(sample).batch)
        matcher.merge()


def details_of(matcher: Matcher) -> dict[str, Any]:
    """What one of the papers' algorithms says of its index, besides what all of them say."""
    stats = matcher.stats()
    return {name: value for name, value in stats.items() if name not in _NO_DETAILS} if "examined" in stats else {}
