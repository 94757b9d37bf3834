"""Subscriptions from tables of predicates, through the engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from drawn import generate
from harken import Engine
from harken.errors import SourceError
from harken.matchers import ALGORITHMS
from harken.schema import parse_schema


def table(ids: list[Any], predicates: list[Any], **fields: list[Any]) -> pa.Table:
    kind = pa.list_(
        pa.struct({"attribute": pa.string(), "operator": pa.string(), "integer": pa.int64(), "string": pa.string()})
    )
    return pa.table({"id": ids, "predicates": pa.array(predicates, kind), **fields})


def asks(attribute: str, operator: str, value: int | str) -> dict[str, Any]:
    kind = "integer" if isinstance(value, int) else "string"
    return {"attribute": attribute, "operator": operator, kind: value}


GIVEN = table(
    ["cheap", "toy", "cheap", None, "wrong", "twice", "always", ""],
    [
        [asks("price", "<", 5)],
        [asks("category", "=", "Toy"), asks("price", "<=", 9)],
        [asks("price", ">", 5)],
        [asks("price", "=", 1)],
        [asks("price", "~", 1)],
        [asks("price", ">", 1), asks("price", "<", 3)],
        [],
        [asks("price", "=", 1)],
    ],
    owner=["Ada", "Bob", "Cy", "Di", "Ed", "Fay", "Gus", "Hal"],
)
EVENTS = [{"price": 2, "category": "Toy"}, {"price": 7, "category": "Toy"}, {"price": 1}]


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_good_rows_are_taken_and_others_reported(algorithm: str) -> None:
    engine = Engine(algorithm=algorithm)
    report = engine.subscribe_many(GIVEN)
    assert report.accepted == 4
    assert [(fault.position, fault.id) for fault in report.faults] == [(2, "cheap"), (3, None), (4, "wrong"), (7, "")]
    assert [id for id, _ in report.warnings] == ["always"]
    found = [sorted(ids) for ids in engine.match_batch(EVENTS).ids]
    assert found == [["always", "cheap", "toy", "twice"], ["always", "toy"], ["always", "cheap"]]
    assert engine.subscription("toy").where == "category = 'Toy' AND price <= 9"
    assert dict(engine.subscription("toy").fields) == {"owner": "Bob"}
    assert engine.explain("cheap", EVENTS[0]).matched


def test_ids_that_are_taken() -> None:
    engine = Engine()
    engine.subscribe("toy", "x = 1")
    engine.subscribe("twice", "x = 1")
    report = engine.subscribe_many(GIVEN)
    assert report.accepted == 2
    assert {fault.id for fault in report.faults} == {"cheap", "toy", None, "wrong", "twice", ""}
    assert sorted(engine.match({"x": 1}).ids) == ["always", "toy", "twice"]
    report = engine.subscribe_many(GIVEN, replace=True)
    assert sorted(engine.match({"x": 1}).ids) == ["always"]
    assert len(engine) == 4
    assert engine.subscription("cheap").where == "price > 5", "of several with one id the last is taken"


def test_with_a_schema_texts_are_checked() -> None:
    engine = Engine(parse_schema("[attributes]\nprice = 'integer'\n"))
    report = engine.subscribe_many(GIVEN)
    assert "toy" in {fault.id for fault in report.faults}, "`category` is not in the schema"
    assert sorted(engine.match({"price": 2}).ids) == ["always", "cheap", "twice"]


def test_a_table_without_ids() -> None:
    with pytest.raises(SourceError, match="`id`"):
        Engine().subscribe_many(GIVEN.drop_columns("id"))


def test_a_workload_by_its_table_and_by_its_texts() -> None:
    workload = generate("mixed", subscriptions=4_000, events=80)
    by_table, by_text = Engine(), Engine()
    seen: list[int] = []
    by_table.subscribe_many(workload.table(), progress=seen.append)
    by_text.subscribe_many(zip((f"s{n}" for n in range(4_000)), workload.texts().to_pylist(), strict=True))
    assert seen == [4_000]
    assert len(by_table) == len(by_text) == 4_000
    for one, other in zip(
        by_table.match_batch(workload.events).ids, by_text.match_batch(workload.events).ids, strict=True
    ):
        assert sorted(one) == sorted(other)
    by_table.unsubscribe("s17")
    assert "s17" not in by_table
    assert by_table.subscribe("s17", "w4.a1 = 3").number == 17
