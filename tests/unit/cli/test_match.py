"""`harken match`: formats, rejections, names of events, and what it says when it cannot go on."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from harken.events import Event
from harken.live import catalogue

from .conftest import EVENTS, PAIRS, SUBSCRIPTIONS, Program, Run, Write, lines


def pairs(text: str) -> list[tuple[Any, str]]:
    return [(row["event"], row["subscription"]) for row in lines(text)]


def as_csv(records: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list({name: None for record in records for name in record}), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def put(folder: Path, stem: str, records: list[dict[str, Any]], format: str) -> Path:
    """The records in a file of the format."""
    path = folder / f"{stem}.{format}"
    if format == "csv":
        path.write_text(as_csv(records))
    elif format == "parquet":
        pa.parquet.write_table(pa.Table.from_pylist(records), path)
    else:
        pa.feather.write_feather(pa.Table.from_pylist(records), path)
    return path


# Good input


def test_piped_output_is_json_lines_of_matches_and_nothing_else(run: Run, events: Path, subscriptions: Path) -> None:
    result = run("match", events, "--subscriptions", subscriptions)
    assert result.exit_code == 0
    assert pairs(result.stdout) == PAIRS
    assert "3 events · 2 subscriptions · 3 matches" in result.stderr


def test_fields_travel_with_the_matches(run: Run, events: Path, subscriptions: Path) -> None:
    first, second, _ = lines(run("match", events, "-s", subscriptions).stdout)
    assert first == {"event": 0, "subscription": "alice", "owner": "Alice", "channel": "mail"}
    assert list(first) == ["event", "subscription", "owner", "channel"]
    assert second == {"event": 1, "subscription": "bob", "channel": "sms"}


@pytest.mark.parametrize("of_events", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("of_subscriptions", ["csv", "parquet", "arrow"])
def test_every_format_gives_the_same(run: Run, tmp_path: Path, of_events: str, of_subscriptions: str) -> None:
    events = put(tmp_path, "events", [{**event, "price": float(event["price"])} for event in EVENTS], of_events)
    subscriptions = put(tmp_path, "subscriptions", SUBSCRIPTIONS, of_subscriptions)
    result = run("match", events, "-s", subscriptions)
    assert pairs(result.stdout) == PAIRS
    assert lines(result.stdout)[0]["owner"] == "Alice"


def test_subscriptions_from_csv_keep_their_texts(run: Run, events: Path, write: Write) -> None:
    """Ids and fields that look like numbers are not numbers: 007 stays 007."""
    subscriptions = write("subscriptions.csv", "id,where,phone\n007,price > 5,0123\n")
    assert lines(run("match", events, "-s", subscriptions).stdout)[0] == {
        "event": 1,
        "subscription": "007",
        "phone": "0123",
    }


def test_events_from_standard_input(run: Run, events: Path, subscriptions: Path) -> None:
    assert pairs(run("match", "-", "-s", subscriptions, input=events.read_bytes()).stdout) == PAIRS
    text = "category,price\nToy,3\n"
    assert pairs(run("match", "-", "-s", subscriptions, "--format", "csv", input=text).stdout) == [(0, "alice")]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_batches_change_nothing(run: Run, events: Path, subscriptions: Path, size: int) -> None:
    assert pairs(run("match", events, "-s", subscriptions, "--batch-size", size).stdout) == PAIRS


def test_with_a_schema(run: Run, events: Path, subscriptions: Path, write: Write) -> None:
    schema = write("schema.toml", '[attributes]\norder = "string"\ncategory = "string"\nprice = "float"\n')
    assert pairs(run("match", events, "-s", subscriptions, "--schema", schema).stdout) == PAIRS


def test_no_matches(run: Run, subscriptions: Path, write: Write) -> None:
    result = run("match", write("other.jsonl", [{"price": 5, "category": "Lamp"}]), "-s", subscriptions)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "!" not in result.stderr


def test_no_events(run: Run, subscriptions: Path, write: Write) -> None:
    none = write("none.jsonl", "")
    result = run("match", none, "-s", subscriptions)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == f"error: there is no event in {none}\n"
    some = write("some.jsonl", EVENTS)
    assert run("match", none, some, none, "-s", subscriptions).exit_code == 0


def test_events_without_anything_that_is_asked_for(run: Run, subscriptions: Path, write: Write) -> None:
    events = write("other.jsonl", [{"Price": 3, "weight": 1}, {"colour": "red"}])
    result = run("match", events, "-s", subscriptions)
    assert (result.exit_code, result.stdout) == (0, "")
    told = result.stderr.splitlines()
    assert told[0] == f"! {events}"
    assert told[1].endswith("subscriptions can never match these events:")
    assert any("`price` is no column" in line and "did you mean `Price`?" in line for line in told)
    assert any("`category` is no column" in line for line in told)
    piped = run("match", "-", "-s", subscriptions, "--json", input=events.read_bytes())
    warning, _ = lines(piped.stderr)
    assert (warning["kind"], warning["severity"], warning["file"]) == ("event", "warning", "standard input")


def test_one_event_with_what_is_asked_for_is_enough(run: Run, subscriptions: Path, write: Write) -> None:
    events = write("other.jsonl", [*({"weight": n} for n in range(100)), {"category": "Lamp"}, {"price": 3}])
    assert "!" not in run("match", events, "-s", subscriptions, "--batch-size", 40).stderr


def test_subscriptions_that_fit_no_event_are_told_also_beside_others(run: Run, write: Write) -> None:
    rules = {
        "typo": "prise > 1",
        "case": "PRICE > 1",
        "text": "price > '1'",
        "good": "price > 1",
        "either": "x = 1 OR y = 1",
    }
    events = write("events.jsonl", [{"price": 3, "y": 1}, {"price": 4}])
    wheres = write("rules.jsonl", [{"id": id, "where": where} for id, where in rules.items()])
    result = run("match", events, "-s", wheres)
    assert len(lines(result.stdout)) == 3
    assert "3 of 5 subscriptions can never match these events, and 1 of 5 subscriptions" in result.stderr
    assert "`price` is of type number: 1 subscription compares it with a string ('text')" in result.stderr
    quiet = write("quiet.jsonl", [{"id": "none", "where": "error IS NULL AND price > 1"}])
    assert "!" not in run("match", events, "-s", quiet).stderr


def test_strings_beside_timestamps_are_read_and_those_that_are_none_are_told(run: Run, write: Write) -> None:
    times = ["2026-02-01T10:00:00Z", "never", "2026-02-01"]
    events = write("events.jsonl", [{"at": at, "day": "1 February"} for at in times])
    rules = {"new": "at > TIMESTAMP '2026-01-01 00:00:00'", "none": "day > DATE '2026-01-01'"}
    wheres = write("rules.jsonl", [{"id": id, "where": where} for id, where in rules.items()])
    result = run("match", events, "-s", wheres)
    assert lines(result.stdout) == [{"event": 0, "subscription": "new"}]
    assert "`at` is compared with a timestamp, and 2 strings are not full ISO 8601 timestamps" in result.stderr
    assert "`day` is compared with a date, and 3 strings are not full ISO 8601 dates" in result.stderr
    never = "`day` is of type string: 1 subscription compares it with a date ('none'); none is a full ISO 8601 date"
    assert "1 of 2 subscriptions can never match these events:" in result.stderr
    assert never in result.stderr


def test_an_input_that_may_not_end_is_judged_by_its_first_events(run: Run, write: Write) -> None:
    wheres = write("rules.jsonl", [{"id": "a", "where": "code = 4625"}, {"id": "b", "where": "rare = 1"}])
    piped = "\n".join(json.dumps({"code": "4625"}) for _ in range(1_500)).encode()
    result = run("match", "-", "-s", wheres, "--json", "--batch-size", "600", input=piped)
    first, second, _ = lines(result.stderr)
    assert "`code` is of type string" in first["message"]
    assert "`rare`" not in first["message"]
    assert "`rare` is no column" in second["message"]
    assert "`code`" in second["message"]  # all that is wrong, once there is more


# A saved engine


def test_a_saved_engine_gives_the_same(run: Run, events: Path, subscriptions: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    first = run("match", events, "-s", subscriptions, "--save", saved)
    again = run("match", events, "-s", saved)
    assert again.stdout == first.stdout
    assert lines(again.stdout)[0]["owner"] == "Alice"
    assert run("match", events, "-s", saved, "--algorithm", "naive").exit_code == 3


def test_a_saved_engine_does_not_visit_every_subscription(
    run: Run, events: Path, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million of them took the command line twenty times as long as `Engine.load` does."""
    records = [*SUBSCRIPTIONS, *({"id": str(n), "where": f"price = -{n + 1}", "owner": f"O{n}"} for n in range(200))]
    saved = tmp_path / "saved"
    expected = run("match", events, "-s", write("many.jsonl", records), "--save", saved).stdout
    made = []
    subscription = catalogue._subscription
    monkeypatch.setattr(catalogue, "_subscription", lambda *row: made.append(row) or subscription(*row))
    assert run("match", events, "-s", saved).stdout == expected
    assert {row[1] for row in made} == {"alice", "bob"}


