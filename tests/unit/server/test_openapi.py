"""The API against its own description: whatever fits it, and what nearly does, is answered as described."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from conftest import LONG
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from unit.server.serving import NDJSON, SECONDS, Server, Taken, running_server

pytestmark = [pytest.mark.together, pytest.mark.seconds]

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
KNOWN: dict[str, Any] = {"where": "a >= 1", "delivery": {"webhook": {"url": "https://hooks.example.com/"}}}


@schemathesis.serializer(NDJSON)
def as_they_are(context: Any, value: Any) -> bytes:
    return str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("described")) as server:
        yield server


@pytest.fixture(scope="module")
def described(api: Server) -> Any:
    return schemathesis.openapi.from_url(f"{api.url}/openapi.json")


@pytest.fixture(scope="module")
def known(api: Server) -> list[Taken]:
    """A subscription that is there, with notifications."""
    taken = api.subscribe(**KNOWN)
    api.publish({"a": 1}, {"a": 2})
    return [taken]


schema = schemathesis.pytest.from_fixture("described").exclude(path=["/stream", "/live"])  # they never end


@schema.parametrize()
@settings(max_examples=300 if LONG else 10, deadline=None, suppress_health_check=list(HealthCheck))
def test_answers_are_as_described(case: schemathesis.Case, api: Server, known: list[Taken]) -> None:
    """Each case once as it is, and once about a subscription that there is."""
    case.query.pop("wait", None)
    case.validate_response(case.call(timeout=SECONDS), checks=CHECKS)
    if "subscription" in case.query:
        case.query["subscription"] = [known[0].id]
    elif case.path.startswith("/subscriptions/{id}"):
        case.path_parameters["id"] = known[0].id
    else:
        return
    case.validate_response(case.call(timeout=SECONDS, headers=known[0].headers), checks=CHECKS)
    if api.get(known[0].path, known[0]).status_code == 404:
        known[0] = api.subscribe(**KNOWN)


def test_tickets_and_keys_are_described(api: Server) -> None:
    found = api.get("/openapi.json").json()
    assert found["components"]["securitySchemes"]["ticket"]["name"] == "Harken-Ticket"
    assert found["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert {} in found["security"], "neither is asked for everywhere"
