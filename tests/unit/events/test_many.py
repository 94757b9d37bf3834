"""Many events: what is taken, and what is said of the rest."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pydantic
import pytest

from harken import Engine
from harken.errors import InvalidValueError, SourceError
from harken.events import Event, held, validate

Pair = namedtuple("Pair", "x y")


@dataclass
class Point:
    x: int


class Model(pydantic.BaseModel):
    x: int


EVENTS = [{"x": 1}, {"x": 2}]
TABLE = pa.Table.from_pylist(EVENTS)


@pytest.mark.parametrize("event", [{"a": 1}, Event.of({}), Pair(1, 2), Point(1), Model(x=1)])
def test_a_single_event_is_not_a_batch(event: Any) -> None:
    for take in (validate, held):
        with pytest.raises(InvalidValueError, match="iterable of mappings") as caught:
            take(event)
        assert caught.value.hint == "put a single event into a list"


def frame_of(library: str, name: str) -> Any:
    """Stands for a table of a library that is not here, or of a version that does not hand out Arrow data."""
    return type(name, (), {"__module__": f"{library}.inside"})()


@pytest.mark.parametrize(
    ("what", "named", "hint"),
    [
        (None, "not as None", "pass a list"),
        (7, "not as a int", "pass a list"),
        ("events.jsonl", "not as a str", "read_events"),
        (b'[{"x": 1}]', "not as a bytes", "json.loads"),
        (frame_of("polars", "LazyFrame"), "not as a LazyFrame", "`collect()`"),
        (frame_of("pyspark", "DataFrame"), "not as a DataFrame", "harken.spark.match"),
        (frame_of("pandas", "DataFrame"), "not as a DataFrame", "from_pandas"),
    ],
)
def test_what_is_no_collection_of_events(what: Any, named: str, hint: str) -> None:
    with pytest.raises(InvalidValueError, match=named) as caught:
        validate(what)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    "make",
    [
        lambda: iter(EVENTS),
        lambda: (each for each in EVENTS),
        lambda: tuple(EVENTS),
        lambda: map(dict, EVENTS),
        lambda: validate(EVENTS).batch,
        lambda: TABLE,
        lambda: TABLE.to_batches()[0],
        TABLE.to_reader,
        lambda: pd.DataFrame(EVENTS),
        lambda: pd.Series(EVENTS),
        lambda: pd.DataFrame(EVENTS).itertuples(index=False),
        lambda: pd.DataFrame(EVENTS).to_dict("records"),
    ],
)
def test_what_is_held_can_be_gone_through_twice(make: Any) -> None:
    events = held(make())
    assert [validate(events).batch for _ in range(2)] == [validate(EVENTS).batch] * 2


def test_of_a_frame_only_the_columns_that_are_named_go_to_arrow() -> None:
    frame = pd.DataFrame({"x": [1, 2], "odd": [object(), {1}], 7: [1, 2]}, index=["a", "b"])
    assert validate(frame, names=frozenset("x")).batch == validate(EVENTS).batch
    assert [event.attributes for event in validate(frame, names=frozenset()).batch] == [{}, {}]
    with pytest.raises(SourceError, match="cannot be read"):
        validate(frame, names=frozenset({"odd"}))


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(EVENTS)
    assert validate(held(frame), names=frozenset("x")).batch == validate(EVENTS).batch
    with pytest.raises(InvalidValueError) as caught:
        validate(frame.lazy())
    assert caught.value.hint == "`collect()` it first"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_stay_columns(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pytest.importorskip(library).DataFrame({"x": [1, 2], "s": ["a", "b"]})
    assert validate(held(frame)).batch.is_lazy
    engine = Engine()
    engine.subscribe("one", "x < 2 AND s = 'a'")
    engine.merge()  # what is not indexed yet is verified

    def reject(*raw: Any) -> None:
        raise AssertionError("an event was made")

    monkeypatch.setattr(Event, "of", reject)
    assert engine.match_batch(frame).ids == [["one"], []]
