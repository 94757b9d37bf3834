"""Which attributes are looked at."""

from __future__ import annotations

from harken.events import looked_at
from harken.schema import BUILT_IN, EventType, Schema


def test_what_is_asked_for_and_what_a_schema_declares() -> None:
    declared = Schema(attributes={("price", "net"): BUILT_IN["float"], ("size",): BUILT_IN["float"]})
    closed = Schema(event_types={"sale": EventType("sale", {})})
    asked = frozenset("x")
    assert looked_at(asked, None) == asked
    assert looked_at(asked, declared) == {"x", "price", "size"}
    assert looked_at(asked, closed) is None
    assert looked_at(None, declared) is None
