"""The log of a stream's batches: what each began with, and its result once it is done.

CHECKPOINT/batches/lock                locked by the process that writes the log
CHECKPOINT/batches/query.json          Spark's id of the query whose batches these are
CHECKPOINT/batches/00000007/begun.json the index version, the match time and the bound for late events; written first
CHECKPOINT/batches/00000007/done.json  the counts; written once every sink has the batch

After a crash Spark repeats the batches that it has not recorded as done. A batch that is done in this log is skipped.
A batch that has only begun is processed with what it began with, so that it makes the same notifications.
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
KEPT_BATCHES = 1_000
"""Batches whose records are kept: the latest ones."""
_FORMAT = 1
_QUERY = f"{FOLDER}/query.json"
_LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Begun:
    """What a batch began with."""

    batch: int
    version: int
    """The number of the index version."""
    fingerprint: str
    """The fingerprint of that version."""
    time: datetime
    """The match time of its notifications."""
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
    """The log below a checkpoint. One process at a time writes it."""

    def __init__(
        self, checkpoint: str | os.PathLike[str], spark: SparkSession | None = None, keep: int = KEPT_BATCHES
    ) -> None:
        self._files = files_of(checkpoint, spark)
        self._keep = keep
        self._numbers = self._recorded()

    @property
    def root(self) -> str:
        """The folder of the checkpoint."""
        return self._files.root

    @property
    def is_empty(self) -> bool:
        """Whether no batch ever began."""
        return not self._numbers

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the log against other processes on this machine. Raises FolderLockedError if one has locked it."""
        with self._files.locked(f"{FOLDER}/{_LOCK}", self._busy):
            self._numbers = self._recorded()
            yield

    def _busy(self, _: str) -> FolderLockedError:
        hint = "two pipelines cannot share a checkpoint"
        return FolderLockedError(f"another process uses {self.root}", hint=hint)

    def claim(self, query: str) -> None:
        """Assign the log to one of Spark's queries, by its id. Raises SegmentError if it belongs to another query."""
        content = self._read(_QUERY)
        if content is None:
            self._write(_QUERY, {"query": query})
        elif content.get("query") != query:
            raise SegmentError(
                f"the batches in {self._files.root} belong to another query: Spark now counts its batches from 0",
                hint="keep or remove a checkpoint as a whole; to start again, name another one",
            )

    def begun(self, batch: int) -> Begun | None:
        """What a batch began with; None if it has not begun."""
        content = self._read(_name(batch, "begun"))
        if content is None:
            return None
        try:
            time, late_before = _time(content["time"]), _time(content["late_before"])
            if time is None:
                raise ValueError("it has no time")
            return Begun(batch, int(content["version"]), str(content["fingerprint"]), time, late_before)
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged(_name(batch, "begun"), error) from error

    def begin(self, begun: Begun) -> None:
        """Record what a batch begins with. Call this before writing any result of the batch."""
        content = {"version": begun.version, "fingerprint": begun.fingerprint}
        times = {"time": _text(begun.time), "late_before": _text(begun.late_before)}
        self._write(_name(begun.batch, "begun"), content | times)
        if not self._numbers or self._numbers[-1] < begun.batch:
            self._numbers.append(begun.batch)
        while len(self._numbers) > self._keep:
            self._files.remove(f"{FOLDER}/{self._numbers.pop(0):08d}")

    def done(self, batch: int) -> Done | None:
        """The result of a batch; None if it is not done."""
        content = self._read(_name(batch, "done"))
        if content is None:
            return None
        try:
            return Done(batch, _time(content["newest"]), dict(content["counts"]))
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged(_name(batch, "done"), error) from error

    def finish(self, done: Done) -> None:
        """Record the result of a batch. Call this after every sink has the batch."""
        self._write(_name(done.batch, "done"), {"newest": _text(done.newest), "counts": dict(done.counts)})

    def last(self) -> Done | None:
        """The result of the last batch that is done."""
        for batch in reversed(self._numbers):
            done = self.done(batch)
            if done is not None:
                return done
        return None

    def _recorded(self) -> list[int]:
        """The numbers of the recorded batches, ascending."""
        return sorted(int(name) for name in self._files.names(FOLDER) if name.isdigit())

    def _read(self, name: str) -> dict[str, Any] | None:
        text = self._files.read(name)
        if text is None:
            return None
        try:
            content: dict[str, Any] = json.loads(text)
            if content.pop("format") != _FORMAT:
                raise ValueError("this version of Harken does not know its format")
            return content
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._damaged(name, error) from error

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        self._files.write(name, json.dumps({"format": _FORMAT, **content}).encode())

    def _damaged(self, name: str, error: Exception) -> SegmentError:
        return SegmentError(f"{self._files.root}/{name} cannot be understood: {error}")


def _name(batch: int, what: str) -> str:
    return f"{FOLDER}/{batch:08d}/{what}.json"


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
