"""`harken subscribe`, `renew` and `unsubscribe`: what they send, show and keep."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from harken.cli.connecting import DEFAULT_SERVER
from harken.cli.tickets import TicketFile
from harken.client import exchange
from services.stand import Reply, Stand, problem

from .conftest import Run, Write, lines
from .test_program import on_terminal

EXPIRES = "2030-01-02T03:04:05.000006Z"


def ticketed(id: str, **more: Any) -> Reply:
    return Reply(201, {"id": id, "ticket": f"t-{id}", "expires_at": EXPIRES, **more})


def reports(*bodies: dict[str, Any]) -> Reply:
    every = [{"line": line, "expires_at": EXPIRES, **body} for line, body in enumerate(bodies, 1)]
    return Reply(body="".join(json.dumps(each) + "\n" for each in every).encode())


def test_the_default_server_is_that_of_the_client() -> None:
    assert DEFAULT_SERVER == exchange.DEFAULT_SERVER


def test_subscribe_shows_and_keeps_the_ticket(run: Run, stand: Stand, state: Path) -> None:
    stand.will(ticketed("alice"))
    result = run("subscribe", "price < 5", "--id", "alice")
    assert result.exit_code == 0
    assert lines(result.stdout) == [{"id": "alice", "ticket": "t-alice", "expires_at": EXPIRES}]
    assert result.stderr == ""
    assert stand.seen[0].json == {"where": "price < 5", "language": "sql", "id": "alice"}
    assert TicketFile().path == state / "tickets.json"
    assert TicketFile().of(stand.url) == {"alice": "t-alice"}


def test_every_option_of_a_subscription(run: Run, stand: Stand) -> None:
    stand.will(ticketed("s1", warnings=["always true"], webhook_secret="whsec_x"))
    options = ["--language", "xpath", "--owner", "me", "--label", "a=b=c", "--label", "d=", "--valid-for", "1h30m"]
    options += ["--webhook", "https://h/x", "--webhook-secret", "s", "--cloudevents", "--max-delay", "30s"]
    result = run("subscribe", "/x", *options, "--throttle", "10/1m", "--api-key", "k")
    assert stand.seen[0].json == {
        "where": "/x",
        "language": "xpath",
        "owner": "me",
        "labels": {"a": "b=c", "d": ""},
        "valid_for": 5400.0,
        "delivery": {
            "webhook": {"url": "https://h/x", "secret": "s"},
            "format": "cloudevents",
            "max_delay": 30.0,
            "throttle": {"count": 10, "seconds": 60.0},
        },
    }
    assert stand.seen[0].headers["authorization"] == "Bearer k"
    assert lines(result.stdout)[0]["webhook_secret"] == "whsec_x"
    assert result.stderr == "! always true\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "TEXT or --file"),
        (["x = 1", "--file", "a.jsonl"], "TEXT or --file"),
        (["--file", "a.jsonl", "--id", "x"], "--id"),
        (["x = 1", "--valid-for", "soon"], "'soon' is not a duration"),
        (["x = 1", "--max-delay", "1y"], "--max-delay"),
        (["x = 1", "--throttle", "10"], "'10' is not COUNT/TIME"),
        (["x = 1", "--throttle", "10/x"], "'x' is not a duration"),
        (["x = 1", "--label", "x"], "'x' is not NAME=TEXT"),
    ],
)
def test_wrong_usage(run: Run, stand: Stand, arguments: list[str], told: str) -> None:
    result = run("subscribe", *arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert stand.seen == []


def test_a_rejected_text_is_shown_with_its_place(run: Run, stand: Stand) -> None:
    stand.will(problem(422, "expected a value", line=1, column=8, excerpt="price <\n       ^", hint="write one"))
    result = run("subscribe", "price <")
    assert result.exit_code == 3
    assert result.stderr == ("error: expected a value (line 1, column 8)\n  price <\n         ^\nhint: write one\n")


def test_nobody_there(run: Run, state: Path) -> None:
    result = run("subscribe", "price < 5", "--server", "http://127.0.0.1:9")
    assert result.exit_code == 3
    assert "error: the server at http://127.0.0.1:9 cannot be reached" in result.stderr
    assert "is not the address of a server" in run("subscribe", "x = 1", "--server", "localhost:8080").stderr


def test_a_ticket_that_cannot_be_kept_is_still_shown(run: Run, stand: Stand, state: Path) -> None:
    state.mkdir(parents=True)
    (state / "tickets.json").write_text("{")
    stand.will(ticketed("alice"))
    result = run("subscribe", "price < 5")
    assert result.exit_code == 0
    assert lines(result.stdout)[0]["ticket"] == "t-alice"
    assert "warning: " in result.stderr
    assert "tickets.json is damaged" in result.stderr


def test_on_a_terminal(stand: Stand, state: Path) -> None:
    stand.will(ticketed("alice"))
    shown = on_terminal("subscribe", "price < 5")
    assert shown.splitlines() == [
        "id             alice",
        f"ticket         t-alice   (kept in {state}/tickets.json)",
        f"expires at     {EXPIRES}",
    ]


# Many


def test_files_are_subscribed_to_and_reported(run: Run, stand: Stand, write: Write, tmp_path: Path) -> None:
    first = write("a.jsonl", '{"id": 7, "where": "x = 1", "channel": "mail", "n": 2, "none": null}\n{bad\n')
    more = [
        {"id": "b", "where": "x = ", "language": "xpath", "valid_for": "2h", "labels": {"team": "b"}},
        {"id": "c"},
        {"where": "x = 3", "owner": "you"},
        {"where": "x = 4", "valid_for": "soon"},
    ]
    stand.will(
        reports(
            {"id": "7", "ticket": "t-7", "warnings": ["odd"]},
            {"id": "b", "error": {"status": 422, "detail": "expected a value", "line": 1, "column": 5}},
            {"id": "made", "ticket": "t-made"},
        )
    )
    rejected = tmp_path / "rejected.jsonl"
    options = ["--owner", "me", "--valid-for", "1d", "--label", "team=a", "--rejected", rejected]
    result = run("subscribe", "--file", first, "--file", write("b.jsonl", more), *options)
    assert result.exit_code == 0
    assert [each["ticket"] for each in lines(result.stdout)] == ["t-7", "t-made"]
    given = {"language": "sql", "owner": "me", "valid_for": 86_400.0}
    assert stand.seen[0].lines == [
        {**given, "id": "7", "where": "x = 1", "labels": {"team": "a", "channel": "mail", "n": "2"}},
        {**given, "id": "b", "where": "x = ", "language": "xpath", "valid_for": 7_200.0, "labels": {"team": "b"}},
        {**given, "where": "x = 3", "owner": "you", "labels": {"team": "a"}},
    ]
    found = {(each["position"], each["message"]) for each in lines(rejected.read_text())}
    assert {position for position, _ in found} == {1, 2, 3, 5}
    assert (2, "expected a value") in found
    assert (3, "the subscription has no `where`") in found
    assert "b.jsonl, line 1, subscription 'b'\n  expected a value (line 1, column 5)" in result.stderr
    assert "odd" in result.stderr
    assert "2 subscriptions (4 rejected)" in result.stderr
    assert TicketFile().of(stand.url) == {"7": "t-7", "made": "t-made"}


def test_columns_of_csv_are_fields(run: Run, stand: Stand, write: Write) -> None:
    stand.will(reports({"id": "007", "ticket": "t"}))
    file = write("s.csv", "id,where,language,valid_for,phone\n007,price > 5,,90,0123\n")
    assert run("subscribe", "--file", file).exit_code == 0
    assert stand.seen[0].lines == [
        {"language": "sql", "id": "007", "where": "price > 5", "valid_for": 90.0, "labels": {"phone": "0123"}}
    ]


def test_what_came_before_a_break_is_subscribed_to(run: Run, stand: Stand, tmp_path: Path) -> None:
    whole = gzip.compress(b'{"where": "x = 1"}\n' * 2 + bytes(random.Random(0).randbytes(100_000).hex(), "ascii"))
    broken = tmp_path / "s.jsonl.gz"
    broken.write_bytes(whole[: len(whole) // 2])
    stand.will(reports({"id": "a", "ticket": "t", "webhook_secret": "w"}, {"id": "b", "ticket": "t"}))
    result = run("subscribe", "--file", broken)
    assert result.exit_code == 3
    assert "ends in the middle of its compressed data" in result.stderr
    assert [each.get("webhook_secret") for each in lines(result.stdout)] == ["w", None]
    assert len(TicketFile().of(stand.url)) == 2


def test_exit_codes_of_files(run: Run, stand: Stand, write: Write) -> None:
    good, bad = {"id": "a", "ticket": "t"}, {"id": "b", "error": {"status": 409, "detail": "taken"}}
    two = write("two.jsonl", [{"where": "x = 1"}, {"where": "x = 2"}])
    stand.will(reports(good, bad))
    assert run("subscribe", "--file", two).exit_code == 0
    stand.will(reports(good, bad))
    assert run("subscribe", "--file", two, "--strict").exit_code == 1
    stand.will(reports(bad, bad))
    assert run("subscribe", "--file", two).exit_code == 3
    assert "there is no subscription in" in run("subscribe", "--file", write("none.jsonl", "")).stderr
    assert "there is no file" in run("subscribe", "--file", "nosuch.jsonl").stderr


def test_if_the_server_goes_away_the_tickets_so_far_are_kept(run: Run, stand: Stand, write: Write) -> None:
    many = write("many.jsonl", [{"where": f"x = {each}"} for each in range(501)])
    stand.will(reports(*({"id": f"s{each}", "ticket": "t"} for each in range(500))), Reply(is_lost=True))
    result = run("subscribe", "--file", many)
    assert result.exit_code == 3
    assert "was lost" in result.stderr
    assert len(TicketFile().of(stand.url)) == 500


# Renew and unsubscribe


def test_renew(run: Run, stand: Stand) -> None:
    TicketFile().keep(stand.url, {"alice": "1", "bob": "2"})
    stand.will(*(Reply(json={"id": id, "expires_at": EXPIRES}) for id in ("alice", "bob")))
    result = run("renew", "alice", "bob", "--valid-for", "2d")
    assert lines(result.stdout) == [{"id": id, "expires_at": EXPIRES} for id in ("alice", "bob")]
    assert [(each.path, each.headers["harken-ticket"], each.json) for each in stand.seen] == [
        ("/subscriptions/alice/renew", "1", {"valid_for": 172_800.0}),
        ("/subscriptions/bob/renew", "2", {"valid_for": 172_800.0}),
    ]


def test_unsubscribe_forgets_the_ticket(run: Run, stand: Stand) -> None:
    TicketFile().keep(stand.url, {"alice": "1", "bob": "2", "carol": "3"})
    stand.will(Reply(204), problem(404, "there is no subscription 'bob'"), Reply(204))
    result = run("unsubscribe", "alice", "bob", "carol")
    assert result.exit_code == 1
    assert result.stderr == "alice is ended\nerror: bob: there is no subscription 'bob'\ncarol is ended\n"
    assert TicketFile().of(stand.url) == {"bob": "2"}


def test_a_ticket_of_another_place(run: Run, stand: Stand) -> None:
    TicketFile().keep(stand.url, {"alice": "1"})
    stand.will(Reply(204))
    assert run("unsubscribe", "alice", env={"HARKEN_TICKET": "9"}).exit_code == 0
    assert stand.seen[0].headers["harken-ticket"] == "9"


def test_without_a_ticket_the_hint_is_for_people(run: Run, stand: Stand, state: Path) -> None:
    stand.will(problem(401, "this needs the ticket", hint="send a header"))
    result = run("renew", "alice")
    assert result.exit_code == 3
    assert result.stderr == (
        "error: this needs the ticket\n"
        f"hint: give it as --ticket or --api-key; tickets that `harken subscribe` got are in {state}/tickets.json\n"
    )
