"""Harken inside Spark. Nothing here imports pyspark until it is used.

from harken.spark import match
match(events, subscriptions)          # DataFrames in, a DataFrame of (event_id, subscription_id) out
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harken.spark.building import build_index
    from harken.spark.index import Index, IndexVersion
    from harken.spark.matching import match

_HOMES = {
    "Index": "index",
    "IndexVersion": "index",
    "build_index": "building",
    "match": "matching",
}

__all__ = ["Index", "IndexVersion", "build_index", "match"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