# Names of events


def test_events_are_named_by_a_field(run: Run, subscriptions: Path, write: Write) -> None:
    events = write("nested.jsonl", [{"price": 9, "head": {"number": 17}}, {"price": 8, "head": {"number": 18}}])
    result = run("match", events, "-s", subscriptions, "--event-id", "head.number")
    assert pairs(result.stdout) == [(17, "bob"), (18, "bob")]


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl"])
@pytest.mark.parametrize("name", ["head.number", "head.text", "position"])
def test_columns_stay_columns(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, name: str
) -> None:
    """Only an event that is verified becomes a Python object."""
    rows = [{"price": n, "head": {"number": n, "text": f"t{n}"}, "at": "2026-07-01"} for n in range(100)]
    events = write("events.jsonl", rows) if ending == "jsonl" else put(tmp_path, "events", rows, ending)
    where = "head.number < 2 AND head.text = 't{}' AND at > '2026'"
    subscriptions = write("own.jsonl", [{"id": f"x{n}", "where": where.format(n)} for n in range(1, 1_000)])

    made: list[Any] = []
    own = Event.of
    monkeypatch.setattr(Event, "of", lambda *raw: made.append(raw) or own(*raw))
    named = [] if name == "position" else ["--event-id", name]
    result = run("match", events, "-s", subscriptions, *named)
    assert pairs(result.stdout) == [("t1" if name == "head.text" else 1, "x1")]
    assert made == [], "and with so many subscriptions that they are indexed at once, none is"


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_a_name_that_some_events_lack(run: Run, subscriptions: Path, write: Write, tmp_path: Path, ending: str) -> None:
    rows = [{"price": 9, "order": None if n == 3 else n, "text": None if n == 3 else str(n)} for n in range(50)]
    events = write("events.jsonl", rows) if ending == "jsonl" else put(tmp_path, "events", rows, ending)
    for name, expected in (("order", list(range(50))), ("text", list(map(str, range(50))))):
        result = run("match", events, "-s", subscriptions, "--event-id", name)
        assert pairs(result.stdout) == [(each, "bob") for place, each in enumerate(expected) if place != 3]
        assert f"`{name}`, by which events are named, is missing" in result.stderr


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ({}, "is missing"),
        ({"order": ["A", "B"]}, "has several values"),
        ({"order": {"x": 1}}, "is an object"),
        ({"order": 7}, "is of type int, but was of type str before"),
    ],
)
def test_an_event_without_a_usable_name_is_rejected(
    run: Run, subscriptions: Path, write: Write, field: dict[str, Any], reason: str
) -> None:
    events = write("events.jsonl", [{"price": 9, "order": "A1"}, {"price": 9, **field}, {"price": 9, "order": "A3"}])
    result = run("match", events, "-s", subscriptions, "--event-id", "order")
    assert pairs(result.stdout) == [("A1", "bob"), ("A3", "bob")]
    assert f"`order`, by which events are named, {reason}" in result.stderr
    assert "3 events (1 rejected)" in result.stderr


