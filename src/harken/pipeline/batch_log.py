"""The log of a stream's batches: what each began with, and whether it is done.

CHECKPOINT/batches/lock                held by the process that writes here
CHECKPOINT/batches/query.json          Spark's id of the query whose batches these are
CHECKPOINT/batches/00000007/begun.json the index version, the match time and the bound for late events; written first
CHECKPOINT/batches/00000007/done.json  the counts; written once every sink has the batch

Spark repeats a batch that it has not recorded as done. One that is done here is skipped; one that has only begun is
processed with what was recorded, so that it gives the same notifications.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harken.errors import FolderLockedError, SegmentError
from harken.spark.index_files import files_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "batches"
KEPT = 1_000
"""Batches whose records stay."""
_FORMAT = 1
_QUERY = f"{FOLDER}/query.json"
_LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Begun:
    """What a batch began with."""

    batch: int
    version: int
    """The version of the index."""
    fingerprint: str
    """The fingerprint of that version."""
    time: datetime
    """The time of its matches."""
    late_before: datetime | None = None
    """Events with an earlier time are late."""


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a batch."""

    batch: int
    newest: datetime | None = None
    """The time of the newest event of this batch and all before it."""
    counts: Mapping[str, Any] = field(default_factory=dict)


class BatchLog:
    """The batches below a checkpoint. One process at a time writes to it."""

    def __init__(self, checkpoint: str | os.PathLike[str], spark: SparkSession | None = None, keep: int = KEPT) -> None:
        self._files = files_of(checkpoint, spark)
        self._keep = keep
        self._numbers = self._known()

    @property
    def root(self) -> str:
        """The checkpoint."""
        return self._files.root

    @property
    def is_empty(self) -> bool:
        """Whether no batch ever began."""
        return not self._numbers

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes of this machine away. Raises FolderLockedError if one is at work."""
        with self._files.locked(f"{FOLDER}/{_LOCK}", self._busy):
            self._numbers = self._known()
            yield

    def _busy(self, _: str) -> FolderLockedError:
        hint = "two pipelines cannot have one checkpoint"
        return FolderLockedError(f"another process works with {self.root}", hint=hint)

    def claim(self, query: str) -> None:
        """Claim the log for one of Spark's queries. Raises SegmentError if it belongs to another."""
        known = self._read(_QUERY)
        if known is None:
            self._write(_QUERY, {"query": query})
        elif known.get("query") != query:
            raise SegmentError(
                f"the batches in {self._files.root} are those of another query: Spark counts its batches anew",
                hint="a checkpoint is kept or removed as a whole; name another one to start afresh",
            )

    def begun(self, batch: int) -> Begun | None:
        """What a batch began with; None if it did not begin."""
        plain = self._read(_name(batch, "begun"))
        if plain is None:
            return None
        try:
            times = {name: _time(plain[name]) for name in ("time", "late_before")}
            began = times["time"]
            if began is None:
                raise ValueError("it has no time")
            return Begun(batch, int(plain["version"]), str(plain["fingerprint"]), began, times["late_before"])
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged(_name(batch, "begun"), error) from error

    def begin(self, begun: Begun) -> None:
        """Record what a batch begins with, before anything of it is written elsewhere."""
        plain = {"version": begun.version, "fingerprint": begun.fingerprint}
        times = {"time": _text(begun.time), "late_before": _text(begun.late_before)}
        self._write(_name(begun.batch, "begun"), plain | times)
        if not self._numbers or self._numbers[-1] < begun.batch:
            self._numbers.append(begun.batch)
        while len(self._numbers) > self._keep:
            self._files.remove(f"{FOLDER}/{self._numbers.pop(0):08d}")

    def done(self, batch: int) -> Done | None:
        """The result of a batch; None if it is not done."""
        plain = self._read(_name(batch, "done"))
        if plain is None:
            return None
        try:
            return Done(batch, _time(plain["newest"]), dict(plain["counts"]))
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged(_name(batch, "done"), error) from error

    def finish(self, done: Done) -> None:
        """Record that a batch is done, once every sink has it."""
        self._write(_name(done.batch, "done"), {"newest": _text(done.newest), "counts": dict(done.counts)})

    def last(self) -> Done | None:
        """The result of the last batch that is done."""
        for batch in reversed(self._numbers):
            found = self.done(batch)
            if found is not None:
                return found
        return None

    def _known(self) -> list[int]:
        """The recorded batches, ascending."""
        return sorted(int(name) for name in self._files.names(FOLDER) if name.isdigit())

    def _read(self, name: str) -> dict[str, Any] | None:
        text = self._files.read(name)
        if text is None:
            return None
        try:
            plain: dict[str, Any] = json.loads(text)
            if plain.pop("format") != _FORMAT:
                raise ValueError("it is of a format that this Harken does not know")
            return plain
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._damaged(name, error) from error

    def _write(self, name: str, plain: Mapping[str, Any]) -> None:
        self._files.write(name, json.dumps({"format": _FORMAT, **plain}).encode())

    def _damaged(self, name: str, error: Exception) -> SegmentError:
        return SegmentError(f"{self._files.root}/{name} cannot be understood: {error}")


def _name(batch: int, what: str) -> str:
    return f"{FOLDER}/{batch:08d}/{what}.json"


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
