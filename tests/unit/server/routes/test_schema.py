"""The schema over HTTP: read, extended in four ways, never contradicted; and what it does to events at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harken.schema import parse_schema
from unit.server.serving import Server, problem, running_server

pytestmark = pytest.mark.together

SCHEMA = """
[domains.category]
type = "hierarchical"
[domains.category.children]
thing = ["Toy", "lamp"]
Toy = ["doll"]

[attributes]
category = "category"
price = "float"
note = "string"

[event_types.sale]
category = "mandatory unique"
price = "optional"
"""


@pytest.fixture(scope="module")
def schema_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("schema")
    (folder / "schema.toml").write_text(SCHEMA)
    with running_server(folder, "--schema", str(folder / "schema.toml")) as found:
        yield found


def test_the_schema_as_data_and_as_text(schema_server: Server) -> None:
    found = schema_server.get("/schema").json()
    assert found["attributes"] == {"category": "category", "price": "float", "note": "string"}
    assert found["domains"]["category"]["type"] == "hierarchical"
    assert found["domains"]["category"]["children"] == {"thing": ["Toy", "lamp"], "Toy": ["doll"]}
    assert found["event_types"] == {"sale": {"category": "mandatory", "price": "optional"}}
    written = parse_schema(found["toml"])
    assert written.event_types.keys() == {"sale"}
    assert found["version"] == written.version


def test_events_and_subscriptions_have_to_fit(schema_server: Server) -> None:
    taken = schema_server.subscribe("category <= 'Toy'")
    assert schema_server.matches({"event_type": "sale", "category": "doll"}) == [[taken.id]]
    found = problem(schema_server.post("/events", {"event_type": "sale", "category": "car"}), 422)
    assert found["rejected"][0]["error"] == "InvalidValueError"
    found = problem(schema_server.post("/events", {"event_type": "sale", "price": 1}), 422)
    assert found["rejected"][0]["error"] == "AttributeRuleError"
    found = problem(schema_server.post("/events", {"event_type": "sale", "category": "doll", "note": "x"}), 422)
    assert found["rejected"][0]["error"] == "ExtraAttributeError"
    found = problem(schema_server.post("/subscriptions", {"where": "prise < 5"}), 422)
    assert (found["title"], found["hint"]) == ("CheckError", "did you mean `price`?")
    found = problem(schema_server.post("/check", {"where": "category = 'Tyo'"}), 422)
    assert found["hint"] == "did you mean `Toy`?"


def test_the_four_extensions_are_in_force_at_once(schema_server: Server) -> None:
    version = schema_server.get("/schema").json()["version"]

    def extended(path: str, body: dict[str, Any]) -> None:
        nonlocal version
        answer = schema_server.post(f"/schema/{path}", body)
        assert (answer.status_code, answer.json()) == (201, {"version": version + 1})
        again = schema_server.post(f"/schema/{path}", body)
        assert (again.status_code, again.json()) == (201, {"version": version + 1}), "to say it again changes nothing"
        version += 1

    problem(schema_server.post("/subscriptions", {"where": "colour = 'red'"}), 422)
    extended("domains", {"name": "colour", "type": "enumerated", "values": ["red", "grün"]})
    extended("attributes", {"name": "colour", "domain": "colour"})
    taken = schema_server.subscribe("colour = 'red'")
    problem(schema_server.post("/events", {"event_type": "sale", "category": "doll", "colour": "red"}), 422)
    extended("optional-attributes", {"event_type": "sale", "attribute": "colour", "multiple": True})
    schema_server.publish({"event_type": "sale", "category": "doll", "colour": ["red", "grün"]})
    assert len(schema_server.notified(taken)) == 1
    problem(schema_server.post("/events", {"event_type": "rental", "price": 1}), 422)
    extended(
        "event-types", {"name": "rental", "attributes": {"price": "mandatory unique", "note": "optional multiple"}}
    )
    schema_server.publish({"event_type": "rental", "price": 1, "note": ["a", "b"]})
    found = schema_server.get("/schema").json()
    assert found["version"] == version
    assert found["event_types"]["rental"] == {"price": "mandatory", "note": "optional multiple"}
    assert found["event_types"]["sale"]["colour"] == "optional multiple"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("domains", {"name": "category", "type": "enumerated", "values": ["a"]}, 409),
        ("domains", {"name": "float", "type": "enumerated", "values": ["a"]}, 409),
        ("domains", {"name": "odd", "type": "unheard"}, 422),
        ("domains", {"name": "odd", "type": "enumerated"}, 422),
        ("domains", {"name": "odd", "type": "enumerated", "values": [1]}, 422),
        ("domains", {"name": "odd", "type": "enumerated", "values": ["a"], "colour": 1}, 422),
        ("domains", {"name": "odd", "type": "hierarchical", "children": {"a": ["b"], "b": ["a"]}}, 422),
        ("domains", {"name": "odd", "type": "integer", "low": 5, "high": 1}, 422),
        ("domains", {"name": "", "type": "string"}, 422),
        ("domains", {"type": "string"}, 422),
        ("attributes", {"name": "price", "domain": "string"}, 409),
        ("attributes", {"name": "weight", "domain": "heavy"}, 422),
        ("attributes", {"name": "event_type", "domain": "string"}, 422),
        ("attributes", {"name": "a..b", "domain": "string"}, 422),
        ("attributes", {"name": "`", "domain": "string"}, 422),
        ("attributes", {"name": "weight"}, 422),
        ("attributes", {"name": "weight", "domain": "float", "more": 1}, 422),
        ("optional-attributes", {"event_type": "sale", "attribute": "price", "multiple": True}, 409),
        ("optional-attributes", {"event_type": "nothing", "attribute": "price"}, 422),
        ("optional-attributes", {"event_type": "sale", "attribute": "nothing"}, 422),
        ("event-types", {"name": "sale", "attributes": {"price": "mandatory"}}, 409),
        ("event-types", {"name": "odd", "attributes": {"price": "sometimes"}}, 422),
        ("event-types", {"name": "odd", "attributes": {"nothing": "optional"}}, 422),
        ("event-types", {"name": "odd", "attributes": {"price": 1}}, 422),
    ],
)
def test_extensions_that_are_rejected_change_nothing(
    schema_server: Server, path: str, body: dict[str, Any], status: int
) -> None:
    before = schema_server.get("/schema").json()
    found = problem(schema_server.post(f"/schema/{path}", body), status)
    assert found["detail"]
    assert schema_server.get("/schema").json() == before


def test_half_of_a_character_is_rejected(schema_server: Server) -> None:
    before = schema_server.get("/schema").json()
    for path, body in (
        ("domains", '{"name": "half", "type": "enumerated", "values": ["\\ud800"]}'),
        ("domains", '{"name": "\\ud800", "type": "string"}'),
        ("attributes", '{"name": "\\ud800", "domain": "string"}'),
        ("event-types", '{"name": "half", "attributes": {"\\ud800": "optional"}}'),
    ):
        problem(schema_server.send(f"/schema/{path}", body, "application/json"), 422)
    assert schema_server.get("/schema").json() == before


def test_a_server_without_a_schema(server: Server) -> None:
    nothing = {"version": None, "toml": "", "domains": {}, "attributes": {}, "event_types": {}}
    assert server.get("/schema").json() == nothing
    server.subscribe("a = 1")
    found = problem(server.post("/schema/attributes", {"name": "weight", "domain": "float"}), 409)
    assert "--schema" in found["hint"]


def test_a_schema_that_begins_with_an_extension_and_stays(tmp_path: Path) -> None:
    with running_server(tmp_path) as first:
        assert first.post("/schema/attributes", {"name": "weight", "domain": "integer"}).status_code == 201
        taken = first.subscribe("weight > 5")
        problem(first.post("/subscriptions", {"where": "wieght > 5"}), 422)
        before = first.get("/schema").json()
    with running_server(tmp_path) as second:
        assert second.get("/schema").json() == before
        assert second.matches({"weight": 6}) == [[taken.id]]
        problem(second.post("/events", {"weight": "heavy"}), 422)
