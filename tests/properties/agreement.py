"""Whether an engine finds what the reference finds, while its subscriptions change and its events stay."""

from __future__ import annotations

from harken import Engine
from harken.language.ast import Expression
from harken.language.sql.printer import print_expression
from harken.reference import expressions as reference
from harken.schema import Schema
from properties.generators import RawEvent


class Judge:
    """The reference's answers. Each pair is judged once: the reference takes longer than all that it judges."""

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema
        self._judged: dict[tuple[int, int], tuple[Expression, RawEvent, bool]] = {}

    def is_true(self, expression: Expression, raw: RawEvent) -> bool:
        key = id(expression), id(raw)
        if key not in self._judged:  # what is held keeps its id
            self._judged[key] = expression, raw, reference.matches(expression, raw, self._schema)
        return self._judged[key][2]


def check(engine: Engine, expressions: dict[str, Expression], events: list[RawEvent], judge: Judge) -> int:
    """Match all events, and tell how often an expression was true."""
    found = engine.match_batch(events, on_mismatch="ignore")
    assert not found.rejected
    assert not found.errors
    true = 0
    for raw, ids in zip(events, found.ids, strict=True):
        expected = {id for id, each in expressions.items() if judge.is_true(each, raw)}
        assert len(ids) == len(set(ids))
        wrong = expected.symmetric_difference(ids)
        assert not wrong, f"event: {raw}\n" + "\n".join(
            f"{id in expected} {print_expression(expressions[id])}" for id in wrong
        )
        assert sorted(engine.match(raw).ids) == sorted(ids), f"alone it matches others: {raw}"
        true += len(ids)
    return true