def test_a_field_that_cannot_be_is_wrong_usage(run: Run, events: Path, subscriptions: Path) -> None:
    result = run("match", events, "-s", subscriptions, "--event-id", "a..b")
    assert result.exit_code == 2
    assert "--event-id" in result.stderr


def test_fields_called_like_our_columns_are_renamed(run: Run, events: Path, write: Write) -> None:
    record = {"id": "x", "where": "price < 5", "event": 1, "event_": 2, "subscription": 3}
    row = lines(run("match", events, "-s", write("s.jsonl", [record])).stdout)[0]
    assert row == {"event": 0, "subscription": "x", "event__": 1, "event_": 2, "subscription_": 3}


# Rejections


def test_bad_lines_in_the_middle_are_reported_and_the_rest_goes_on(run: Run, write: Write) -> None:
    events = write("events.jsonl", '{"price": 1}\n{"price": \n[1]\n{"price": 2}\n')
    subscriptions = write(
        "s.jsonl", '{"id": "a", "where": "price > 0"}\n{"id": "b", "where": "price >"}\nnot json\n{"id": "c"}\n'
    )
    result = run("match", events, "-s", subscriptions)
    assert result.exit_code == 0
    assert pairs(result.stdout) == [(0, "a"), (3, "a")]
    assert "events.jsonl, line 2, column 10, event 1" in result.stderr
    assert "s.jsonl, line 2, subscription 'b'" in result.stderr
    assert "the subscription has no `where`" in result.stderr
    assert "4 events (2 rejected) · 1 subscription (3 rejected) · 2 matches" in result.stderr


