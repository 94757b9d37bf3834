"""The calls about the schema and the state of a server, as flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harken.client.exchange import Access, Flow, Request, sent
from harken.client.request_encoding import carrying

_NOT_NOW = 503


def schema(access: Access) -> Flow[dict[str, Any]]:
    """The schema of the server: its version, the file as TOML, domains, attributes and event types."""
    return (yield from _read(access, "/schema"))


def add_domain(access: Access, name: str, definition: Mapping[str, Any]) -> Flow[int]:
    """Add a domain, as a schema file defines it, and return the new version of the schema."""
    return (yield from _extend(access, "domains", {"name": name, **definition}))


def add_attribute(access: Access, name: str, domain: str) -> Flow[int]:
    """Add an attribute with the domain of this name, and return the new version of the schema."""
    return (yield from _extend(access, "attributes", {"name": name, "domain": domain}))


def add_optional_attribute(access: Access, event_type: str, attribute: str, *, multiple: bool = False) -> Flow[int]:
    """Add an optional attribute to an event type, and return the new version of the schema."""
    body = {"event_type": event_type, "attribute": attribute, "multiple": multiple}
    return (yield from _extend(access, "optional-attributes", body))


def add_event_type(access: Access, name: str, attributes: Mapping[str, str]) -> Flow[int]:
    """Add an event type, with a rule such as "mandatory unique" for each attribute, and return the new version."""
    return (yield from _extend(access, "event-types", {"name": name, "attributes": attributes}))


def health(access: Access) -> Flow[dict[str, Any]]:
    """The server's report on its health. Raises UnreachableError if it does not answer."""
    return (yield from _read(access, "/healthz"))


def is_ready(access: Access) -> Flow[bool]:
    """Whether the server takes requests now: not while it starts or shuts down."""
    request = Request("GET", "/readyz", (), access.headers(), is_repeatable=True, expected=frozenset({_NOT_NOW}))
    answer = yield from sent(access, request)
    return answer.status != _NOT_NOW


def stats(access: Access) -> Flow[dict[str, Any]]:
    """Counts and rates of the server."""
    return (yield from _read(access, "/stats"))


def plan(access: Access) -> Flow[dict[str, Any]]:
    """How the server has indexed its subscriptions."""
    return (yield from _read(access, "/plan"))


def _read(access: Access, path: str) -> Flow[dict[str, Any]]:
    answer = yield from sent(access, Request("GET", path, (), access.headers(), is_repeatable=True))
    plain: dict[str, Any] = answer.json
    return plain


def _extend(access: Access, part: str, body: Mapping[str, Any]) -> Flow[int]:
    # Adding what exists already changes nothing, so the request may be repeated.
    request = Request("POST", f"/schema/{part}", (), access.headers(), is_repeatable=True)
    answer = yield from sent(access, carrying(body, request))
    return int(answer.json["version"])
