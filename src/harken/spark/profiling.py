"""A profile of events: the values of their attributes, how frequent these are, and a sample.

One pass over a DataFrame is enough: every task summarises its events, one more task merges the summaries, and only the
result reaches the driver.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.errors import SourceError, did_you_mean
from harken.limits import DEFAULT_LIMITS
from harken.schema import Kind, Value, format_path
from harken.schema.values import show
from harken.spark.frames import leaves, mapped, reject_stream, require_events
from harken.versions.atomic import replacing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from harken.spark.summaries import AttributeSummary

SAMPLE = 4_096
_FREQUENT = 10
"""The most frequent values that a profile lists for an attribute."""
_METADATA = b"harken.profile"
_FORMAT = 1
_KINDS = {
    "StringType": Kind.STRING,
    "CharType": Kind.STRING,
    "VarcharType": Kind.STRING,
    "BooleanType": Kind.BOOLEAN,
    "TimestampType": Kind.TIMESTAMP,
    "TimestampNTZType": Kind.TIMESTAMP,
    "DateType": Kind.DATE,
}
_READERS = {Kind.TIMESTAMP: datetime.fromisoformat, Kind.DATE: date.fromisoformat}
_WIDEST = 28
_HEADINGS = ("attribute", "type", "missing", "distinct", "low", "high", "most frequent")


@dataclass(frozen=True, slots=True)
class AttributeProfile:
    """The profile of one attribute. Nulls, NaNs and empty arrays count as missing, as everywhere."""

    name: str
    """The path of the attribute, as subscriptions write it."""
    kind: Kind | None
    """The kind of the values; None for a map, whose keys are data, and for a column of nulls."""
    type: str
    """The Spark type of the values."""
    present: int
    """Events that have a value of the attribute."""
    missing: float
    """The share of events that have no value of the attribute."""
    values: int
    """The number of values, which is more than `present` if there are arrays."""
    distinct: int
    """The number of distinct values: exact up to 256, else nearly always within 5 %."""
    is_exact: bool
    """Whether `distinct` and the shares of `frequent` are exact."""
    low: Value | None
    high: Value | None
    frequent: tuple[tuple[Value, float], ...]
    """The most frequent values, each with its share of all values, the most frequent first."""
    error: float
    """The most by which a share is too small."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of a DataFrame of events. `profile["seller.country"]` is the profile of one attribute."""

    events: int
    attributes: tuple[AttributeProfile, ...]
    sample: pa.Table
    """A uniform sample of whole events: `engine.learn(profile.sample)` plans an index for such events."""

    def __getitem__(self, name: str) -> AttributeProfile:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        names = [attribute.name for attribute in self.attributes]
        raise SourceError(f"the events have no attribute `{name}`", hint=did_you_mean(name, names))

    def table(self) -> list[dict[str, Any]]:
        """A row for every attribute, for `pandas.DataFrame` or `pyarrow.Table.from_pylist`, with values as text."""
        return [
            {
                "attribute": each.name,
                "type": each.type,
                "present": each.present,
                "missing": each.missing,
                "values": each.values,
                "distinct": each.distinct,
                "low": None if each.low is None else show(each.low),
                "high": None if each.high is None else show(each.high),
                "frequent": [{"value": show(value), "share": share} for value, share in each.frequent],
            }
            for each in self.attributes
        ]

    def __str__(self) -> str:
        rows = [_HEADINGS, *map(_cells, self.attributes)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        lines.append(f"{self.events:,} events, {self.sample.num_rows:,} of them in the sample")
        return "\n".join(line.rstrip() for line in lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file of the sample, with the statistics as JSON in its metadata. Raises SourceError."""
        import pyarrow
        from pyarrow import parquet

        plain = {"format": _FORMAT, "events": self.events, "attributes": [_plain(each) for each in self.attributes]}
        metadata = {**(self.sample.schema.metadata or {}), _METADATA: json.dumps(plain).encode()}
        target = Path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as stream:
                parquet.write_table(self.sample.replace_schema_metadata(metadata), stream)
        except (OSError, pyarrow.ArrowException) as error:
            raise SourceError(f"the profile cannot be written to {target}: {error}") from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Profile:
        """Read a saved profile. Raises SourceError."""
        import pyarrow
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(path) as file:
                sample = file.read()
            metadata = dict(sample.schema.metadata or {})
            if _METADATA not in metadata:
                raise SourceError(
                    f"{path} is a Parquet file, but not a profile", hint="profile(…).save(path) writes one"
                )
            plain = json.loads(metadata.pop(_METADATA))
            if plain["format"] != _FORMAT:
                raise SourceError(f"{path} is a profile of a format that this Harken does not know")
            attributes = tuple(_attribute(each) for each in plain["attributes"])
            return cls(plain["events"], attributes, sample.replace_schema_metadata(metadata or None))
        except (OSError, pyarrow.ArrowException, KeyError, TypeError, ValueError) as error:
            raise SourceError(f"the profile {path} cannot be read: {error}") from error


def profile(events: DataFrame, *, sample: int = SAMPLE, seed: int = 0) -> Profile:
    """Read a DataFrame once, now, and profile its attributes, inside structs and arrays too.

    The sample has `sample` events, or all if there are fewer. The same data in the same partitions with the same seed
    give the same sample. Raises SourceError for a stream, and for a column whose type no event can hold.
    """
    if sample < 0 or seed < 0:
        raise ValueError(f"a sample and a seed are not negative, but these are {sample} and {seed}")
    reject_stream(events, "profiling")
    require_events(events.schema, DEFAULT_LIMITS)
    from harken.spark.summaries import AttributeSummary, EventSummary, merging, summarising, unpacked

    kinds = dict(leaves(events.schema))
    summed_up = mapped(events, summarising(tuple(kinds), sample, seed), "summary binary")
    rows = mapped(summed_up.repartition(1), merging(), "summary binary").collect()
    summary = unpacked(bytes(rows[0]["summary"])) if rows else EventSummary((), sample)
    return Profile(
        summary.events,
        tuple(
            _described(path, kind, summary.summaries.get(path, AttributeSummary()), summary.events)
            for path, kind in kinds.items()
        ),
        _sampled(events, summary.sample.table()),
    )


def _sampled(events: DataFrame, table: pa.Table | None) -> pa.Table:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(events.schema, timezone="UTC").empty_table() if table is None else table


def _described(path: tuple[str, ...], kind: DataType, summary: AttributeSummary, events: int) -> AttributeProfile:
    from harken.spark.summaries import canonical

    counts = summary.frequent.counts
    is_exact = summary.frequent.error == 0
    most = sorted(counts, key=lambda value: (-counts[value], value))[:_FREQUENT]
    return AttributeProfile(
        format_path(path),
        _kind(kind),
        kind.simpleString(),
        summary.present,
        (events - summary.present) / events if events else 0.0,
        summary.values,
        len(counts) if is_exact else round(summary.distinct.estimate()),
        is_exact,
        None if summary.low is None else canonical(summary.low),
        None if summary.high is None else canonical(summary.high),
        tuple((canonical(value), counts[value] / summary.values) for value in most),
        summary.frequent.error / summary.values if summary.values else 0.0,
    )


def _kind(kind: DataType) -> Kind | None:
    from pyspark.sql.types import NumericType

    return Kind.NUMBER if isinstance(kind, NumericType) else _KINDS.get(type(kind).__name__)


def _cells(attribute: AttributeProfile) -> tuple[str, ...]:
    """The attribute as a row of the printed table."""
    frequent = ", ".join(f"{_short(value)} {share:.1%}" for value, share in attribute.frequent[:3])
    return (
        attribute.name,
        attribute.type,
        f"{attribute.missing:.1%}",
        f"{'' if attribute.is_exact else '≈ '}{attribute.distinct:,}",
        "" if attribute.low is None else _short(attribute.low),
        "" if attribute.high is None else _short(attribute.high),
        frequent,
    )


def _short(value: Value) -> str:
    text = "".join(c if c.isprintable() else " " for c in show(value))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _plain(attribute: AttributeProfile) -> dict[str, Any]:
    """The profile of an attribute as plain data, for JSON."""
    plain = asdict(attribute)
    plain["low"], plain["high"], *frequent = _texts(
        [attribute.low, attribute.high, *(value for value, _ in attribute.frequent)]
    )
    plain["frequent"] = list(zip(frequent, [share for _, share in attribute.frequent], strict=True))
    return plain


def _texts(values: Iterable[Value | None]) -> Iterator[Any]:
    return (value.isoformat() if isinstance(value, date) else value for value in values)


def _attribute(plain: dict[str, Any]) -> AttributeProfile:
    kind = None if plain["kind"] is None else Kind(plain["kind"])
    read = _READERS.get(kind) if kind is not None else None

    def value(text: Any) -> Any:
        return text if read is None or text is None else read(text)

    frequent = tuple((value(each), share) for each, share in plain["frequent"])
    ends = {"low": value(plain["low"]), "high": value(plain["high"])}
    return AttributeProfile(**{**plain, **ends, "kind": kind, "frequent": frequent})
