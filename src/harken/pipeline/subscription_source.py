"""The source of subscriptions, files, a table or a store: what it holds, and what changed between two polls."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harken.errors import DuplicateIdError, HarkenError, Place, SourceError
from harken.events import read_rows, rows_from_arrow
from harken.live.subscriptions import NO_FIELDS, Fault, Record, records_of_rows
from harken.pipeline.spark_errors import spark_errors
from harken.spark.frames import column
from harken.spark.index_files import files_of
from harken.versions.files import local_path

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from harken.pipeline.config import SubscriptionsConfig

_SPARK_FORMATS = {"jsonl": "json", "ndjson": "json", "json": "json", "csv": "csv", "parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class Polled:
    """The subscriptions that a source held when it was read, and what could not be read."""

    records: dict[str, Record]
    """By id."""
    faults: list[Fault] = field(default_factory=list)
    files: tuple[tuple[int, str], ...] = ()
    """The files that the records came from: the position of the first record of each, and its name."""
    may_be_empty: bool = False
    """Whether there may be no records any more. If not, that is taken for a mishap."""

    def place(self, position: int, line: int | None) -> Place | None:
        """The file and line of a record, if it came from a file with lines."""
        found = bisect_right(self.files, position, key=lambda each: each[0])
        return None if line is None or not found else Place(line, None, self.files[found - 1][1])

    def table(self) -> pa.Table | None:
        """The records as a table; None if a field has values of several types, or nested ones."""
        import pyarrow

        records = self.records.values()
        names = dict.fromkeys(name for each in records for name in each.fields)
        columns: dict[str, list[Any]] = {
            "id": [each.id for each in records],
            "where": [each.where for each in records],
            "language": [each.language for each in records],
        }
        if columns.keys() & names:
            return None
        columns |= {name: [each.fields.get(name) for each in records] for name in names}
        try:
            arrays = {name: pyarrow.array(values) for name, values in columns.items()}
        except pyarrow.ArrowException:
            return None
        if any(pyarrow.types.is_nested(each.type) for each in arrays.values()):
            return None
        return pyarrow.table(arrays)


class SubscriptionSource(Protocol):
    """Where subscriptions come from."""

    def state(self) -> str:
        """A text that differs once the source has changed. Raises HarkenError."""

    def poll(self) -> Polled:
        """All its subscriptions. Raises HarkenError if the source as a whole cannot be read."""


def subscription_source(config: SubscriptionsConfig, spark: SparkSession) -> SubscriptionSource:
    """The source that a configuration names."""
    if config.store is not None:
        from harken.pipeline.stored_subscriptions import StoredSubscriptions

        return StoredSubscriptions(config.store)
    if config.path is not None and local_path(config.path) is not None:
        return _LocalFiles(config.path)
    return _SparkTable(config, spark)


def polled(records: Iterable[Record | Fault], files: tuple[tuple[int, str], ...] = ()) -> Polled:
    """What a source held. An id that comes again is a fault; fields that are null are dropped."""
    found: dict[str, Record] = {}
    faults: list[Fault] = []
    for each in records:
        if isinstance(each, Fault):
            faults.append(each)
        elif each.id in found:
            faults.append(each.fault(DuplicateIdError(f"the id {each.id!r:.60} is taken")))
        elif None in each.fields.values():
            fields = {name: value for name, value in each.fields.items() if value is not None}
            found[each.id] = replace(each, fields=fields or NO_FIELDS)
        else:
            found[each.id] = each
    return Polled(found, faults, files)


class _LocalFiles:
    """A file of subscriptions, or a folder of such files."""

    def __init__(self, path: str) -> None:
        found = local_path(path)
        assert found is not None, "files elsewhere are read by Spark"
        self._path = found

    def state(self) -> str:
        found = []
        for file in self._files():
            try:
                known = file.stat()
            except FileNotFoundError:
                continue
            found.append(f"{file.relative_to(self._path.parent)} {known.st_size} {known.st_mtime_ns} {known.st_ino}")
        return "\n".join(found)

    def poll(self) -> Polled:
        records: list[Record | Fault] = []
        files: list[tuple[int, str]] = []
        for file in self._files():
            first = len(records)
            files.append((first, os.path.relpath(file, self._path.parent)))
            for each in records_of_rows(read_rows(file)):
                records.append(replace(each, position=first + each.position))
        return polled(records, tuple(files))

    def _files(self) -> list[Path]:
        if not self._path.exists():
            raise SourceError(f"there are no subscriptions at {self._path}")
        if self._path.is_file():
            return [self._path]
        return sorted(_visible(self._path))


def _visible(folder: Path) -> Iterator[Path]:
    """The files below a folder, without hidden ones and markers such as _SUCCESS."""
    try:
        for each in folder.iterdir():
            if each.name[0] in "._":
                continue
            if each.is_dir():
                yield from _visible(each)
            else:
                yield each
    except OSError as error:
        raise SourceError(f"{folder} cannot be read: {error.strerror or error}") from error


class _SparkTable:
    """A table of Spark's catalogue, or files that only Spark can read."""

    def __init__(self, config: SubscriptionsConfig, spark: SparkSession) -> None:
        self._config = config
        self._spark = spark

    def state(self) -> str:
        with spark_errors():
            frame = self._frame()
            files = sorted(frame.inputFiles())
            return "\n".join(map(self._file_state, files)) if files else _content_state(frame)

    def poll(self) -> Polled:
        with spark_errors():
            return polled(records_of_rows(rows_from_arrow(self._frame().toArrow())))

    def _frame(self) -> DataFrame:
        table, path = self._config.table, self._config.path
        if table is not None:
            self._spark.catalog.refreshTable(table)
            return self._spark.table(table)
        assert path is not None
        format = self._format(path)
        options = {"header": "true"} if format == "csv" else {}
        return self._spark.read.format(format).options(**options).load(path)

    def _format(self, path: str) -> str:
        names = [path, *files_of(path, self._spark).names()] if _ending(path) not in _SPARK_FORMATS else [path]
        for name in names:
            found = _SPARK_FORMATS.get(_ending(name))
            if found is not None:
                return found
        hint = f"the known ones are {', '.join(f'.{each}' for each in _SPARK_FORMATS)}"
        raise SourceError(f"the ending of {path} does not tell its format", hint=hint)

    def _file_state(self, file: str) -> str:
        jvm: Any = self._spark._jvm
        jsession: Any = self._spark._jsparkSession
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
        known = path.getFileSystem(jsession.sessionState().newHadoopConf()).getFileStatus(path)
        return f"{file} {known.getLen()} {known.getModificationTime()}"


def _ending(path: str) -> str:
    return path.rstrip("/").lower().removesuffix(".gz").rpartition(".")[2]


def _content_state(frame: DataFrame) -> str:
    """A fingerprint of the rows that does not depend on their order: their number and a sum of hashes."""
    from pyspark.sql import functions as f

    hashed = f.xxhash64(f.to_json(f.struct(*map(column, frame.columns))))
    row = frame.agg(f.count("*"), f.sum(hashed.cast("decimal(38,0)"))).first()
    if row is None:
        raise HarkenError("Spark counted nothing")
    return f"{row[0]} {row[1]}"
