"""Profiles against plain aggregates of Spark SQL, and the summaries that they are merged from against exact counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harken.engine import Engine
from harken.errors import SourceError
from harken.schema import Kind
from harken.spark.profiling import AttributeProfile, Profile, profile
from harken.spark.summaries import COUNTERS, AttributeSummary, Distinct, EventSample, EventSummary, Frequent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS = 6_000
PATHS = [
    *[(name,) for name in "n word price ratio at local day flag none small".split()],
    ("seller", "country"),
    ("seller", "a.b"),
    ("tags",),
    ("items", "price"),
    ("deep", "x"),
    ("it`s.odd",),
]
EXACT = 256
"""Distinct values up to which all counts are exact."""


def events(spark: SparkSession, count: int = EVENTS, partitions: int = 5) -> DataFrame:
    """Events of all types, with an attribute a kind that has many values, and a few that have few."""
    return spark.range(0, count, 1, partitions).selectExpr(
        "id AS n",
        "IF(id % 4 = 0, NULL, concat('word ', id % 1000)) AS word",
        "CAST(IF(id % 10 = 0, NULL, (id % 7) + 0.05) AS DECIMAL(12, 2)) AS price",
        "CASE WHEN id % 3 = 0 THEN double('nan') WHEN id % 3 = 1 THEN -0.0D ELSE 0.0D END AS ratio",
        "timestamp_micros(1767225600000000 + id * 1000001) AS at",
        "CAST(timestamp_micros(-1000000 + id % 3) AS TIMESTAMP_NTZ) AS local",
        "date_add(DATE '2026-01-01', int(id % 400)) AS day",
        "IF(id % 5 = 0, NULL, id % 2 = 0) AS flag",
        "NULL AS none",
        "tinyint(id % 100 - 50) AS small",
        "IF(id % 6 = 0, NULL, named_struct('country', IF(id % 6 = 1, NULL, IF(id % 6 = 2, 'FR', 'IT')), 'a.b', id % 2))"
        " AS seller",
        "CASE id % 4 WHEN 0 THEN array('x', 'y', NULL) WHEN 1 THEN array() WHEN 2 THEN array('x') END AS tags",
        "IF(id % 2 = 0, NULL, array(named_struct('price', id % 50), NULL, named_struct('price', NULL))) AS items",
        "array(named_struct('x', array(id % 3, 7)), named_struct('x', NULL)) AS deep",
        "map('k', id) AS m",
        "id % 11 AS `it``s.odd`",
    )


@pytest.fixture(scope="module")
def profiled(spark: SparkSession) -> tuple[DataFrame, Profile]:
    frame = events(spark)
    return frame, profile(frame, sample=500)


def test_what_is_told_is_what_is_there(profiled: tuple[DataFrame, Profile]) -> None:
    frame, result = profiled
    rows = frame.drop("m").toArrow().to_pylist()
    assert result.events == len(rows) == EVENTS
    names = [each.name for each in result.attributes if each.name != "m"]
    assert names == [".".join(f"`{key.replace('`', '``')}`" if "." in key else key for key in path) for path in PATHS]
    for name, path in zip(names, PATHS, strict=True):
        each = [list(values_at(row, path)) for row in rows]
        values = [value for some in each for value in some]
        attribute = result[name]
        assert attribute.values == len(values), name
        assert attribute.present == sum(map(bool, each)), name
        assert attribute.missing == pytest.approx(1 - attribute.present / EVENTS), name
        assert (attribute.low, attribute.high) == (min(values, default=None), max(values, default=None)), name
        counts = Counter(values)
        assert attribute.is_exact == (len(counts) <= EXACT), name
        if attribute.is_exact:
            assert attribute.distinct == len(counts), name
            assert [share * len(values) for _, share in attribute.frequent] == pytest.approx(
                [count for _, count in counts.most_common(10)]
            )
            assert all(share * len(values) == pytest.approx(counts[value]) for value, share in attribute.frequent)
        else:
            assert attribute.distinct == pytest.approx(len(counts), rel=0.05), name


def values_at(holder: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """The values of an attribute, in the plainest way, as events have them."""
    if isinstance(holder, list):
        for element in holder:
            yield from values_at(element, path)
    elif holder is None or holder != holder:
        return
    elif path:
        yield from values_at(holder[path[0]], path[1:])
    elif isinstance(holder, datetime):
        yield holder.replace(tzinfo=UTC) if holder.tzinfo is None else holder
    else:
        yield float(holder) if isinstance(holder, Decimal) else holder


def test_values_are_those_of_events(profiled: tuple[DataFrame, Profile]) -> None:
    _, result = profiled
    assert (result["price"].low, result["price"].high) == (0.05, 6.05)
    assert result["at"].low == datetime(2026, 1, 1, tzinfo=UTC)
    assert result["local"].low == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert result["day"].low == date(2026, 1, 1)
    assert str(result["ratio"].low) == "0.0"
    kinds = {each.name: (each.kind, each.type) for each in result.attributes}
    assert kinds["price"] == (Kind.NUMBER, "decimal(12,2)")
    assert kinds["items.price"] == (Kind.NUMBER, "bigint")
    assert kinds["tags"] == (Kind.STRING, "string")
    assert kinds["m"] == (None, "map<string,bigint>")
    assert kinds["none"] == (None, "void")
    assert [kinds[name][0] for name in ("at", "local", "day", "flag")] == [
        Kind.TIMESTAMP,
        Kind.TIMESTAMP,
        Kind.DATE,
        Kind.BOOLEAN,
    ]
    assert result["m"].present == EVENTS


def test_frequent_values_have_their_shares(profiled: tuple[DataFrame, Profile]) -> None:
    _, result = profiled
    assert result["tags"].frequent == (("x", pytest.approx(2 / 3)), ("y", pytest.approx(1 / 3)))
    assert result["seller.country"].frequent == (("IT", pytest.approx(3 / 4)), ("FR", pytest.approx(1 / 4)))
    assert result["deep.x"].frequent[0] == (7, 0.5)
    assert len(result["`it``s.odd`"].frequent) == 10
    assert result["seller.country"].error == 0
    assert 0 < result["n"].error <= 1 / (COUNTERS + 1)


def test_the_sample_is_whole_events_each_once(profiled: tuple[DataFrame, Profile]) -> None:
    frame, result = profiled
    assert result.sample.num_rows == 500
    assert result.sample.column_names == frame.columns
    rows = {row["n"]: row for row in result.sample.to_pylist()}
    assert len(rows) == 500
    for number, row in rows.items():
        assert row["word"] == (None if number % 4 == 0 else f"word {number % 1000}")
        assert row["items"] == (None if number % 2 == 0 else [{"price": number % 50}, None, {"price": None}])
        assert row["m"] == [("k", number)]
    assert len({number * 5 // EVENTS for number in rows}) == 5


def test_an_engine_learns_from_the_sample(profiled: tuple[DataFrame, Profile]) -> None:
    _, result = profiled
    engine = Engine()
    engine.subscribe_many((f"s{i}", f"word = 'word {i}' AND items.price < {i}") for i in range(1000))
    engine.learn(result.sample)
    assert engine.match({"word": "word 7", "items": [{"price": 3}]}).ids == ["s7"]


def test_a_profile_is_printed_and_told_as_a_table(profiled: tuple[DataFrame, Profile]) -> None:
    _, result = profiled
    lines = str(result).splitlines()
    assert lines[0].split() == ["attribute", "type", "missing", "distinct", "low", "high", "most", "frequent"]
    assert lines[-1] == "6,000 events, 500 of them in the sample"
    assert next(line for line in lines if line.startswith("tags")).split()[:4] == ["tags", "string", "50.0%", "2"]
    assert len(lines) == len(result.attributes) + 2
    table = pa.Table.from_pylist(result.table())
    (row,) = (row for row in table.to_pylist() if row["attribute"] == "day")
    assert (row["low"], row["present"]) == ("DATE '2026-01-01'", EVENTS)
    with pytest.raises(SourceError, match=r"no attribute `seller\.contry`") as raised:
        result["seller.contry"]
    assert raised.value.hint == "did you mean `seller.country`?"


def test_a_saved_profile_is_the_same(profiled: tuple[DataFrame, Profile], tmp_path: Path) -> None:
    _, result = profiled
    path = tmp_path / "new" / "events.profile"
    result.save(path)
    result.save(path)
    loaded = Profile.load(path)
    assert loaded.attributes == result.attributes
    assert loaded.events == result.events
    assert [repr(row) for row in loaded.sample.to_pylist()] == [repr(row) for row in result.sample.to_pylist()]
    assert loaded.sample.schema.metadata == result.sample.schema.metadata
    assert loaded.sample.schema.field("at").type == result.sample.schema.field("at").type
    assert [each.name for each in path.parent.iterdir()] == ["events.profile"]


def test_what_is_no_profile_is_not_loaded(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        Profile.load(tmp_path / "missing")
    (tmp_path / "text").write_text("no Parquet")
    with pytest.raises(SourceError, match="cannot be read"):
        Profile.load(tmp_path / "text")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other")
    with pytest.raises(SourceError, match="is a Parquet file, but not a profile"):
        Profile.load(tmp_path / "other")
    newer = pa.table({"a": [1]}).replace_schema_metadata({b"harken.profile": json.dumps({"format": 99}).encode()})
    pq.write_table(newer, tmp_path / "newer")
    with pytest.raises(SourceError, match="a format that this Harken does not know"):
        Profile.load(tmp_path / "newer")
    with pytest.raises(SourceError, match="cannot be written"):
        Profile(0, (), pa.table({"a": [1]})).save(tmp_path / "text" / "below")


def test_events_are_read_once(spark: SparkSession, tmp_path: Path) -> None:
    readings = tmp_path / "readings"
    file = str(readings)

    def reading(batches: Any) -> Any:
        for batch in batches:
            with open(file, "a") as stream:
                stream.write("x" * batch.num_rows)
            yield batch

    result = profile(spark.range(0, 70, 1, 7).mapInArrow(reading, "id long"), sample=10)
    assert (result.events, result["id"].distinct, result.sample.num_rows) == (70, 70, 10)
    assert len(readings.read_text()) == 70


def test_the_seed_decides_on_the_sample(spark: SparkSession) -> None:
    frame = spark.range(0, 3_000, 1, 4)
    first, again, other = (profile(frame, sample=50, seed=seed).sample for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)


def test_of_few_events_all_are_in_the_sample(spark: SparkSession) -> None:
    result = profile(spark.sql("SELECT explode(sequence(1, 9)) AS n").repartition(4))
    assert sorted(result.sample.column("n").to_pylist()) == list(range(1, 10))
    assert profile(spark.range(5), sample=0).sample.num_rows == 0


def test_no_events(spark: SparkSession) -> None:
    result = profile(events(spark, 0))
    assert result.events == 0
    assert {each.missing for each in result.attributes} == {0.0}
    assert result["word"] == AttributeProfile("word", Kind.STRING, "string", 0, 0.0, 0, 0, True, None, None, (), 0.0)
    assert result.sample.column_names == events(spark).columns


def test_times_that_no_event_can_hold_are_missing(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT timestamp_micros(id * 300000000000000000L) AS at, date_from_unix_date(int(id) * 3000000) AS d "
        "FROM range(3)"
    )
    result = profile(frame)
    assert (result["at"].present, result["at"].high, result["d"].present) == (1, datetime(1970, 1, 1, tzinfo=UTC), 1)


def test_streams_and_what_no_event_holds_are_rejected(spark: SparkSession) -> None:
    with pytest.raises(SourceError, match="profiling needs a DataFrame that ends"):
        profile(spark.readStream.format("rate").load())
    with pytest.raises(SourceError, match="the column `b` has the Arrow type binary"):
        profile(spark.sql("SELECT X'00' AS b"))
    with pytest.raises(ValueError, match="not negative"):
        profile(spark.range(1), sample=-1)


# Summaries


@pytest.mark.parametrize("count", [0, 1, 50, 1_000, 5_000, 20_000, 100_000, 1_000_000])
def test_distinct_values_are_estimated_closely(count: int) -> None:
    from pandas.util import hash_array

    hashes = hash_array(np.arange(count, dtype=np.int64))
    whole, halves = Distinct(), [Distinct(), Distinct()]
    whole.add(hashes)
    whole.add(hashes[: count // 3])
    for half, part in zip(halves, (hashes[: 2 * count // 3], hashes[count // 3 :]), strict=True):
        half.add(part)
    halves[0].merge(halves[1])
    assert whole.estimate() == pytest.approx(count, rel=0.05)
    assert halves[0].estimate() == whole.estimate()


@pytest.mark.parametrize("values", [3, COUNTERS, COUNTERS + 1, 5_000])
def test_counts_of_frequent_values_are_never_too_large_nor_much_too_small(values: int) -> None:
    draw = np.random.default_rng(values)
    summaries = [AttributeSummary() for _ in range(4)]
    counts: Counter[int] = Counter()
    for summary in summaries:
        for _ in range(3):
            numbers = draw.zipf(1.3, 2_000) % values
            counts.update(numbers.tolist())
            summary.add(np.arange(2_000, dtype=np.int32), pa.array(numbers))
    first, *others = summaries
    for other in others:
        first.merge(other)
    frequent = first.frequent
    total = counts.total()
    assert first.values == total
    assert len(frequent.counts) <= COUNTERS
    assert frequent.error <= total / (COUNTERS + 1)
    assert (frequent.error == 0) == (len(counts) <= COUNTERS)
    for value, count in counts.items():
        assert frequent.counts.get(value, 0) <= count <= frequent.counts.get(value, 0) + frequent.error
    assert next(iter(counts.most_common(1)))[0] == max(frequent.counts, key=frequent.counts.__getitem__)


def test_many_equal_counts_leave_none_that_is_frequent() -> None:
    result = Frequent()
    result.add(pa.array(range(1_000)), np.full(1_000, 3))
    assert (result.counts, result.error) == ({}, 3)


def test_every_event_is_as_likely_as_any_other_in_whatever_task_it_is() -> None:
    draws = 600
    chosen: Counter[int] = Counter()
    tasks = [range(3), range(3, 40)]
    for seed in range(draws):
        samples = []
        for task, numbers in enumerate(tasks):
            draw = np.random.default_rng([seed, task])
            sample = EventSample(10)
            for start in range(0, len(numbers), 4):
                batch = pa.RecordBatch.from_pydict({"n": list(numbers[start : start + 4])})
                sample.add(draw.integers(2**63, size=batch.num_rows, dtype=np.int64), batch)
            samples.append(sample)
        samples[0].merge(samples[1])
        table = samples[0].table()
        assert table.num_rows == 10
        chosen.update(table.column("n").to_pylist())
    expected, deviation = draws / 4, (draws * 1 / 4 * 3 / 4) ** 0.5
    assert set(chosen) == set(range(40))
    assert all(abs(count - expected) < 4 * deviation for count in chosen.values())


def test_merging_is_the_same_in_any_order() -> None:
    def seen(task: int) -> EventSummary:
        result = EventSummary([("n",), ("t",)], 20)
        base = datetime(2026, 1, 1, tzinfo=UTC)
        for batch in range(3):
            numbers = list(range(task * 100 + batch * 30, task * 100 + batch * 30 + 30))
            times = [base + timedelta(seconds=n) if n % 3 else None for n in numbers]
            result.add(pa.RecordBatch.from_pydict({"n": numbers, "t": times}), np.random.default_rng([batch, task]))
        return result

    def merged(*order: int) -> EventSummary:
        first, *others = (seen(task) for task in order)
        for other in others:
            first.merge(other)
        return first

    one, other = merged(0, 1, 2, 3), merged(3, 1, 0, 2)
    assert one.events == other.events == 360
    assert one.sample.table().equals(other.sample.table())
    for path, summary in one.summaries.items():
        twin = other.summaries[path]
        assert (summary.low, summary.high, summary.present) == (twin.low, twin.high, twin.present)
        assert summary.distinct.estimate() == twin.distinct.estimate()
    assert one.summaries[("n",)].high == 389
