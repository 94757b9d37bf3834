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
        (["--event-id", "order", "--event", "A3"], "7"),
        (["--event-id", "price", "--event", "30"], "30"),
    ],
)
def test_the_event_that_is_chosen(run: Run, events: Path, options: list[str], value: str) -> None:
    assert f"(price is {value})" in run("explain", events, "--where", "price < 5", *options).stdout


def test_positions_count_rejected_events(run: Run, write: Write) -> None:
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
        (["--id", "alice", "--event-id", "order", "--event", "B1"], "has no event with order = B1"),
    ],
)
def test_what_is_not_there(run: Run, events: Path, subscriptions: Path, options: list[str], told: str) -> None:
    result = run("explain", events, "-s", subscriptions, *options)
    assert (result.exit_code, result.stdout) == (3, "")
    assert told in result.stderr


def test_a_saved_engine(run: Run, events: Path, subscriptions: Path, tmp_path: Path, write: Write) -> None:
    saved = tmp_path / "saved"
    run("match", events, "-s", subscriptions, "--save", saved)
    expected = run("explain", events, "-s", subscriptions, "--id", "alice").stdout
    assert run("explain", events, "-s", saved, "--id", "alice").stdout == expected
    assert "did you mean `alice`?" in run("explain", events, "-s", saved, "--id", "alise").stderr
    schema = write("schema.toml", '[attributes]\nprice = "float"\n')
    result = run("explain", events, "-s", saved, "--id", "alice", "--schema", schema)
    assert result.exit_code == 3
    assert "leave out --schema" in result.stderr


def test_the_schema_of_a_saved_engine(run: Run, write: Write, tmp_path: Path) -> None:
    schema = write("schema.toml", '[attributes]\nsold = "timestamp"\n')
    events = write("sales.jsonl", [{"sold": "2026-01-02T03:04:05Z"}])
    subscriptions = write("new.jsonl", [{"id": "new", "where": "sold > TIMESTAMP '2026-01-01 00:00:00'"}])
    saved = tmp_path / "saved"
    run("match", events, "-s", subscriptions, "--schema", schema, "--save", saved)
    assert run("explain", events, "-s", saved, "--id", "new").stdout.startswith("matches\n")


def test_an_event_of_several_files(run: Run, events: Path, write: Write) -> None:
    more = write("more.jsonl", [{"price": 40}, {"price": 50}])
    assert "(price is 50)" in run("explain", events, more, "--event", 4, "--where", "price < 5").stdout
    result = run("explain", events, more, "--event", 5, "--where", "price < 5")
    assert f"there is no event 5: {events} and 1 more has 5 events, counted from 0" in result.stderr


# The plan


def test_a_plan_says_what_was_rejected(run: Run, events: Path, write: Write) -> None:
    bad = [{"id": f"bad{n}", "where": "price <"} for n in range(7)]
    subscriptions = write("s.jsonl", [{"id": "good", "where": "price < 5"}, *bad])
    result = run("explain", events, "-s", subscriptions, "--plan")
    assert result.exit_code == 0
    assert result.stdout.startswith("1 subscription (7 rejected) in 1 row,")
    assert result.stderr.count("✗ ") == 5
    assert f"✗ {subscriptions}, line 2, subscription 'bad0'\n  the text ends too early" in result.stderr
    assert "… and 2 more rejected subscriptions; `harken check` lists all of them" in result.stderr
    assert json.loads(run("explain", "-s", subscriptions, "--plan", "--json").stdout)["rejected"] == 7
    result = run("explain", "-s", write("bad.jsonl", bad), "--plan")
    assert result.exit_code == 3
    assert "has no subscription that can be used" in result.stderr


def test_the_plan_of_a_saved_engine(run: Run, events: Path, subscriptions: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    run("match", events, "-s", subscriptions, "--save", saved)
    result = run("explain", events, "-s", saved, "--plan")
    assert result.exit_code == 0
    assert result.stdout.startswith("2 subscriptions in 2 rows,")
    naive = tmp_path / "naive"
    run("match", events, "-s", subscriptions, "--algorithm", "naive", "--save", naive)
    result = run("explain", "-s", naive, "--plan")
    assert result.exit_code == 2
    assert "the algorithm `naive` makes no plan" in result.stderr


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
        ["--event-id", "a", "--event-json", "{}", "--where", "x = 1"],
        ["--event", 1, "--event-json", "{}", "--where", "x = 1"],
        [events, "--event-id", "order", "--where", "x = 1"],
        [events, "--event", -1, "--where", "x = 1"],
        [events, "--event", "A3", "--where", "x = 1"],
        [events, "--event-id", "a..b", "--event", "A3", "--where", "x = 1"],
    ):
        assert run("explain", *options).exit_code == 2, options


def test_control_codes_do_not_reach_the_terminal(run: Run) -> None:
    event = json.dumps({"name": "\x1b[2Jx"})
    assert "\x1b" not in run("explain", "--event-json", event, "--where", "name = 'x'").stdout


def test_what_the_text_does_not_ask_for_is_not_looked_at(run: Run, write: Write) -> None:
    events = write("e.jsonl", '{"price": 1, "n": 7, "id": 36893488147419103232}\n')
    for chosen in ([events], [events, "--event-id", "n", "--event", 7], ["--event-json", events.read_text()]):
        assert "price is 1" in run("explain", *chosen, "--where", "price < 5").stdout
    assert "`id` is an integer beyond 64 bits" in run("explain", events, "--where", "id = 5").stderr
