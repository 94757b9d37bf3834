"""Where subscriptions come from, files or a table: what it holds now, and what changed in it."""

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
from harken.pipeline.failures import told
from harken.spark.files import files_of
from harken.versions.files import local_path

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from harken.pipeline.config import Subscriptions

_SPARK_FORMATS = {"jsonl": "json", "ndjson": "json", "json": "json", "csv": "csv", "parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class Rules:
    """Subscriptions as they came, each id once, and what could not be read."""

    records: list[Record]
    faults: list[Fault] = field(default_factory=list)
    files: tuple[tuple[int, str], ...] = ()
    """The position from which on they are of a file, and its name."""

    def __len__(self) -> int:
        return len(self.records)

    def place(self, position: int, line: int | None) -> Place | None:
        """Where something stands, if it is in a file with lines."""
        found = bisect_right(self.files, position, key=lambda each: each[0])
        return None if line is None or not found else Place(line, None, self.files[found - 1][1])

    def table(self) -> pa.Table | None:
        """The same as a table, None if their fields are not of one plain type each."""
        import pyarrow

        names = dict.fromkeys(name for each in self.records for name in each.fields)
        columns: dict[str, list[Any]] = {
            "id": [each.id for each in self.records],
            "where": [each.where for each in self.records],
            "language": [each.language for each in self.records],
        }
        if columns.keys() & names:
            return None
        columns |= {name: [each.fields.get(name) for each in self.records] for name in names}
        try:
            arrays = {name: pyarrow.array(values) for name, values in columns.items()}
        except pyarrow.ArrowException:
            return None
        if any(pyarrow.types.is_nested(each.type) for each in arrays.values()):
            return None
        return pyarrow.table(arrays)


@dataclass(frozen=True, slots=True)
class Changes:
    """What makes other subscriptions of some."""

    new: list[Record]
    """Those that were not there, and those that say something else now."""
    gone: list[str]
    replaced: int

    @property
    def added(self) -> int:
        return len(self.new) - self.replaced

    @property
    def count(self) -> int:
        return len(self.new) + len(self.gone)


class RulesSource(Protocol):
    """Where subscriptions come from."""

    def state(self) -> str:
        """A text that is another when the source has changed. Raises HarkenError."""

    def rules(self) -> Rules:
        """All of them. Raises HarkenError if the source as a whole cannot be read."""


def rules_source(given: Subscriptions, spark: SparkSession) -> RulesSource:
    """The source that a configuration names."""
    if given.path is not None and local_path(given.path) is not None:
        return _LocalFiles(given.path)
    return _OfSpark(given, spark)


def rules_of(records: Iterable[Record | Fault], files: tuple[tuple[int, str], ...] = ()) -> Rules:
    """Rules from records and faults. An id that is there again is at fault; a field that is null is none."""
    taken: dict[str, Record] = {}
    faults: list[Fault] = []
    for each in records:
        if isinstance(each, Fault):
            faults.append(each)
        elif each.id in taken:
            faults.append(each.fault(DuplicateIdError(f"the id {each.id!r:.60} is taken")))
        elif None in each.fields.values():
            fields = {name: value for name, value in each.fields.items() if value is not None}
            taken[each.id] = replace(each, fields=fields or NO_FIELDS)
        else:
            taken[each.id] = each
    return Rules(list(taken.values()), faults, files)


def changes(before: Rules, after: Rules) -> Changes:
    """What has to be done to the one to have the other."""
    known = {each.id: each for each in before.records}
    new: list[Record] = []
    replaced = 0
    for each in after.records:
        old = known.pop(each.id, None)
        if old is None:
            new.append(each)
        elif (old.where, old.language, old.fields) != (each.where, each.language, each.fields):
            new.append(each)
            replaced += 1
    return Changes(new, list(known), replaced)


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

    def rules(self) -> Rules:
        records: list[Record | Fault] = []
        files: list[tuple[int, str]] = []
        for file in self._files():
            first = len(records)
            files.append((first, os.path.relpath(file, self._path.parent)))
            for each in records_of_rows(read_rows(file)):
                records.append(replace(each, position=first + each.position))
        return rules_of(records, tuple(files))

    def _files(self) -> list[Path]:
        if not self._path.exists():
            raise SourceError(f"there are no subscriptions at {self._path}")
        if self._path.is_file():
            return [self._path]
        return sorted(_visible(self._path))


def _visible(folder: Path) -> Iterator[Path]:
    """The files below a folder, without those that are hidden or that tell of others."""
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


class _OfSpark:
    """A table of Spark's, or files that it can read and this process cannot."""

    def __init__(self, given: Subscriptions, spark: SparkSession) -> None:
        self._given = given
        self._spark = spark

    def state(self) -> str:
        with told():
            frame = self._frame()
            files = sorted(frame.inputFiles())
            return "\n".join(map(self._file_state, files)) if files else _content_state(frame)

    def rules(self) -> Rules:
        with told():
            return rules_of(records_of_rows(rows_from_arrow(self._frame().toArrow())))

    def _frame(self) -> DataFrame:
        given = self._given
        if given.table is not None:
            self._spark.catalog.refreshTable(given.table)
            return self._spark.table(given.table)
        assert given.path is not None
        options = {"header": "true"} if self._format(given.path) == "csv" else {}
        return self._spark.read.format(self._format(given.path)).options(**options).load(given.path)

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
    """What rows hold, in two numbers, whatever their order."""
    from pyspark.sql import functions as f

    told_by = f.xxhash64(f.to_json(f.struct(*(f.col(f"`{name.replace('`', '``')}`") for name in frame.columns))))
    row = frame.agg(f.count("*"), f.sum(told_by.cast("decimal(38,0)"))).first()
    if row is None:
        raise HarkenError("Spark counted nothing")
    return f"{row[0]} {row[1]}"
