"""Batches: the good events with their positions, the rejected ones with their reasons."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa
import pytest

from harken.errors import InvalidValueError, SourceError
from harken.events import Event, EventBatch, validate
from harken.limits import Limits
from harken.schema import BUILT_IN, Schema


def test_one_bad_event_never_sinks_the_others() -> None:
    decoded = validate([{"a": 1}, {"a": b"x"}, 7, Event.of({"a": 2})])
    assert [event.attributes for event in decoded.batch] == [{"a": 1}, {"a": 2}]
    assert decoded.batch.positions == (0, 3)
    assert [rejected.position for rejected in decoded.rejected] == [1, 2]
    assert all(isinstance(rejected.error, InvalidValueError) for rejected in decoded.rejected)
    assert decoded.rejected[0].raw == "{'a': b'x'}"


def test_a_batch_is_a_sequence() -> None:
    batch = validate([{"n": n} for n in range(5)]).batch
    assert len(batch) == 5
    assert batch[1] == Event.of({"n": 1})
    assert batch[-1].attributes == {"n": 4}
    assert Event.of({"n": 3}) in batch
    assert batch[1::2] == EventBatch.of((Event.of({"n": 1}), Event.of({"n": 3})), (1, 3))


def test_nothing_gives_nothing() -> None:
    decoded = validate([])
    assert len(decoded.batch) == 0
    assert decoded.rejected == ()


def test_a_rejection_as_plain_data() -> None:
    schema = Schema(attributes={("n",): BUILT_IN["integer"]})
    (rejected,) = validate([{"n": "x"}], schema).rejected
    plain = rejected.to_dict()
    assert plain["position"] == 0
    assert plain["error"] == "InvalidValueError"
    assert "`n`" in plain["message"]
    assert plain["raw"] == "{'n': 'x'}"
    json.dumps(plain)


def test_limits_are_passed_on() -> None:
    decoded = validate([{"a": [1, 2, 3]}, {"a": [1]}], limits=Limits(max_event_values=2))
    assert decoded.batch.positions == (1,)


def test_only_the_names_that_are_given_are_looked_at() -> None:
    odd = {"a": 1, "blob": b"?", "id": uuid4(), "big": 1 << 65, "any": object(), 7: 8}
    decoded = validate([odd, {"b": 2}, {"a": b"?"}], names=frozenset("ab"))
    assert [event.attributes for event in decoded.batch] == [{"a": 1}, {"b": 2}]
    assert [rejected.position for rejected in decoded.rejected] == [2]
    assert decoded.batch.names == decoded.batch[:1].names == {"a", "b"}


def test_columns_that_are_not_named_are_not_looked_at() -> None:
    table = pa.table({"a": [1, 2], "blob": [b"1", b"2"], "blobs": [[b"1"], None]})
    for given in (table, table.to_batches()[0], pa.RecordBatchReader.from_batches(table.schema, table.to_batches())):
        batch = validate(given, names=frozenset("a")).batch
        assert [event.attributes for event in batch] == [{"a": 1}, {"a": 2}]
        assert not batch.cells(("blob",)).present.any()
    assert [event.attributes for event in validate(table, names=frozenset()).batch] == [{}, {}]
    twice = pa.table([[1], [b"2"], [b"3"]], ["a", "blob", "blob"])
    assert [event.attributes for event in validate(twice, names=frozenset("a")).batch] == [{"a": 1}]
    with pytest.raises(SourceError, match="`blobs` has the Arrow type binary"):
        validate(table, names=frozenset({"blobs"}))


@pytest.mark.parametrize("raw", [{"a": "x" * 10_000, "b": b""}, {f"k{n}": b"" for n in range(1_000)}, {"a": 10**5_000}])
def test_excerpts_are_short(raw: dict[str, Any]) -> None:
    (rejected,) = validate([raw]).rejected
    assert rejected.raw
    assert len(rejected.raw) <= 200


def test_a_rejection_does_not_keep_the_input_alive() -> None:
    class Payload:
        pass

    payload = Payload()
    gone = weakref.ref(payload)
    decoded = validate([{"a": payload}])
    del payload
    gc.collect()
    assert decoded.rejected
    assert gone() is None


class TestArrow:
    TABLE = pa.table({"a": [1, None, 3], "b": ["x", "y", None]})
    EXPECTED = ({"a": 1, "b": "x"}, {"b": "y"}, {"a": 3})

    @pytest.mark.parametrize(
        "rows",
        [TABLE, TABLE.to_batches()[0], TABLE.to_reader(), TABLE.to_pandas(types_mapper=pd.ArrowDtype)],
        ids=["table", "batch", "reader", "pandas"],
    )
    def test_tables_and_all_that_hands_out_arrow(self, rows: Any) -> None:
        decoded = validate(rows)
        assert tuple(event.attributes for event in decoded.batch) == self.EXPECTED
        assert tuple(decoded.batch.positions) == (0, 1, 2)

    def test_a_bad_cell_rejects_its_event_only(self) -> None:
        decoded = validate(pa.table({"n": pa.array([1, 2**63, 3], pa.uint64())}))
        assert decoded.batch.positions == (0, 2)
        assert "`n` is an integer beyond 64 bits" in decoded.rejected[0].error.message

    def test_arrow_data_that_has_no_columns(self) -> None:
        with pytest.raises(SourceError):
            validate(pa.chunked_array([[1, 2]]))
