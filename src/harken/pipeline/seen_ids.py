"""Stores the ids of past events, to recognise duplicates: a folder for each batch, kept as long as the window.

CHECKPOINT/seen/batch=7/at=1735689600/*.parquet     the ids of batch 7, which began at that Unix time
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from harken.spark.frames import column
from harken.spark.index_files import files_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOLDER = "seen"
_BATCH = re.compile(r"batch=(\d+)\Z")
_AT = re.compile(r"at=(\d+)\Z")


class SeenIds:
    """The ids below a checkpoint, for one batch: those of earlier batches whose match time is in the window."""

    def __init__(self, checkpoint: str, batch: int, time: datetime, window: timedelta) -> None:
        self._root = f"{checkpoint.rstrip('/')}/{FOLDER}"
        self._batch = batch
        self._time = int(time.timestamp())
        self._oldest = int((time - window).timestamp())

    def without(self, events: DataFrame, id: str) -> DataFrame:
        """The events whose ids, in the column `id`, no earlier batch had."""
        spark = events.sparkSession
        folders = [folder for folder, batch, at in self._folders(events) if batch < self._batch and at >= self._oldest]
        if not folders:
            return events
        seen = spark.read.schema(f"`{id}` string").parquet(*folders).select(column(id).alias(f"{id}_seen"))
        return events.join(seen, column(id) == column(f"{id}_seen"), "left_anti")

    def add(self, events: DataFrame, id: str) -> None:
        """Store the ids of this batch, in place of those of an interrupted attempt, and drop ids before the window."""
        files = files_of(self._root, events.sparkSession)
        for name in files.names(f"batch={self._batch}"):
            if name != f"at={self._time}":
                files.remove(f"batch={self._batch}/{name}")
        ids = events.select(column(id)).dropna()
        ids.write.mode("overwrite").parquet(f"{self._root}/batch={self._batch}/at={self._time}")
        for _, batch, at in self._folders(events):
            if batch < self._batch and at < self._oldest:
                files.remove(f"batch={batch}")

    def _folders(self, events: DataFrame) -> list[tuple[str, int, int]]:
        """The stored folders, each with its batch and match time."""
        files = files_of(self._root, events.sparkSession)
        folders = []
        for outer in files.names():
            batch = _BATCH.match(outer)
            for inner in files.names(outer) if batch else ():
                at = _AT.match(inner)
                if batch and at:
                    folders.append((f"{self._root}/{outer}/{inner}", int(batch[1]), int(at[1])))
        return folders
