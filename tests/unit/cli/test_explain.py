"""`harken explain`: the tree, and which subscription and event it is about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run, Write


def test_a_match_by_id(run: Run, events: Path, subscriptions: Path) -> None:
    result = run("explain", events, "--subscriptions", subscriptions, "--id", "alice")
    assert result.exit_code == 0
    assert result.stdout == (
        "matches\n✓ AND\n  ✓ category = 'Toy'   (category is 'Toy')\n  ✓ price < 5   (price is 3.5)\n"
    )


def test_a_miss_by_text(run: Run) -> None:
    result = run("explain", "--event-json", '{"price": 7}', "--where", "price < 5 OR qty = 2")
    assert result.exit_code == 0
    assert result.stdout == ("does not match\n? OR\n  ✗ price < 5   (price is 7)\n  ? qty = 2   (qty is missing)\n")


def test_as_json(run: Run) -> None:
    result = run("explain", "--event-json", '{"price": 7}', "--where", "price < 5", "--json")
    tree = {"text": "price < 5", "truth": False, "values": [{"attribute": "price", "values": [7]}]}
    assert json.loads(result.stdout) == {"matched": False, "tree": tree}


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ([], "3.5"),
        (["--event", "1"], "30"),
        (["--event-id", "order=A3"], "7"),
        (["--event-id", "price=30"], "30"),
    ],
)
def test_the_event_that_is_chosen(run: Run, events: Path, options: list[str], value: str) -> None:
    assert f"(price is {value})" in run("explain", events, "--where", "price < 5", *options).stdout


def test_positions_count_refused_events(run: Run, write: Write) -> None:
    events = write("e.jsonl", '{"price": 1}\n{\n{"price": 2}\n')
    assert "price is 2" in run("explain", events, "--event", 2, "--where", "price < 5").stdout
    result = run("explain", events, "--event", 1, "--where", "price < 5")
    assert result.exit_code == 3
    assert "e.jsonl, line 2" in result.stderr


def test_with_a_schema(run: Run, write: Write) -> None:
    schema = write("schema.toml", '[attributes]\nsold = "timestamp"\n')
    event = '{"sold": "2026-01-02T03:04:05Z"}'
    where = "sold > TIMESTAMP '2026-01-01 00:00:00'"
    assert run("explain", "--event-json", event, "--where", where, "--schema", schema).stdout.startswith("matches\n")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--id", "alise"], "did you mean `alice`?"),
        (["--id", "alice", "--event", "3"], "there is no event 3"),
        (["--id", "alice", "--event-id", "order=B1"], "has no event with order=B1"),
    ],
)
def test_what_is_not_there(run: Run, events: Path, subscriptions: Path, options: list[str], told: str) -> None:
    result = run("explain", events, "-s", subscriptions, *options)
    assert (result.exit_code, result.stdout) == (3, "")
    assert told in result.stderr


def test_what_is_wrong_in_itself(run: Run, events: Path, write: Write) -> None:
    result = run("explain", events, "--where", "price <")
    assert result.exit_code == 3
    assert "price <\n         ^" in result.stderr
    subscriptions = write("s.jsonl", [{"id": "a"}])
    assert "has no `where`" in run("explain", events, "-s", subscriptions, "--id", "a").stderr
    assert "not JSON" in run("explain", "--event-json", "{", "--where", "price < 1").stderr


def test_wrong_usage(run: Run, events: Path, subscriptions: Path) -> None:
    for options in (
        [events],
        [events, "--id", "alice"],
        [events, "-s", subscriptions],
        [events, "-s", subscriptions, "--id", "alice", "--where", "x = 1"],
        ["--where", "x = 1"],
        [events, "--event-json", "{}", "--where", "x = 1"],
        [events, "--event", 1, "--event-id", "a=1", "--where", "x = 1"],
        ["--event", 1, "--event-json", "{}", "--where", "x = 1"],
        [events, "--event-id", "order", "--where", "x = 1"],
        [events, "--event", -1, "--where", "x = 1"],
    ):
        assert run("explain", *options).exit_code == 2, options


def test_control_codes_do_not_reach_the_terminal(run: Run) -> None:
    event = json.dumps({"name": "\x1b[2Jx"})
    assert "\x1b" not in run("explain", "--event-json", event, "--where", "name = 'x'").stdout
