"""The golden cases over HTTP, on servers as processes: the same answers and the same rejections as the library's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from conformance.cases import CaseFile, case_files, rejections
from harken import Engine
from harken.errors import HarkenError
from harken.schema import Schema
from harken.schema.schema_files import format_schema
from unit.server.serving import NDJSON, Server, Taken, as_lines, lines, problem, running_server

pytestmark = [pytest.mark.together, pytest.mark.seconds]

FILES = case_files()
REJECTION_SCHEMA, REJECTIONS = rejections()
XPATH = re.compile(r"xpath_boolean\(doc, '((?:[^']|'')*)'\)")

ServerOf = Callable[[Schema | None], Server]


@pytest.fixture(scope="module")
def server_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerOf]:
    """A server for each schema. Files without one share a server, and so have each other's subscriptions, too."""
    with ExitStack() as stack:
        servers: dict[str, Server] = {}

        def server_of(schema: Schema | None) -> Server:
            text = "" if schema is None else format_schema(schema)
            if text not in servers:
                folder = tmp_path_factory.mktemp("server")
                (folder / "schema.toml").write_text(text, "utf-8")
                options = ["--schema", str(folder / "schema.toml")] if text else []
                servers[text] = stack.enter_context(running_server(folder, *options))
            return servers[text]

        yield server_of


def subscribed(server: Server, cases: CaseFile, prefix: str) -> dict[str, Taken]:
    """The subscriptions of a file, all in one request, by their texts."""
    rows = [{"where": where, "id": f"{prefix}-{place}"} for place, (where, _) in enumerate(cases.expected)]
    report = lines(server.send("/subscriptions", as_lines(rows), NDJSON))
    assert [each.get("error") for each in report] == [None] * len(rows)
    return {row["where"]: Taken(row["id"], each["ticket"]) for row, each in zip(rows, report, strict=True)}


@pytest.mark.parametrize("cases", FILES, ids=lambda cases: cases.name)
def test_golden_cases(server_of: ServerOf, cases: CaseFile) -> None:
    server = server_of(cases.schema)
    texts = {each.id: where for where, each in subscribed(server, cases, cases.name).items()}
    answers: dict[str, set[str]] = {where: set() for where, _ in cases.expected}
    for name, ids in zip(cases.events, server.matches(*cases.events.values()), strict=True):
        assert len(ids) == len(set(ids))
        for id in ids:
            if id in texts:
                answers[texts[id]].add(name)
    assert answers == dict(cases.expected)
    alone = [server.matches(event)[0] for event in cases.events.values()]
    assert alone == server.matches(*cases.events.values()), "one by one as in a batch"


@pytest.mark.parametrize(
    "cases", [each for each in FILES if each.name in ("domains", "sets")], ids=lambda each: each.name
)
def test_golden_cases_that_are_notified(server_of: ServerOf, cases: CaseFile) -> None:
    server = server_of(cases.schema)
    taken = subscribed(server, cases, f"{cases.name}-notified")
    server.publish(*cases.events.values())
    names = {json.dumps(event): name for name, event in cases.events.items()}
    for where, expected in cases.expected:
        told = server.notified(taken[where])
        assert [names[json.dumps(each["event"])] for each in told] == [
            name for name in cases.events if name in expected
        ]


def documents() -> tuple[dict[str, str], list[tuple[str, set[str]]]]:
    """The golden cases of XPath inside SQL as documents and XPaths by themselves, where they are nothing else."""
    (cases,) = (each for each in FILES if each.name == "documents")
    texts = {name: event["doc"] for name, event in cases.events.items() if str(event.get("doc", "")).startswith("<")}
    found = [(XPATH.fullmatch(where), names) for where, names in cases.expected]
    paths = [(match[1].replace("''", "'"), names & texts.keys()) for match, names in found if match is not None]
    assert len(texts) > 5
    assert len(paths) > 20
    return texts, paths


def test_golden_cases_of_documents(server_of: ServerOf) -> None:
    server = server_of(None)
    texts, paths = documents()
    taken = [server.subscribe(path, language="xpath") for path, _ in paths]
    answers: list[set[str]] = [set() for _ in paths]
    for name, text in texts.items():
        answer = server.send("/events?dry_run=true", text.encode(), "application/xml").json()
        assert answer["rejected"] == []
        for place, each in enumerate(taken):
            if each.id in answer["matches"][0]:
                answers[place].add(name)
    assert answers == [names for _, names in paths]


@pytest.mark.parametrize("text", REJECTIONS, ids=lambda text: text["where"] or "empty")
def test_rejections(server_of: ServerOf, text: dict[str, Any]) -> None:
    server = server_of(REJECTION_SCHEMA)
    with pytest.raises(HarkenError) as caught:
        Engine(REJECTION_SCHEMA).subscribe("x", text["where"])
    expected = caught.value.to_dict()
    body = {"where": text["where"]}
    for answer in (server.post("/subscriptions", body), server.post("/check", body)):
        found = problem(answer, 422)
        assert found["title"] == text["error"] == expected["error"]
        assert found["detail"] == expected["message"]
        for name in ("line", "column", "excerpt", "hint", "limit"):
            assert found.get(name) == expected.get(name)
    (report,) = lines(server.send("/subscriptions", as_lines([body]), NDJSON))
    assert report["error"] == {name: value for name, value in found.items() if name != "request_id"}
    assert server.get("/subscriptions").json()["subscriptions"] == []
