"""The log of batches: what was recorded comes back, and nothing is believed that is damaged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from harken.errors import FolderLockedError, SegmentError, SourceError
from harken.pipeline.batch_log import BatchLog, Begun, Done

TIME = datetime(2026, 3, 1, 12, 30, 15, 123_456, UTC)


def test_what_was_begun_and_done_comes_back(tmp_path: Path) -> None:
    log = BatchLog(tmp_path)
    begun = Begun(3, 17, "abc", TIME, TIME - timedelta(minutes=10))
    done = Done(3, TIME, {"events": 5, "dead_letters": {"decode": 1}})
    log.begin(begun)
    log.finish(done)

    again = BatchLog(tmp_path)
    assert (again.begun(3), again.done(3)) == (begun, done)
    assert (again.begun(4), again.done(4)) == (None, None)
    assert not again.is_empty


def test_a_time_of_another_zone_is_the_same_time(tmp_path: Path) -> None:
    log = BatchLog(tmp_path)
    log.begin(Begun(0, 1, "abc", TIME.astimezone(timezone(timedelta(hours=5)))))
    begun = log.begun(0)
    assert begun is not None
    assert begun.time == TIME
    assert begun.time.tzinfo is UTC
    assert begun.late_before is None


def test_a_batch_that_was_only_begun_is_not_done(tmp_path: Path) -> None:
    log = BatchLog(tmp_path)
    log.begin(Begun(0, 1, "abc", TIME))
    log.finish(Done(0, TIME))
    log.begin(Begun(1, 2, "def", TIME))
    assert BatchLog(tmp_path).done(1) is None
    assert BatchLog(tmp_path).last() == Done(0, TIME)


def test_an_empty_log(tmp_path: Path) -> None:
    log = BatchLog(tmp_path / "not yet")
    assert log.is_empty
    assert log.last() is None
    assert log.begun(0) is None


def test_old_records_go(tmp_path: Path) -> None:
    log = BatchLog(tmp_path, keep=3)
    for batch in range(6):
        log.begin(Begun(batch, 1, "abc", TIME))
        log.finish(Done(batch))
    assert [batch for batch in range(6) if log.done(batch)] == [3, 4, 5]
    reopened = BatchLog(tmp_path, keep=3)
    reopened.begin(Begun(6, 1, "abc", TIME))
    assert reopened.begun(3) is None
    assert reopened.begun(4) is not None


def test_a_log_belongs_to_one_query(tmp_path: Path) -> None:
    BatchLog(tmp_path).claim("first")
    BatchLog(tmp_path).claim("first")
    with pytest.raises(SegmentError, match="another query"):
        BatchLog(tmp_path).claim("second")


def test_one_process_at_a_time_works_with_a_log(tmp_path: Path) -> None:
    with BatchLog(tmp_path).locked():
        with pytest.raises(FolderLockedError, match="another process uses"), BatchLog(tmp_path).locked():
            pass
        assert BatchLog(tmp_path).is_empty
    with BatchLog(tmp_path).locked():
        pass


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 2}', '{"format": 1}', '{"format": 1, "version": 1}'])
@pytest.mark.parametrize("name", ["begun", "done"])
def test_a_damaged_record_is_an_error(tmp_path: Path, name: str, text: str) -> None:
    log = BatchLog(tmp_path)
    log.begin(Begun(0, 1, "abc", TIME))
    log.finish(Done(0))
    (tmp_path / f"batches/00000000/{name}.json").write_text(text)
    with pytest.raises(SegmentError, match=f"{name}.json cannot be understood"):
        _ = log.begun(0) if name == "begun" else log.done(0)


def test_a_log_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "batches/00000000/begun.json").mkdir(parents=True)
    with pytest.raises(SourceError, match="cannot be written"):
        BatchLog(tmp_path).begin(Begun(0, 1, "abc", TIME))


def test_a_file_that_a_crash_left_unfinished_is_no_record(tmp_path: Path) -> None:
    folder = tmp_path / "batches/00000000"
    folder.mkdir(parents=True)
    (folder / ".begun.json.0a1b2c3d").write_text('{"format": 1, "ver')
    log = BatchLog(tmp_path)
    assert log.begun(0) is None
    log.begin(Begun(0, 1, "abc", TIME))
    assert log.begun(0) == Begun(0, 1, "abc", TIME)
