"""Harken: content-based publish/subscribe for Python and Spark.

A subscription is a boolean expression over events. Harken tells, for every event, which of many subscriptions are true.
"""

from harken.engine import Engine
from harken.errors import HarkenError, HarkenWarning
from harken.events import Event, EventBatch
from harken.language.explanation import Explanation
from harken.limits import Limits
from harken.live.loading import Report
from harken.live.results import BatchMatches, Matches
from harken.live.subscriptions import Fault, Subscription
from harken.operators import FREE, Operator, operator
from harken.rehearsal import warm_up
from harken.schema import Schema, load_schema

__version__ = "0.1.0"

__all__ = [
    "FREE",
    "BatchMatches",
    "Engine",
    "Event",
    "EventBatch",
    "Explanation",
    "Fault",
    "HarkenError",
    "HarkenWarning",
    "Limits",
    "Matches",
    "Operator",
    "Report",
    "Schema",
    "Subscription",
    "load_schema",
    "operator",
    "warm_up",
]
