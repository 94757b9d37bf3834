"""Harken: content-based publish/subscribe for Python and Spark.

A subscription is a boolean expression over events. Harken tells, for every event, which of many subscriptions are true.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harken.engine import Engine
from harken.errors import HarkenError, HarkenWarning
from harken.events import Event, EventBatch
from harken.language.explanation import Explanation
from harken.limits import Limits
from harken.live.loading import Replacement, Report
from harken.live.results import BatchMatches, Matches
from harken.live.subscriptions import Fault, Subscription
from harken.operators import FREE, Operator, operator
from harken.rehearsal import warm_up
from harken.release import __version__ as __version__
from harken.schema import Schema, load_schema

if TYPE_CHECKING:
    from harken.client import AsyncClient, Client

__all__ = [
    "FREE",
    "AsyncClient",
    "BatchMatches",
    "Client",
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
    "Replacement",
    "Report",
    "Schema",
    "Subscription",
    "load_schema",
    "operator",
    "warm_up",
]


def __getattr__(name: str) -> Any:
    if name in ("AsyncClient", "Client"):  # most programs need none
        return getattr(import_module("harken.client"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*{*globals(), *__all__}]
