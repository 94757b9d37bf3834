"""`harken publish`: formats, batches, what is rejected by whom, and the dry run."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from services.stand import Reply, Stand, problem

from .conftest import EVENTS, Run, Write, lines


def accepted(count: int, *rejected: dict[str, Any], **more: int) -> Reply:
    return Reply(202, {"accepted": count, "rejected": list(rejected), **more})


def rejection(position: int, **more: Any) -> dict[str, Any]:
    return {"position": position, "error": "InvalidValueError", "message": "not a number", **more}


def test_a_file_of_events(run: Run, stand: Stand, events: Path) -> None:
    stand.will(accepted(3))
    result = run("publish", events, "--api-key", "k")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("3 events · 3 accepted · ")
    assert stand.seen[0].lines == EVENTS
    assert stand.seen[0].headers["authorization"] == "Bearer k"


def test_several_files_in_batches(run: Run, stand: Stand, write: Write, tmp_path: Path) -> None:
    array = write("a.json", '[{"price": 1},\n {"price": 2}]')
    pa.parquet.write_table(pa.table({"price": [3, 4]}), tmp_path / "b.parquet")
    csv = write("c.csv", "price,name\n5,x\n")
    stand.will(accepted(2), accepted(2), accepted(1))
    result = run("publish", array, tmp_path / "b.parquet", csv, "--batch-size", 2)
    assert result.exit_code == 0
    assert [each.lines for each in stand.seen] == [
        [{"price": 1}, {"price": 2}],
        [{"price": 3}, {"price": 4}],
        [{"price": 5, "name": "x"}],
    ]
    assert len({each.headers["idempotency-key"] for each in stand.seen}) == 3


def test_standard_input(run: Run, stand: Stand, events: Path) -> None:
    stand.will(accepted(3))
    assert run("publish", "-", input=events.read_bytes()).exit_code == 0
    assert stand.seen[0].lines == EVENTS


def test_events_on_the_command_line(run: Run, stand: Stand) -> None:
    stand.will(accepted(2))
    assert run("publish", "--event-json", '{"price": 1}', "--event-json", '{"name": "é"}').exit_code == 0
    assert stand.seen[0].lines == [{"price": 1}, {"name": "é"}]
    result = run("publish", "--event-json", "{")
    assert result.exit_code == 3
    assert "this is not JSON" in result.stderr
    assert run("publish").exit_code == 2
    assert run("publish", "a.jsonl", "--event-json", "{}").exit_code == 2


def test_documents(run: Run, stand: Stand, write: Write) -> None:
    stand.will(accepted(1), accepted(1), accepted(1))
    assert run("publish", write("a.xml", "<a><b>1</b>\n<b>2</b></a>"), "--split", "b").exit_code == 0
    assert run("publish", write("b.xml", "<a/>")).exit_code == 0
    assert [each.body for each in stand.seen] == [b"<b>1</b>", b"<b>2</b>", b"<a/>"]
    assert {each.headers["content-type"] for each in stand.seen} == {"application/xml"}
    result = run("publish", write("e.jsonl", EVENTS), "--split", "b")
    assert result.exit_code == 3
    assert "is not XML" in result.stderr


def test_what_is_rejected_is_told_with_its_file_and_line(run: Run, stand: Stand, write: Write, tmp_path: Path) -> None:
    file = write("e.jsonl", '{"price": 1}\n\n{bad\n{"price": "x"}\n{"price": 2}\n')
    stand.will(accepted(2, rejection(1, line=2, column=3, hint="write one")))
    rejected = tmp_path / "rejected.jsonl"
    result = run("publish", file, "--rejected", rejected)
    assert result.exit_code == 0
    assert f"✗ {file}, line 3, column 2, event 1\n  this is not JSON" in result.stderr
    assert f"✗ {file}, line 4, event 2\n  not a number\n  hint: write one\n" in result.stderr
    assert "4 events · 2 accepted · 2 rejected" in result.stderr
    assert [(each["position"], each["error"], each["line"]) for each in lines(rejected.read_text())] == [
        (1, "DecodeError", 3),
        (2, "InvalidValueError", 4),
    ]


def test_places_in_documents_are_places_in_their_file(run: Run, stand: Stand, write: Write) -> None:
    file = write("a.xml", "<a>\n<b>1</b>\n  <b>\n2</b></a>")
    bad = rejection(0, line=2, column=2, excerpt="2</b>\n ^")
    stand.will(accepted(1), problem(422, "the event was rejected", rejected=[bad]))
    result = run("publish", file, "--split", "b", "--json")
    found = lines(result.stderr)
    assert (found[0]["line"], found[0]["column"], found[0]["excerpt"]) == (4, 2, "2</b>\n ^")
    assert (found[1]["kind"], found[1]["accepted"], found[1]["rejected"]) == ("summary", 1, 1)


@pytest.mark.parametrize(
    ("reply", "options", "code"),
    [
        (accepted(2, rejection(1)), [], 0),
        (accepted(2, rejection(1)), ["--strict"], 1),
        (accepted(3), ["--strict"], 0),
        (accepted(0, duplicates=3), ["--strict"], 0),
        (problem(422, "all were rejected", rejected=[rejection(at) for at in range(3)]), [], 3),
        (problem(401, "this needs a key"), [], 3),
    ],
)
def test_exit_codes(run: Run, stand: Stand, events: Path, reply: Reply, options: list[str], code: int) -> None:
    stand.will(reply)
    assert run("publish", events, *options).exit_code == code


def test_what_came_before_a_break_is_published(run: Run, stand: Stand, write: Write, tmp_path: Path) -> None:
    whole = gzip.compress(b'{"price": 1}\n' * 3 + bytes(random.Random(0).randbytes(100_000).hex(), "ascii"))
    broken = tmp_path / "e.jsonl.gz"
    broken.write_bytes(whole[: len(whole) // 2])
    stand.will(accepted(3))
    result = run("publish", broken)
    assert result.exit_code == 3
    assert "ends in the middle of its compressed data" in result.stderr
    assert stand.seen[0].lines == [{"price": 1}] * 3


def test_no_events(run: Run, stand: Stand, write: Write) -> None:
    result = run("publish", write("none.jsonl", ""))
    assert result.exit_code == 3
    assert "error: there is no event in" in result.stderr
    assert "there is no file" in run("publish", "nosuch.jsonl").stderr
    assert stand.seen == []


def test_a_file_without_one_good_event_is_not_sent(run: Run, stand: Stand, write: Write) -> None:
    assert run("publish", write("bad.jsonl", "{\n")).exit_code == 3
    assert stand.seen == []


def test_a_dry_run_shows_what_would_match(run: Run, stand: Stand, write: Write) -> None:
    file = write("e.jsonl", '{"price": 1}\n{bad\n{"price": 2}\n{"price": "x"}\n')
    stand.will(Reply(json={"matches": [["a", "b"], ["a"], []], "rejected": [rejection(2)]}))
    result = run("publish", file, "--dry-run")
    assert [(each["event"], each["subscription"]) for each in lines(result.stdout)] == [(0, "a"), (0, "b"), (2, "a")]
    assert "4 events · 3 matches, nothing published · 2 rejected" in result.stderr
    assert stand.seen[0].query == [("dry_run", "true")]
