"""Subscriptions in bulk: one a line, and a line of the report for each, whatever is wrong with others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from unit.server.serving import NDJSON, Server, as_lines, lines, new_name

pytestmark = pytest.mark.together


def test_a_report_has_a_line_for_each(server: Server, topic: str) -> None:
    rows = [{"where": f"topic = '{topic}' AND n = {n}", "id": f"{topic}-{n}"} for n in range(5)]
    report = lines(server.send("/subscriptions", as_lines(rows), NDJSON))
    assert [(each["line"], each["id"]) for each in report] == [(n + 1, f"{topic}-{n}") for n in range(5)]
    assert all(each.keys() == {"line", "id", "ticket", "expires_at"} for each in report)
    assert server.matches({"topic": topic, "n": 3}) == [[f"{topic}-3"]]
    opened = server.http.get(f"/subscriptions/{topic}-3", headers={"Harken-Ticket": report[3]["ticket"]})
    assert opened.json()["where"] == rows[3]["where"]


def test_faults_in_the_middle_leave_the_others(server: Server, topic: str) -> None:
    where = f"topic = '{topic}'"
    texts = [
        json.dumps({"where": where, "id": f"{topic}-1"}),
        "",
        "{",
        json.dumps({"where": "price < 5 ADN sold", "id": f"{topic}-4"}),
        "   ",
        json.dumps({"where": where, "id": f"{topic}-1"}),
        json.dumps({"where": where, "id": f"{topic}-7", "valid_for": -1}),
        json.dumps({"where": where, "id": 8}),
        json.dumps([where]),
        '{"where": "a = 1", "labels": {"a": "\\ud800"}}',
        "\xff",
        json.dumps({"where": where, "id": f"{topic}-12", "labels": {"é": "ß"}}, ensure_ascii=False),
        json.dumps({"where": where}) + "\r",
    ]
    report = lines(server.send("/subscriptions", "\n".join(texts).encode("latin-1"), NDJSON))
    assert [each["line"] for each in report] == [1, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13]
    by_line = {each["line"]: each for each in report}
    statuses = {line: each["error"]["status"] for line, each in by_line.items() if "error" in each}
    assert statuses == {3: 400, 4: 422, 6: 409, 7: 422, 8: 422, 9: 422, 10: 422, 11: 400, 12: 400}
    assert (by_line[4]["error"]["line"], by_line[4]["error"]["column"]) == (1, 11)
    assert [by_line[line]["id"] for line in (3, 4, 6, 7, 8)] == [None, f"{topic}-4", f"{topic}-1", f"{topic}-7", None]
    assert server.matches({"topic": topic}) == [sorted([f"{topic}-1", by_line[13]["id"]])]


def test_a_line_that_is_too_long(server: Server, topic: str) -> None:
    row = {"where": f"topic = '{topic}'"}
    huge = json.dumps({"where": "a = '" + "x" * (5 << 20) + "'", "id": f"{topic}-2"})
    body = "\n".join([json.dumps({**row, "id": f"{topic}-1"}), huge, json.dumps({**row, "id": f"{topic}-3"}), huge])
    report = lines(server.send("/subscriptions", body, "application/jsonl"))
    assert [each["line"] for each in report] == [1, 2, 3, 4]
    assert [each.get("error", {}).get("limit") for each in report] == [None, "max_body_bytes", None, "max_body_bytes"]
    assert server.matches({"topic": topic}) == [[f"{topic}-1", f"{topic}-3"]]


def test_nothing_at_all(server: Server) -> None:
    for body in ("", "\n\n", " "):
        assert lines(server.send("/subscriptions", body, NDJSON)) == []


def test_many_lines_to_a_client_that_reads_last(server: Server, topic: str) -> None:
    """The report is longer than what fits between the two, so neither may wait for the other."""
    count = 12_000
    rows = ({"where": f"topic = '{topic}' AND n = {n}", "id": f"{topic}-{n}"} for n in range(count))

    def pieces() -> Iterator[bytes]:
        waiting = b"".join(json.dumps(each).encode() + b"\n" for each in rows)
        for start in range(0, len(waiting), 10_007):
            yield waiting[start : start + 10_007]

    answer = server.http.post("/subscriptions", content=pieces(), headers={"Content-Type": NDJSON})
    report = lines(answer)
    assert [each["line"] for each in report] == list(range(1, count + 1))
    assert all("ticket" in each for each in report)
    assert server.matches({"topic": topic, "n": 11_999}) == [[f"{topic}-11999"]]


def test_a_client_that_leaves_in_the_middle(server: Server, topic: str) -> None:
    """What was read is taken, and the server goes on."""

    class LeftError(Exception):
        pass

    def pieces() -> Iterator[bytes]:
        yield as_lines([{"where": f"topic = '{topic}' AND n = {n}"} for n in range(2_500)]).encode()
        raise LeftError

    with pytest.raises(LeftError):
        server.http.post("/subscriptions", content=pieces(), headers={"Content-Type": NDJSON})
    assert server.get("/healthz").status_code == 200
    answer: dict[str, Any] = server.post("/subscriptions", {"where": f"topic = '{topic}'", "id": new_name()}).json()
    assert answer["id"] in server.matches({"topic": topic, "n": 1})[0]
