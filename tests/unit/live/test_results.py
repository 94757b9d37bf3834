"""What matching tells, and that it stays true whatever happens to the subscriptions afterwards."""

from __future__ import annotations

import gc

import pyarrow as pa
import pytest

from harken import Engine


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.subscribe_many([("one", "x = 1"), ("all", "x >= 0"), ("dear", "price > 10")])
    return engine


EVENTS = [{"x": 1}, {"x": b"?"}, {"x": 2, "price": 11}, {}]


def test_every_event_has_its_place(engine: Engine) -> None:
    found = engine.match_batch(EVENTS)
    assert [sorted(ids) for ids in found.ids] == [["all", "one"], [], ["all", "dear"], []]
    assert found.counts == [2, 0, 2, 0]
    assert found.positions == [0, 1, 2, 3]
    assert found.offsets.tolist() == [0, 2, 2, 4, 4]
    assert len(found) == 4
    assert len(found.candidates) == 4
    assert [engine.subscription(id).number for id in found.ids[2]] == found.of(2).tolist()
    assert "4 events, 4 matches, 1 rejected" in repr(found)


def test_fields_of_what_matched(engine: Engine) -> None:
    engine.subscribe("owned", "x = 7", fields={"owner": "Ada"})
    found = engine.match_batch([{"x": 7}])
    fields = dict(zip(found.ids[0], map(found.fields, found.numbers.tolist()), strict=True))
    assert fields == {"all": {}, "owned": {"owner": "Ada"}}


def test_arrow(engine: Engine) -> None:
    found = engine.match_batch(EVENTS)
    assert found.arrow_ids().to_pylist() == found.ids
    assert found.arrow_ids().type == pa.large_list(pa.dictionary(pa.int32(), pa.large_string()))
    assert found.arrow_ids(plain=True).to_pylist() == found.ids
    assert found.arrow_ids(plain=True).type == pa.large_list(pa.large_string())
    assert found.arrow_numbers().to_pylist() == [found.of(i).tolist() for i in range(4)]


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_threads_give_the_same(engine: Engine, threads: int) -> None:
    events = [{"x": n % 3, "price": n} for n in range(50)]
    events.insert(7, {"x": b"?"})
    alone, shared = engine.match_batch(events), engine.match_batch(events, threads=threads)
    assert list(map(sorted, shared.ids)) == list(map(sorted, alone.ids))
    assert shared.counts == alone.counts
    assert shared.positions == alone.positions
    assert [each.position for each in shared.rejected] == [7]


def test_an_answer_holds_on_to_its_numbers(engine: Engine) -> None:
    number = engine.subscription("one").number
    found = engine.match_batch([{"x": 1}])
    engine.unsubscribe("one")
    assert engine.subscribe("other", "x = 5").number != number
    assert sorted(found.ids[0]) == ["all", "one"]
    assert sorted(found.arrow_ids().to_pylist()[0]) == ["all", "one"]
    del found
    gc.collect()
    assert engine.subscribe("another", "x = 6").number == number
