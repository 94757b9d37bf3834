"""Sources of subscriptions for a pipeline, which are polled for changes: files, a table or a store."""

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
class SourceContents:
    """The subscriptions of a source at the time of a poll, and the faults of those that cannot be read."""

    records: dict[str, Record]
    """The subscriptions by id."""
    faults: list[Fault] = field(default_factory=list)
    files: tuple[tuple[int, str], ...] = ()
    """For each file: the position of its first record, and its name. Empty if the source is no local file."""
    may_be_empty: bool = False
    """Whether a source that had subscriptions may have none. If not, an empty source is treated as a mistake."""

    def place(self, position: int, line: int | None) -> Place | None:
        """The file and line of a record; None if it did not come from a local file with lines."""
        number = bisect_right(self.files, position, key=lambda each: each[0])
        return None if line is None or not number else Place(line, None, self.files[number - 1][1])

    def table(self) -> pa.Table | None:
        """The records as a table; None if a field has values of several types or nested values."""
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
    """A source of subscriptions that can be polled."""

    def state(self) -> str:
        """A text that is different after the source has changed. Raises HarkenError."""

    def poll(self) -> SourceContents:
        """Read all subscriptions. Raises HarkenError if the source as a whole cannot be read."""


def subscription_source(config: SubscriptionsConfig, spark: SparkSession) -> SubscriptionSource:
    """The source of subscriptions that a configuration names."""
    if config.store is not None:
        from harken.pipeline.stored_subscriptions import StoredSubscriptions

        return StoredSubscriptions(config.store)
    if config.path is not None and local_path(config.path) is not None:
        return _LocalFiles(config.path)
    return _SparkTable(config, spark)


def contents_of(records: Iterable[Record | Fault], files: tuple[tuple[int, str], ...] = ()) -> SourceContents:
    """Collect the records of a source. A repeated id is a fault; fields that are null are dropped."""
    by_id: dict[str, Record] = {}
    faults: list[Fault] = []
    for each in records:
        if isinstance(each, Fault):
            faults.append(each)
        elif each.id in by_id:
            faults.append(each.fault(DuplicateIdError(f"the id {each.id!r:.60} is taken")))
        elif None in each.fields.values():
            fields = {name: value for name, value in each.fields.items() if value is not None}
            by_id[each.id] = replace(each, fields=fields or NO_FIELDS)
        else:
            by_id[each.id] = each
    return SourceContents(by_id, faults, files)


class _LocalFiles:
    """A file of subscriptions, or a folder of such files."""

    def __init__(self, path: str) -> None:
        local = local_path(path)
        assert local is not None, "Spark reads files elsewhere"
        self._path = local

    def state(self) -> str:
        lines = []
        for file in self._files():
            try:
                status = file.stat()
            except FileNotFoundError:
                continue
            lines.append(f"{file.relative_to(self._path.parent)} {status.st_size} {status.st_mtime_ns} {status.st_ino}")
        return "\n".join(lines)

    def poll(self) -> SourceContents:
        records: list[Record | Fault] = []
        files: list[tuple[int, str]] = []
        for file in self._files():
            first = len(records)
            files.append((first, os.path.relpath(file, self._path.parent)))
            for each in records_of_rows(read_rows(file)):
                records.append(replace(each, position=first + each.position))
        return contents_of(records, tuple(files))

    def _files(self) -> list[Path]:
        if not self._path.exists():
            raise SourceError(f"there are no subscriptions at {self._path}")
        if self._path.is_file():
            return [self._path]
        return sorted(_visible(self._path))


def _visible(folder: Path) -> Iterator[Path]:
    """The files in a folder and its subfolders, without hidden files and markers such as _SUCCESS."""
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
    """A table in Spark's catalog, or files that only Spark can read."""

    def __init__(self, config: SubscriptionsConfig, spark: SparkSession) -> None:
        self._config = config
        self._spark = spark

    def state(self) -> str:
        with spark_errors():
            frame = self._frame()
            files = sorted(frame.inputFiles())
            return "\n".join(map(self._file_state, files)) if files else _content_state(frame)

    def poll(self) -> SourceContents:
        with spark_errors():
            return contents_of(records_of_rows(rows_from_arrow(self._frame().toArrow())))

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
            format = _SPARK_FORMATS.get(_ending(name))
            if format is not None:
                return format
        hint = f"the known ones are {', '.join(f'.{each}' for each in _SPARK_FORMATS)}"
        raise SourceError(f"the ending of {path} does not tell its format", hint=hint)

    def _file_state(self, file: str) -> str:
        jvm: Any = self._spark._jvm
        jsession: Any = self._spark._jsparkSession
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
        status = path.getFileSystem(jsession.sessionState().newHadoopConf()).getFileStatus(path)
        return f"{file} {status.getLen()} {status.getModificationTime()}"


def _ending(path: str) -> str:
    return path.rstrip("/").lower().removesuffix(".gz").rpartition(".")[2]


def _content_state(frame: DataFrame) -> str:
    """A fingerprint of rows in any order: their number and the sum of their hashes."""
    from pyspark.sql import functions as f

    hashed = f.xxhash64(f.to_json(f.struct(*map(column, frame.columns))))
    row = frame.agg(f.count("*"), f.sum(hashed.cast("decimal(38,0)"))).first()
    if row is None:
        raise HarkenError("Spark returned no count")
    return f"{row[0]} {row[1]}"
