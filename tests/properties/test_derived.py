"""Derived attributes: what columns, single events and all bindings give, against the reference."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from harken.events import EventBatch, as_integer, read_events, validate
from harken.events.column_functions import values_of
from harken.language.ast import Comparison, Constant, Operand, constants
from harken.language.deriving import term
from harken.reference.expressions import value_of
from harken.schema.derived import derivation, is_derived
from harken.schema.paths import Path
from harken.schema.values import KINDS, Kind
from properties.generators import COLUMNS, Expressions, RawEvent, Vocabulary, nested_events, plain_events, vocabulary_of
from properties.scalars import one_in
from properties.test_bindings import bindings, number_of_bindings
from properties.test_sql_oracles import table_of

_ROUNDS, _OPERANDS, _EVENTS = 40, 12, 24
_MOST_BINDINGS = 500


def path_of(operand: Operand) -> Path:
    expression = Comparison(operand, "=", Constant(1))
    found = constants(expression)
    return term(operand, {id(each): place for place, each in enumerate(found)}).path_of([each.value for each in found])


def operands(rng: Random, vocabulary: Vocabulary) -> list[Operand]:
    generator = Expressions(rng, vocabulary)
    found = [generator.function(vocabulary.path(rng), 2)[0] for _ in range(_OPERANDS)]
    return [each for each in found if is_derived(path_of(each))]


def known(value: Any) -> tuple[str, Any] | None:
    """A value with its kind: 1 and TRUE are not the same, 1 and 1.0 are."""
    if type(value) not in KINDS:
        return None
    kind = KINDS[type(value)]
    return str(kind), value if kind in (Kind.NUMBER, Kind.STRING) else as_integer(kind, value)


def by_reference(operand: Operand, event: RawEvent) -> set[Any]:
    return {known(value_of(operand, event, bound)) for bound in bindings(event)} - {None}


def by_cells(batch: EventBatch, path: Path) -> list[set[Any]]:
    """The values of each event as its cells tell them."""
    found: list[set[Any]] = [set() for _ in range(len(batch))]
    at_path = batch.cells(path)
    assert at_path.open_rows is None
    for cells in at_path.cells:
        for row, value in zip(cells.rows.tolist(), values_of(cells), strict=True):
            found[row].add((str(cells.kind), value))
    assert at_path.present.tolist() == list(map(bool, found))
    return found


def test_columns_agree_with_the_reference_on_objects(bulk):
    for rng in bulk.rounds(_ROUNDS):
        events = [each for each in nested_events(rng, _EVENTS) if number_of_bindings(each) <= _MOST_BINDINGS]
        batch = validate(events).batch
        for operand in operands(rng, vocabulary_of(events)):
            path = path_of(operand)
            expected = [by_reference(operand, event) for event in events]
            assert by_cells(batch, path) == expected, str(derivation(path))
            bulk.pairs += len(events)


def test_single_events_agree_with_the_reference(bulk):
    for rng in bulk.rounds(_ROUNDS):
        events = [each for each in nested_events(rng, _EVENTS) if number_of_bindings(each) <= _MOST_BINDINGS]
        batch = validate(events).batch
        for operand in operands(rng, vocabulary_of(events)):
            derived = derivation(path_of(operand))
            for event, raw in zip(batch, events, strict=True):
                value = derived.of_one(event.attributes)
                if type(value) is not list:
                    assert {known(value)} - {None} == by_reference(operand, raw), (str(derived), raw)
            bulk.pairs += len(events)


@pytest.mark.parametrize("is_json", [False, True])
def test_arrow_and_json_agree_with_objects(bulk, is_json):
    for rng in bulk.rounds(_ROUNDS):
        events = plain_events(rng, _EVENTS)
        for event in events:
            event["tags"] = [rng.choice(("a", "É", " b ", "")) for _ in range(rng.randrange(3))]
            event["parts"] = [{"n": rng.randrange(5)} for _ in range(rng.randrange(3))]
        if is_json:
            events = [{key: value for key, value in each.items() if _is_json(value)} for each in events]
            text = "\n".join(json.dumps(each) for each in events).encode()
            (decoded,) = read_events(io.BytesIO(text), "jsonl")
            batch = decoded.batch
        else:
            table = table_of(events, COLUMNS, "UTC")
            table = table.append_column("tags", pa.array([each["tags"] for each in events], pa.list_(pa.string())))
            table = table.append_column("parts", pa.array([each["parts"] for each in events]))
            batch = validate(table).batch
        objects = validate(events).batch
        vocabulary = vocabulary_of(events)
        for operand in operands(rng, vocabulary):
            path = path_of(operand)
            assert by_cells(batch, path) == by_cells(objects, path), str(derivation(path))
            bulk.pairs += len(events)
        if one_in(rng, 4):
            half = batch[: len(batch) // 2]
            assert [by_cells(half, path)] == [by_cells(objects, path)[: len(half)]]


def _is_json(value: Any) -> bool:
    return value is None or (isinstance(value, int | str | list) or (isinstance(value, float) and abs(value) < 1e300))
