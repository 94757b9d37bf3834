"""`harken check`: every fault, with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from .conftest import Run, Write, lines

SCHEMA = '[attributes]\ncategory = "string"\nprice = "float"\norder = "string"\n'
BAD_SCHEMA = '[attributes]\nprice = "flot"\nweight = "flaot"\n'


def test_good_input(run: Run, events: Path, subscriptions: Path, write: Write) -> None:
    result = run("check", "-s", subscriptions, "-e", events, "--schema", write("schema.toml", SCHEMA))
    assert (result.exit_code, result.stdout) == (0, "0 faults in 2 subscriptions and 3 events\n")


def test_every_fault_is_listed_with_its_place(run: Run, write: Write) -> None:
    subscriptions = write(
        "s.jsonl",
        '{"id": "a", "where": "pric < 5 AND categry = 1"}\n'
        '{"id": "b", "where": "price <"}\n'
        "nonsense\n"
        '{"id": "b", "where": "price < 1 AND price > 2"}\n'
        '{"id": "c", "where": "price < 1", "language": "datalog"}\n',
    )
    events = write("e.jsonl", '{"price": "dear"}\n{"price": 1}\n{"colour": 1}\n')
    result = run("check", "-s", subscriptions, "-e", events, "--schema", write("schema.toml", SCHEMA), "--json")
    assert result.exit_code == 1
    *found, summary = lines(result.stdout)
    assert [(each["kind"], each["position"], each.get("id"), each["error"]) for each in found[:7]] == [
        ("subscription", 0, "a", "CheckError"),
        ("subscription", 0, "a", "CheckError"),
        ("subscription", 1, "b", "ParseError"),
        ("subscription", 2, None, "DecodeError"),
        ("subscription", 3, "b", "DuplicateIdError"),
        ("subscription", 3, "b", "ContradictionError"),
        ("subscription", 4, "c", "UnavailableError"),
    ]
    assert [(each["line"], each["column"], each["file_line"]) for each in found[:2]] == [(1, 1, 1), (1, 14, 1)]
    assert found[0]["hint"] == "did you mean `price`?"
    rejected = [each for each in found if each["kind"] == "event"]
    assert (rejected[0]["position"], rejected[0]["line"], rejected[0]["file"]) == (0, 1, str(events))
    assert summary["kind"] == "summary"
    assert summary["faults"] == len(found)
    assert (summary["subscriptions"], summary["events"], summary["schema_ignored"]) == (5, 3, False)


def test_the_text_for_people(run: Run, write: Write) -> None:
    subscriptions = write("s.jsonl", '\n{"id": "a", "where": "price < 5\\n AND qty >"}\n')
    result = run("check", "--subscriptions", subscriptions)
    assert result.stdout == (
        f"✗ {subscriptions}, line 2, subscription 'a'\n"
        "  the text ends too early (line 2, column 11)\n"
        "     AND qty >\n"
        "              ^\n"
        "  hint: expected an attribute or a value or `(`\n"
        "1 fault in 1 subscription\n"
    )


def test_warnings_are_no_faults(run: Run, write: Write) -> None:
    subscriptions = write("s.jsonl", [{"id": "all", "where": "x IS NULL OR x IS NOT NULL"}])
    result = run("check", "-s", subscriptions)
    assert result.exit_code == 0
    assert "always true" in result.stdout
    assert "0 faults, 1 warning in 1 subscription" in result.stdout
    warning, summary = lines(run("check", "-s", subscriptions, "--json").stdout)
    assert (warning["severity"], warning["id"], warning["file_line"]) == ("warning", "all", 1)
    assert "error" not in warning
    assert (summary["faults"], summary["warnings"]) == (0, 1)


def test_a_faulty_schema_does_not_stop_the_rest(run: Run, write: Write) -> None:
    subscriptions = write("s.jsonl", [{"id": "a", "where": "anything < 5"}, {"id": "b", "where": "anything <"}])
    schema = write("schema.toml", BAD_SCHEMA)
    result = run("check", "-s", subscriptions, "--schema", schema)
    assert result.exit_code == 1
    assert "schema.toml, line 2, column 1" in result.stdout
    assert "schema.toml, line 3, column 1" in result.stdout
    assert "subscription 'a'" not in result.stdout
    assert "subscription 'b'" in result.stdout
    assert "The schema cannot be used: subscriptions were checked without it." in result.stdout
    *found, summary = lines(run("check", "-s", subscriptions, "--schema", schema, "--json").stdout)
    assert [each["kind"] for each in found] == ["schema", "schema", "subscription"]
    assert summary["schema_ignored"]


def test_a_schema_alone(run: Run, write: Write) -> None:
    assert run("check", "--schema", write("good.toml", SCHEMA)).stdout == "0 faults in the schema\n"
    assert run("check", "--schema", write("bad.toml", BAD_SCHEMA)).exit_code == 1
    result = run("check", "--schema", write("worse.toml", "[attributes\n"))
    assert result.exit_code == 1
    assert "not TOML" in result.stdout


@pytest.mark.parametrize("option", ["--subscriptions", "--events", "--schema"])
def test_a_file_that_cannot_be_read_does_not_stop_the_rest(run: Run, write: Write, tmp_path: Path, option: str) -> None:
    given = {"--subscriptions": write("s.jsonl", "{\n"), "--events": write("e.jsonl", "{\n")}
    given[option] = tmp_path / "nosuch.jsonl"
    result = run("check", *(part for pair in given.items() for part in pair))
    assert result.exit_code == 3
    assert f"{given[option]}\n" in result.stdout
    assert result.stdout.count("this is not JSON") == len(given) - 1


def test_events_without_lines(run: Run, tmp_path: Path) -> None:
    events = tmp_path / "e.parquet"
    pa.parquet.write_table(pa.table({"price": [1.0, float("nan")], "n": [2**60, 2**61]}), events)
    assert run("check", "-e", events).exit_code == 0
    schema = tmp_path / "schema.toml"
    schema.write_text('[attributes]\nprice = "string"\nn = "integer"\n')
    result = run("check", "-e", events, "--schema", schema)
    assert result.exit_code == 1
    assert f"✗ {events}, event 0" in result.stdout


def test_nothing_to_check(run: Run) -> None:
    assert run("check").exit_code == 2
    assert run("check", "-s", "-", "-e", "-").exit_code == 2


def test_no_events_and_no_subscriptions(run: Run, write: Write) -> None:
    empty = write("empty.jsonl", "")
    for option, what in (("-e", "event"), ("-s", "subscription")):
        result = run("check", option, empty)
        assert result.exit_code == 3
        assert f"there is no {what} in {empty}" in result.stdout


def test_several_files(run: Run, write: Write, tmp_path: Path) -> None:
    first = write("s1.jsonl", [{"id": "a", "where": "price < 5"}])
    second = write("s2.jsonl", [{"id": "a", "where": "price < 5"}, {"id": "b", "where": "price <"}])
    write("e1.jsonl", [{"price": 1}])
    bad = write("e2.jsonl", "{\n")
    result = run("check", "-s", first, "-s", second, "-e", tmp_path / "e*.jsonl", "--json")
    *found, summary = lines(result.stdout)
    assert [(each["file"], each["file_line"] if "file_line" in each else each["line"]) for each in found] == [
        (str(second), 1),
        (str(second), 2),
        (str(bad), 1),
    ]
    assert (summary["subscriptions"], summary["events"]) == (3, 2)
    result = run("check", "-s", first, "-e", tmp_path / "none*.jsonl")
    assert result.exit_code == 3
    assert "no file fits the pattern" in result.stdout


def test_a_saved_engine(run: Run, events: Path, write: Write, tmp_path: Path) -> None:
    schema = write("schema.toml", SCHEMA)
    subscriptions = write("s.jsonl", [{"id": "a", "where": "price < 5"}, {"id": "b", "where": "category = 'Toy'"}])
    saved = tmp_path / "saved"
    run("match", events, "-s", subscriptions, "--schema", schema, "--save", saved)
    assert run("check", "-s", saved, "-e", events).stdout == "0 faults in 2 subscriptions and 3 events\n"
    bad = write("bad.jsonl", [{"price": "dear"}])
    assert run("check", "-s", saved, "-e", bad).exit_code == 1, "events are checked against the engine's schema"
    other = write("other.toml", '[attributes]\nprice = "float"\n')
    result = run("check", "-s", saved, "--schema", other)
    assert result.exit_code == 1
    assert f"✗ {saved}, subscription 'b'\n" in result.stdout


def test_warnings_that_say_the_same_are_one(run: Run, write: Write) -> None:
    asking = [{"id": f"s{n}", "where": "prise < 5"} for n in range(6)]
    subscriptions = write("s.jsonl", [*asking, {"id": "type", "where": "price = 'five'"}])
    events = write("e.jsonl", [{"price": 3}])
    result = run("check", "-s", subscriptions, "-e", events)
    assert result.stdout == (
        "! 6 subscriptions\n"
        "  none of the 1 events has `prise`\n"
        "  hint: did you mean `price`?\n"
        f"  {subscriptions}, line 1, subscription 's0'\n"
        f"  {subscriptions}, line 2, subscription 's1'\n"
        f"  {subscriptions}, line 3, subscription 's2'\n"
        "  … and 3 more; -v lists all of them\n"
        f"! {subscriptions}, line 7, subscription 'type'\n"
        "  `price` is a number in all events, which does not compare with a string\n"
        "0 faults, 7 warnings in 7 subscriptions and 1 event\n"
    )
    assert run("check", "-s", subscriptions, "-e", events, "-v").stdout.count("! ") == 7
    assert len(lines(run("check", "-s", subscriptions, "-e", events, "--json").stdout)) == 8


def test_there_is_an_end_to_groups_of_warnings(run: Run, write: Write) -> None:
    subscriptions = write("s.jsonl", [{"id": str(n), "where": f"a{n} < 5"} for n in range(30)])
    result = run("check", "-s", subscriptions, "-e", write("e.jsonl", [{"price": 3}]))
    assert result.stdout.count("! ") == 20
    assert "… and 10 more warnings; -v lists all of them\n0 faults, 30 warnings in" in result.stdout


def test_subscriptions_that_ask_for_what_no_event_has(run: Run, write: Write) -> None:
    subscriptions = write(
        "doubts.jsonl",
        """\
{"id": "typo", "where": "prise < 5"}
{"id": "type", "where": "new = 'true'"}
{"id": "quotes", "where": "colour = red"}
{"id": "fine", "where": "price < 5 AND new AND item.size = 2 AND gone IS NULL"}
""",
    )
    events = write("events.jsonl", '{"price": 3, "new": true, "colour": "red", "item": [{"size": 2}]}\n')
    result = run("check", "-s", subscriptions, "-e", events, "--json")
    *warnings, summary = map(json.loads, result.stdout.splitlines())
    told = [(each["id"], each["message"], each.get("hint")) for each in warnings]
    assert told == [
        ("typo", "none of the 1 events has `prise`", "did you mean `price`?"),
        ("type", "`new` is a boolean in all events, which does not compare with a string", None),
        ("quotes", "none of the 1 events has `red`", "if a string is meant, it is written in single quotes: 'red'"),
    ]
    assert (summary["warnings"], summary["faults"], result.exit_code) == (3, 0, 0)
