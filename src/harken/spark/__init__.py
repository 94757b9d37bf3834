"""Harken inside Spark. Functions are imported at first use, so that importing this module needs no pyspark.

from harken.spark import match
match(events, subscriptions)          # DataFrames in, a DataFrame of (event_id, subscription_id) out
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harken.errors import MissingExtraError, require_extra

if TYPE_CHECKING:
    from harken.spark.backtesting import Backtest, backtest
    from harken.spark.building import build_index
    from harken.spark.index_versions import Index, IndexVersion
    from harken.spark.matching import match
    from harken.spark.profiling import Profile, profile
    from harken.spark.validation import Validated, check, validate

_MODULES = {
    "Backtest": "backtesting",
    "Index": "index_versions",
    "IndexVersion": "index_versions",
    "Profile": "profiling",
    "Validated": "validation",
    "backtest": "backtesting",
    "build_index": "building",
    "check": "validation",
    "match": "matching",
    "profile": "profiling",
    "validate": "validation",
}

_ON_DATAFRAMES = {"backtest", "check", "match", "profile", "validate"}
"""The functions that need pyspark."""

__all__ = [
    "Backtest",
    "Index",
    "IndexVersion",
    "Profile",
    "Validated",
    "backtest",
    "build_index",
    "check",
    "match",
    "profile",
    "validate",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _ON_DATAFRAMES:
        require_extra("spark")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    """All public names, without those that would raise MissingExtraError: `help` and `inspect` get each listed name."""
    listed = set(__all__)
    try:
        require_extra("spark")
    except MissingExtraError:
        listed -= _ON_DATAFRAMES
    return [*{*globals(), *listed}]
