"""The subscriptions of a pipeline: opened or built at its start, taken over as they change, rejected if bad."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harken.engine import Engine
from harken.errors import MismatchError, SegmentError, SubscriptionError
from harken.pipeline import matched_subscriptions as module
from harken.pipeline.config import Config, MatchConfig, Sink, SourceConfig
from harken.pipeline.config import SubscriptionsConfig as Given
from harken.pipeline.matched_subscriptions import Subscriptions
from harken.pipeline.reports import RefreshReport
from harken.schema import EventColumns
from harken.spark.building import build_index
from harken.spark.index_versions import Index, IndexVersion

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rules = dict[str, str]


class Folder:
    """A file of subscriptions, and a place where the versions built from it are kept."""

    def __init__(self, place: Path, spark: SparkSession, **given: Any) -> None:
        self.path = place
        self.file = place / "rules.jsonl"
        self.spark = spark
        settings = {"path": str(self.file), "keep": str(place / "index"), **given}
        source, sink = SourceConfig(format="rate"), Sink(name="console", format="console")
        self.config = Config(
            name="p",
            mode="stream",
            source=source,
            subscriptions=Given(**settings),
            sinks=(sink,),
            checkpoint=str(place),
        )

    def write(self, rules: Rules, **fields: str) -> None:
        self.write_lines(*(json.dumps({"id": id, "where": where, **fields}) for id, where in rules.items()))

    def write_lines(self, *lines: str) -> None:
        unfinished = self.path / "unfinished"
        unfinished.write_text("".join(f"{line}\n" for line in lines))
        unfinished.replace(self.file)

    def open(self) -> Subscriptions:
        return Subscriptions(self.config, self.spark)

    def open_for(self, on_mismatch: str = "warn", **columns: pa.DataType) -> Subscriptions:
        """The subscriptions, compared with the columns of events."""
        config = replace(self.config, match=MatchConfig(on_mismatch=on_mismatch))
        return Subscriptions(config, self.spark, EventColumns.from_arrow(pa.schema(list(columns.items()))))


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Folder:
    return Folder(tmp_path, spark)


def texts(version: IndexVersion) -> Rules:
    return {each.id: each.where for each in Engine.load(Path(version.root, version.folder))}


def found(version: IndexVersion, **event: Any) -> set[str]:
    return set(Engine.load(Path(version.root, version.folder)).match(event).ids)


RULES = {"a": "price < 5", "b": "price < 10", "c": "price > 20"}


def test_the_first_version_is_built_and_stays_while_nothing_changes(folder: Folder) -> None:
    folder.write(RULES, owner="ann")
    subscriptions = folder.open()
    version = subscriptions.current()
    assert texts(version) == RULES
    assert Engine.load(Path(version.root, version.folder)).subscription("a").fields == {"owner": "ann"}
    assert subscriptions.refresh() is None
    assert subscriptions.current() is version
    assert subscriptions.opening is None


def test_a_change_makes_the_next_version_out_of_the_last(folder: Folder) -> None:
    folder.write(RULES)
    subscriptions = folder.open()
    first = subscriptions.current()
    folder.write({"a": "price < 5", "b": "price < 11", "d": "price = 1"})
    change = subscriptions.refresh()
    assert change == RefreshReport(subscriptions.current(), added=1, replaced=1, removed=1)
    assert change.version.version == first.version + 1
    assert texts(change.version) == {"a": "price < 5", "b": "price < 11", "d": "price = 1"}
    assert found(change.version, price=10) == {"b"}
    assert found(first, price=10) == set()
    assert texts(first) == RULES
    assert subscriptions.refresh() is None


def test_a_field_that_changes_is_a_change(folder: Folder) -> None:
    folder.write(RULES, owner="ann")
    subscriptions = folder.open()
    subscriptions.current()
    folder.write(RULES, owner="bob")
    change = subscriptions.refresh()
    assert change is not None
    assert (change.added, change.replaced, change.removed) == (0, 3, 0)
    engine = Engine.load(Path(change.version.root, change.version.folder))
    assert {each.fields["owner"] for each in engine} == {"bob"}


def test_a_file_that_is_written_again_with_the_same_is_no_change_of_any_subscription(folder: Folder) -> None:
    folder.write(RULES)
    subscriptions = folder.open()
    first = subscriptions.current()
    folder.write(dict(reversed(RULES.items())))
    assert subscriptions.refresh() is None
    assert subscriptions.refresh() is None
    assert subscriptions.current() is first
    assert folder.open().current() == first


def test_what_was_kept_is_opened_again_and_changed_by_what_changed_since(folder: Folder) -> None:
    folder.write(RULES)
    first = folder.open().current()
    assert folder.open().current() == first

    folder.write({**RULES, "d": "price = 1"})
    again = folder.open()
    assert texts(again.current()) == {**RULES, "d": "price = 1"}
    assert again.opening == RefreshReport(again.current(), added=1)
    assert Index(folder.path / "index").versions() == [1, 2]


def test_a_faulty_start_is_rejected_with_every_fault_and_its_place(folder: Folder) -> None:
    good = json.dumps({"id": "a", "where": "price < 5"})
    faulty = [json.dumps({"id": "b", "where": "price <"}), "no json", json.dumps({"id": "c"}), good]
    folder.write_lines(good, *faulty)
    with pytest.raises(SubscriptionError) as raised:
        folder.open().current()
    message = raised.value.message
    assert message.startswith("4 subscriptions are faulty:")
    for line in (2, 3, 4, 5):
        assert f"rules.jsonl, line {line}: " in message
    assert "'a' is taken" in message
    assert raised.value.hint is not None
    assert "on_fault" in raised.value.hint
    assert Index(folder.path / "index").versions() == []


def test_a_bad_change_is_told_once_and_the_last_version_goes_on(folder: Folder) -> None:
    folder.write(RULES)
    subscriptions = folder.open()
    first = subscriptions.current()
    folder.write({**RULES, "d": "price <", "e": "price = 1"})
    change = subscriptions.refresh()
    assert change is not None
    assert change.rejected is not None
    assert "rules.jsonl, line 4" in change.rejected
    assert change.version == first
    assert [each.id for each in change.faults] == ["d"]
    assert "rejected" in str(change)
    assert subscriptions.refresh() is None
    assert subscriptions.current() is first
    assert Index(folder.path / "index").versions() == [1]

    folder.write({**RULES, "d": "price < 1"})
    mended = subscriptions.refresh()
    assert mended is not None
    assert mended.rejected is None
    assert texts(subscriptions.current()) == {**RULES, "d": "price < 1"}


@pytest.mark.parametrize("mishap", ["gone", "empty", "a folder of nothing"])
def test_a_source_that_has_nothing_any_more_is_a_bad_change(folder: Folder, mishap: str) -> None:
    folder.write(RULES)
    subscriptions = folder.open()
    first = subscriptions.current()
    folder.file.unlink()
    if mishap == "empty":
        folder.file.write_text("")
    if mishap == "a folder of nothing":
        folder.file.mkdir()
    change = subscriptions.refresh()
    assert change is not None
    assert change.rejected is not None
    assert subscriptions.refresh() is None
    assert subscriptions.current() is first
    if folder.file.is_dir():
        folder.file.rmdir()
    folder.write(RULES)
    assert subscriptions.current() is first
    subscriptions.refresh()
    assert texts(subscriptions.current()) == RULES


def test_a_stream_starts_with_what_was_kept_if_the_source_is_bad_and_a_batch_does_not(
    folder: Folder, spark: SparkSession
) -> None:
    folder.write(RULES)
    first = folder.open().current()
    folder.write({"a": "price <"})
    subscriptions = folder.open()
    assert subscriptions.current() == first
    assert subscriptions.opening is not None
    assert subscriptions.opening.rejected is not None
    with pytest.raises(SubscriptionError, match="line 1"):
        Subscriptions(replace(folder.config, mode="batch"), spark).current()


def test_faulty_ones_can_be_left_out(tmp_path: Path, spark: SparkSession) -> None:
    folder = Folder(tmp_path, spark, on_fault="skip")
    folder.write({**RULES, "d": "price <"})
    subscriptions = folder.open()
    assert texts(subscriptions.current()) == RULES
    assert subscriptions.opening is not None
    assert [each.id for each in subscriptions.opening.faults] == ["d"]

    folder.write({"a": "price < 5", "b": "price <", "c": "price > 20"})
    change = subscriptions.refresh()
    assert change is not None
    assert change.rejected is None
    assert [each.id for each in change.faults] == ["b"]
    assert texts(change.version) == {"a": "price < 5", "c": "price > 20"}

    folder.write(RULES)
    mended = subscriptions.refresh()
    assert mended is not None
    assert texts(mended.version) == RULES


def test_a_folder_of_files_of_several_formats(tmp_path: Path, spark: SparkSession) -> None:
    place = tmp_path / "rules"
    (place / "more").mkdir(parents=True)
    (place / "one.csv").write_text("id,where,owner\na,price < 5,ann\n")
    pq.write_table(pa.table({"id": ["b"], "where": ["price < 10"]}), place / "more/two.parquet")
    (place / "_SUCCESS").write_text("")
    (place / ".hidden.jsonl").write_text("no json")
    folder = Folder(tmp_path, spark, path=str(place))
    subscriptions = folder.open()
    assert texts(subscriptions.current()) == {"a": "price < 5", "b": "price < 10"}

    (place / "three.jsonl").write_text('{"id": "c", "where": "price > 20"}\n{"id": "d", "where": "price >"}\n')
    change = subscriptions.refresh()
    assert change is not None
    assert change.rejected is not None
    assert "three.jsonl, line 2" in change.rejected
    (place / "three.jsonl").write_text('{"id": "c", "where": "price > 20"}\n')
    assert subscriptions.refresh() is not None
    assert texts(subscriptions.current()) == RULES


def test_a_large_change_builds_the_index_anew_and_a_large_set_is_built_by_spark(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SPARK_BUILD", 3)
    monkeypatch.setattr(module, "_REBUILD_CHANGES", 1)
    folder.write({**RULES, "d": "price <"}, owner="ann")
    with pytest.raises(SubscriptionError, match=r"rules.jsonl, line 4"):
        folder.open().current()
    folder.write(RULES, owner="ann")
    subscriptions = folder.open()
    assert texts(subscriptions.current()) == RULES
    folder.write({id: f"{where} AND size = 1" for id, where in RULES.items()}, owner="ann")
    change = subscriptions.refresh()
    assert change is not None
    assert (change.added, change.replaced, change.removed) == (0, 3, 0)
    assert found(change.version, price=7, size=1) == {"b"}
    folder.write({id: f"{where} AND size = 1" for id, where in RULES.items()}, owner="ann")
    assert subscriptions.refresh() is None


def test_a_table_of_sparks(tmp_path: Path, spark: SparkSession) -> None:
    columns = "id STRING, where STRING, owner STRING"
    spark.createDataFrame([("a", "price < 5", "ann"), ("b", "price < 10", None)], columns).write.saveAsTable("rules")
    try:
        folder = Folder(tmp_path, spark, path=None, table="rules")
        subscriptions = folder.open()
        assert texts(subscriptions.current()) == {"a": "price < 5", "b": "price < 10"}
        assert subscriptions.refresh() is None
        spark.createDataFrame([("c", "price > 20", "ann")], columns).write.insertInto("rules")
        change = subscriptions.refresh()
        assert change is not None
        assert (change.added, change.replaced, change.removed) == (1, 0, 0)
        assert texts(change.version) == RULES
    finally:
        spark.sql("DROP TABLE rules")
    gone = subscriptions.refresh()
    assert gone is not None
    assert gone.rejected is not None
    assert subscriptions.refresh() is None


def test_a_view_has_no_files_and_its_rows_tell_of_changes(tmp_path: Path, spark: SparkSession) -> None:
    view = "CREATE OR REPLACE TEMPORARY VIEW rules AS SELECT * FROM VALUES {} AS t(id, where)"
    spark.sql(view.format("('a', 'price < 5')"))
    folder = Folder(tmp_path, spark, path=None, table="rules")
    subscriptions = folder.open()
    assert texts(subscriptions.current()) == {"a": "price < 5"}
    assert subscriptions.refresh() is None
    spark.sql(view.format("('a', 'price < 6')"))
    change = subscriptions.refresh()
    assert change is not None
    assert change.replaced == 1
    spark.catalog.dropTempView("rules")


def test_an_index_that_somebody_publishes(tmp_path: Path, spark: SparkSession) -> None:
    place = tmp_path / "published"
    first = build_index(RULES, place)
    folder = Folder(tmp_path, spark, path=None, keep=None, index=str(place))
    subscriptions = folder.open()
    assert subscriptions.current() == first
    assert subscriptions.refresh() is None
    second = build_index({**RULES, "d": "price = 1"}, place)
    change = subscriptions.refresh()
    assert change == RefreshReport(second, added=1)
    assert subscriptions.version(first.version, first.fingerprint) == first

    shutil.move(place, tmp_path / "elsewhere")
    gone = subscriptions.refresh()
    assert gone is not None
    assert gone.rejected is not None
    assert subscriptions.refresh() is None
    assert subscriptions.current() == second
    with pytest.raises(SegmentError):
        subscriptions.pin("p", second)
    assert not place.exists()
    shutil.move(tmp_path / "elsewhere", place)
    subscriptions.pin("p", second)
    assert Index(place).pinned() == {"p": second.version}


def test_an_index_that_is_not_there_is_an_error_at_the_start(tmp_path: Path, spark: SparkSession) -> None:
    folder = Folder(tmp_path, spark, path=None, keep=None, index=str(tmp_path / "nowhere"))
    with pytest.raises(SegmentError, match="has no index"):
        folder.open().current()


def test_a_version_that_is_another_than_the_one_recorded_is_rejected(folder: Folder) -> None:
    folder.write(RULES)
    subscriptions = folder.open()
    version = subscriptions.current()
    with pytest.raises(SegmentError, match="not the one with which the batch began"):
        subscriptions.version(version.version, "another")
    with pytest.raises(SegmentError, match="does not have version 7"):
        subscriptions.version(7, version.fingerprint)


def test_a_version_that_is_pinned_outlives_many_changes(folder: Folder) -> None:
    folder.write(RULES)
    subscriptions = folder.open()
    first = subscriptions.current()
    subscriptions.pin("p", first)
    for number in range(12):
        folder.write({**RULES, "d": f"price = {number}"})
        assert subscriptions.refresh() is not None
    versions = Index(folder.path / "index").versions()
    assert versions[0] == first.version
    assert len(versions) == 11
    assert texts(subscriptions.version(first.version, first.fingerprint)) == RULES


def test_a_return_to_an_earlier_state_is_a_change(folder: Folder) -> None:
    """Files that hold the same under other names and dates, then other rules, then the first file again."""
    first, same, other = (folder.path / f"{name}.jsonl" for name in ("first", "same", "other"))
    line = '{"id": "a", "where": "price < 5"}\n'
    first.write_text(line)
    same.write_text(line)
    other.write_text('{"id": "a", "where": "price < 9"}\n')
    folder.file.symlink_to(first)
    subscriptions = folder.open()
    subscriptions.current()
    for target, expected in ((same, None), (other, "price < 9"), (same, "price < 5")):
        link = folder.path / "link"
        link.symlink_to(target)
        link.replace(folder.file)
        change = subscriptions.refresh()
        assert (None if change is None else texts(change.version)["a"]) == expected


def test_whatever_is_wrong_with_a_change_the_last_version_goes_on(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write(RULES)
    subscriptions = folder.open()
    first = subscriptions.current()
    monkeypatch.setattr("harken.pipeline.matched_subscriptions._REBUILD_CHANGES", 0)
    monkeypatch.setattr("harken.pipeline.matched_subscriptions._SPARK_BUILD", 1)
    lines = [json.dumps({"id": id, "where": where, "budget": 2**70}) for id, where in RULES.items()]
    folder.write_lines(*lines, json.dumps({"id": "d", "where": "price = 7"}))
    change = subscriptions.refresh()
    assert change is not None
    assert change.rejected is not None
    assert "OverflowError" in change.rejected
    assert change.version == subscriptions.current() == first


# Against the columns of events


def test_what_does_not_fit_the_columns_is_told_with_the_version(folder: Folder) -> None:
    folder.write({"a": "prise < 5", "b": "price < 5"})
    subscriptions = folder.open_for(price=pa.float64())
    version = subscriptions.current()
    assert subscriptions.opening is not None
    assert str(subscriptions.opening) == (
        "version 1 of the subscriptions: 1 of 2 subscriptions can never match these events:\n"
        "  `prise` is no column: 1 subscription asks for it ('a'); did you mean `price`?"
    )
    again = folder.open_for(price=pa.float64())  # of a version that was kept
    assert (again.current(), str(again.opening)) == (version, str(subscriptions.opening))
    folder.write({"b": "price < 5", "c": "price = 'x'"})
    change = subscriptions.refresh()
    assert change is not None
    assert (change.added, change.removed, [each.asks for each in change.mismatches]) == (1, 1, ["string"])
    assert "1 added, 0 replaced, 1 removed; 1 of 2 subscriptions can never match" in str(change)


def test_what_does_not_fit_may_be_rejected_or_ignored(folder: Folder) -> None:
    folder.write({"a": "prise < 5"})
    with pytest.raises(MismatchError, match="`prise` is no column"):
        folder.open_for("fail", price=pa.float64()).current()
    assert not (folder.path / "index" / "current.json").exists()
    ignoring = folder.open_for("ignore", price=pa.float64())
    assert (ignoring.current().version, ignoring.opening) == (1, None)
    with pytest.raises(MismatchError):  # it was kept
        folder.open_for("fail", price=pa.float64()).current()


def test_a_change_that_does_not_fit_is_rejected_once_and_the_last_version_goes_on(folder: Folder) -> None:
    folder.write({"a": "price < 5"})
    subscriptions = folder.open_for("fail", price=pa.float64())
    version = subscriptions.current()
    folder.write({"a": "prise < 5"})
    change = subscriptions.refresh()
    assert change is not None
    assert "`prise` is no column" in str(change.rejected)
    assert subscriptions.refresh() is None
    assert subscriptions.current() == version
    folder.write({"a": "price < 6"})
    mended = subscriptions.refresh()
    assert mended is not None
    assert (mended.rejected, mended.replaced) == (None, 1)


def test_an_index_is_compared_too(folder: Folder, spark: SparkSession) -> None:
    place = folder.path / "published"
    build_index({"a": "prise < 5"}, place)
    folder.config = replace(folder.config, subscriptions=Given(index=str(place)))
    subscriptions = folder.open_for(price=pa.float64())
    subscriptions.current()
    assert "`prise` is no column" in str(subscriptions.opening)
    build_index({"a": "price < 5"}, place)
    mended = subscriptions.refresh()
    assert mended is not None
    assert not mended.mismatches