def test_strict_turns_rejections_into_an_exit_code(run: Run, events: Path, subscriptions: Path, write: Write) -> None:
    assert run("match", events, "-s", subscriptions, "--strict").exit_code == 0
    bad = write("bad.jsonl", '{"price": 9}\n{')
    result = run("match", bad, "-s", subscriptions, "--strict")
    assert result.exit_code == 1
    assert pairs(result.stdout) == [(0, "bob")]


def test_only_the_first_rejections_are_shown_but_all_are_kept(
    run: Run, subscriptions: Path, write: Write, tmp_path: Path
) -> None:
    events = write("events.jsonl", "{\n" * 12 + '{"price": 9}\n')
    rejected = tmp_path / "rejected.jsonl"
    result = run("match", events, "-s", subscriptions)
    assert result.stderr.count("✗") == 5
    assert "… and 7 more rejected events; --rejected FILE writes all of them" in result.stderr
    assert "--rejected" not in run("match", events, "-s", subscriptions, "--rejected", rejected).stderr
    kept = lines(rejected.read_text())
    assert [(each["kind"], each["position"]) for each in kept] == [("event", position) for position in range(12)]
    assert kept[0]["error"] == "DecodeError"


def test_rejected_subscriptions_are_kept_too(run: Run, events: Path, write: Write, tmp_path: Path) -> None:
    subscriptions = write("s.jsonl", [*SUBSCRIPTIONS, {"id": "carol", "where": "price >"}])
    rejected = tmp_path / "rejected.jsonl"
    run("match", events, "-s", subscriptions, "--rejected", rejected)
    (kept,) = lines(rejected.read_text())
    assert (kept["kind"], kept["position"], kept["id"], kept["file_line"]) == ("subscription", 2, "carol", 3)
    assert (kept["line"], kept["column"]) == (1, 8)


def test_duplicate_ids(run: Run, events: Path, write: Write) -> None:
    twice = [{"id": "x", "where": "price < 5", "n": 1}, {"id": "x", "where": "price > 20", "n": 2}]
    subscriptions = write("s.jsonl", twice)
    first = run("match", events, "-s", subscriptions)
    assert [(row["event"], row["n"]) for row in lines(first.stdout)] == [(0, 1)]
    assert "the id 'x' is taken" in first.stderr
    assert "--replace" in first.stderr
    last = run("match", events, "-s", subscriptions, "--replace")
    assert [(row["event"], row["n"]) for row in lines(last.stdout)] == [(1, 2)]
    assert "taken" not in last.stderr


def test_a_warning_is_no_rejection(run: Run, events: Path, write: Write) -> None:
    always = write("s.jsonl", [{"id": "all", "where": "price IS NULL OR price IS NOT NULL"}])
    result = run("match", events, "-s", always, "--strict")
    assert result.exit_code == 0
    assert "! " in result.stderr
    assert "always true" in result.stderr


# JSON


