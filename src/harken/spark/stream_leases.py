"""Leases on the versions of an index that a Spark driver uses.

A streaming query that calls `match` inside `foreachBatch` is a reader, which needs a version until the batch ends. A
DataFrame that `match` returns elsewhere may be used at any time, so the process holds its version until it exits,
unless the caller has a reader of its own and closes it, as `backtest` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from harken.versions.leases import Reader
from harken.versions.root import Root


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A micro-batch of a streaming query, by Spark's own ids."""

    query: str
    batch: str


_process = Reader()
_queries: dict[str, Reader] = {}
_closable: ContextVar[Reader | None] = ContextVar("reader", default=None)


def hold(root: Root[Any], version: int, batch: MicroBatch | None) -> None:
    """Keep a version for its reader. Raises HarkenError or OSError if the root cannot be written to."""
    reader = _closable.get()
    if reader is not None or batch is None:
        (reader or _process).hold(root, version)
    else:
        query = batch.query.replace("-", "")
        _queries.setdefault(query, Reader(query)).hold(root, version, batch.batch)


@contextmanager
def reading_for(reader: Reader) -> Iterator[None]:
    """Let a reader hold the versions that the block uses."""
    token = _closable.set(reader)
    try:
        yield
    finally:
        _closable.reset(token)
