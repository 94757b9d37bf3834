"""Whether an engine finds what the reference finds."""

from __future__ import annotations

from harken import Engine, reference
from harken.language.ast import Expression
from harken.language.sql.printer import print_expression
from harken.schema import Schema
from properties.generators import RawEvent


def check(engine: Engine, expressions: dict[str, Expression], events: list[RawEvent], schema: Schema | None) -> int:
    """Match all events, and tell how often an expression was true."""
    found = engine.match_batch(events)
    assert not found.refused
    assert not found.errors
    true = 0
    for raw, ids in zip(events, found.ids, strict=True):
        expected = {id for id, each in expressions.items() if reference.matches(each, raw, schema)}
        assert len(ids) == len(set(ids))
        wrong = expected.symmetric_difference(ids)
        assert not wrong, f"event: {raw}\n" + "\n".join(
            f"{id in expected} {print_expression(expressions[id])}" for id in wrong
        )
        assert sorted(engine.match(raw).ids) == sorted(ids), f"alone it matches others: {raw}"
        true += len(ids)
    return true