def test_with_json_both_streams_parse(run: Run, write: Write) -> None:
    events = write("events.jsonl", '{"price": 9}\n{\n')
    subscriptions = write("s.jsonl", [*SUBSCRIPTIONS, {"id": "bob", "where": "price > 1"}])
    result = run("match", events, "-s", subscriptions, "--json", "-vv")
    assert pairs(result.stdout) == [(0, "bob")]
    told = lines(result.stderr)
    assert {each["kind"] for each in told} == {"log", "subscription", "event", "summary"}
    summary = told[-1]
    expected = {"events": 2, "rejected_events": 1, "subscriptions": 2, "rejected_subscriptions": 1, "matches": 1}
    assert {name: summary[name] for name in expected} == expected
    assert summary["seconds"] > 0
    assert summary["events_per_second"] > 0


def test_errors_as_json(run: Run, events: Path, subscriptions: Path) -> None:
    result = run("match", events, "-s", subscriptions, "--algorithm", "nave", "--json")
    (error,) = lines(result.stderr)
    assert error["kind"] == "error"
    assert error["error"] == "CapabilityError"
    assert "`naive`" in error["hint"]


# Nothing can be done


def test_an_unknown_algorithm(run: Run, events: Path, subscriptions: Path) -> None:
    result = run("match", events, "-s", subscriptions, "--algorithm", "nave")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: there is no algorithm `nave`\nhint: did you mean `naive`?\n"


@pytest.mark.parametrize("missing", ["events", "subscriptions", "schema"])
def test_a_missing_file(run: Run, events: Path, subscriptions: Path, tmp_path: Path, missing: str) -> None:
    given = {"events": events, "subscriptions": subscriptions} | {missing: tmp_path / "nosuch.jsonl"}
    options = ["--schema", given["schema"]] if "schema" in given else []
    result = run("match", given["events"], "-s", given["subscriptions"], *options)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "nosuch.jsonl" in result.stderr
    assert result.stderr.startswith("error: ")


def test_a_format_that_is_not_known(run: Run, subscriptions: Path, write: Write) -> None:
    result = run("match", write("events.txt", ""), "-s", subscriptions)
    assert result.exit_code == 3
    assert "hint: " in result.stderr
    result = run("match", write("events.txt", ""), "-s", subscriptions, "--format", "jsonnl")
    assert "did you mean `jsonl`" in result.stderr


def test_a_bad_schema(run: Run, events: Path, subscriptions: Path, write: Write) -> None:
    result = run("match", events, "-s", subscriptions, "--schema", write("s.toml", '[attributes]\nprice = "flot"\n'))
    assert result.exit_code == 3
    assert "s.toml, line 2, column 1" in result.stderr
    assert "did you mean `float`" in result.stderr


def test_no_usable_subscription(run: Run, events: Path, write: Write, tmp_path: Path) -> None:
    rejected = tmp_path / "rejected.jsonl"
    result = run("match", events, "-s", write("s.jsonl", "{\n{\n"), "--rejected", rejected)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "has no subscription that can be used" in result.stderr
    assert len(lines(rejected.read_text())) == 2
    result = run("match", events, "-s", write("empty.jsonl", ""))
    assert result.exit_code == 3
    assert "has no subscriptions" in result.stderr


def test_wrong_usage(run: Run, events: Path, subscriptions: Path) -> None:
    before = events.read_bytes()
    for arguments in (
        ["match"],
        ["match", events],
        ["match", events, "-s", subscriptions, "--batch-size", 0],
        ["match", events, "-s", subscriptions, "-o", events],
        ["match", events, "-s", subscriptions, "--rejected", subscriptions],
        ["match", "-", "-s", "-"],
    ):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, ""), arguments
    assert events.read_bytes() == before


def test_an_internal_error_is_one_line(
    run: Run, events: Path, subscriptions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the wheel\ncame off")

    monkeypatch.setattr("harken.cli.matching_files.run", broken)
    result = run("match", events, "-s", subscriptions)
    assert result.exit_code == 70
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("internal error: RuntimeError: the wheel. ")
    assert "report" in result.stderr
    assert "Traceback" in run("match", events, "-s", subscriptions, "-v").stderr
    assert "Traceback" in lines(run("match", events, "-s", subscriptions, "-v", "--json").stderr)[0]["traceback"]


def test_control_codes_from_outside_do_not_reach_the_terminal(run: Run, events: Path, write: Write) -> None:
    nasty = "\x1b[2J"
    subscriptions = write("s.jsonl", [{"id": nasty, "where": f"price > 5 {nasty}"}, {"id": "b", "where": "price > 5"}])
    assert "\x1b" not in run("match", events, "-s", subscriptions).output


def test_what_no_subscription_asks_for_is_not_looked_at(run: Run, subscriptions: Path, tmp_path: Path) -> None:
    events = put(tmp_path, "events", [{**event, "photo": [b"?"]} for event in EVENTS], "parquet")
    command = ["match", events, "--subscriptions", subscriptions]
    assert pairs(run(*command).stdout) == PAIRS
    assert pairs(run(*command, "--event-id", "order").stdout) == [("A1", "alice"), ("A2", "bob"), ("A3", "bob")]
    rejected = run(*command, "--event-id", "photo")
    assert rejected.exit_code != 0
    assert "`photo` has the Arrow type binary" in rejected.stderr


# Texts in place of files


def test_a_text_is_matched_by_itself(run: Run, events: Path) -> None:
    result = run("match", events, "--where", "price > 5")
    assert result.exit_code == 0
    assert lines(result.stdout) == [
        {"event": 1, "subscription": "price > 5"},
        {"event": 2, "subscription": "price > 5"},
    ]
    assert "1 subscription" in result.stderr


def test_several_texts_are_told_apart_by_themselves(run: Run, events: Path) -> None:
    texts = ["category = 'Toy'", "price > 5", "category = 'Toy'"]
    result = run("match", events, *(word for text in texts for word in ("--where", text)))
    assert result.exit_code == 0
    found = {(each["event"], each["subscription"]) for each in lines(result.stdout)}
    assert found == {(0, texts[0]), (2, texts[0]), (1, texts[1]), (2, texts[1])}


def test_a_text_and_events_from_standard_input(program: Program) -> None:
    shown = program("match", "-", "--where", "price > 5", input='{"price": 9}\n{"price": 1}\n')
    assert shown.returncode == 0
    assert lines(shown.stdout) == [{"event": 0, "subscription": "price > 5"}]


def test_a_text_in_another_language(run: Run, write: Write) -> None:
    document = write("doc.xml", "<a><b>x</b></a>")
    result = run("match", document, "--where", "/a[b = 'x']", "--language", "xpath")
    assert lines(result.stdout) == [{"event": 0, "subscription": "/a[b = 'x']"}]


def test_a_text_may_be_saved(run: Run, events: Path, tmp_path: Path) -> None:
    assert run("match", events, "--where", "price > 5", "--save", tmp_path / "index").exit_code == 0
    assert len(lines(run("match", events, "-s", tmp_path / "index").stdout)) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [("price >", "the text ends too early"), ("", "the text is empty"), ("price ADN 5", "line 1, column 7")],
)
def test_a_faulty_text_ends_the_command_with_its_place(run: Run, events: Path, text: str, message: str) -> None:
    result = run("match", events, "--where", "price > 5", "--where", text)
    assert result.exit_code == 3
    assert message in result.stderr
    assert result.stdout == ""


def test_a_text_that_is_always_true_is_warned_of(run: Run, events: Path) -> None:
    assert "it is always true" in run("match", events, "--where", "TRUE").stderr


@pytest.mark.parametrize("arguments", [[], ["-s", "x.jsonl", "--where", "price > 5"]])
def test_texts_or_files(run: Run, events: Path, arguments: list[str]) -> None:
    result = run("match", events, *arguments)
    assert result.exit_code == 2
    assert "give one of them" in result.stderr
    assert "--subscriptions or --where" in result.stderr


def test_a_language_belongs_to_a_text(run: Run, events: Path, subscriptions: Path) -> None:
    result = run("match", events, "-s", subscriptions, "--language", "xpath")
    assert result.exit_code == 2
    assert "only for --where" in result.stderr


def test_a_text_where_a_file_belongs(run: Run, events: Path) -> None:
    result = run("match", events, "-s", "price > 5")
    assert result.exit_code == 3
    assert "hint: it reads like a condition: match and explain take one as --where" in result.stderr
