"""Answers as data frames and as HTML: a row for each match, everything escaped, and long tables cut."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from harken import Engine
from harken.errors import MissingExtraError
from harken.live.notebook import MOST_SHOWN, columns_of, html_table

EVENTS = [{"x": 1}, {"x": b"?"}, {"x": 2, "price": 11}, {}]


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.subscribe_many([("one", "x = 1"), {"id": "all", "where": "x >= 0", "owner": "Ada", "tags": [1]}])
    return engine


def rows_of(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None))


# Data frames


def test_a_row_for_every_match(engine: Engine) -> None:
    frame = engine.match_batch(EVENTS).to_pandas()
    assert list(frame.columns) == ["event", "subscription", "owner", "tags"]
    assert rows_of(frame) == [(0, "all", "Ada", "[1]"), (0, "one", None, None), (2, "all", "Ada", "[1]")]
    assert frame["event"].dtype == "int64"


def test_matches_of_one_event(engine: Engine) -> None:
    frame = engine.match({"x": 1}).to_pandas()
    assert list(frame.columns) == ["subscription"]
    assert sorted(frame["subscription"]) == ["all", "one"]


def test_no_matches_keep_the_columns(engine: Engine) -> None:
    assert list(engine.match_batch([{}]).to_pandas().columns) == ["event", "subscription", "owner", "tags"]
    assert len(engine.match_batch([]).to_pandas()) == 0
    assert list(engine.match({}).to_pandas().columns) == ["subscription"]


def test_a_frame_keeps_what_matched_then(engine: Engine) -> None:
    found = engine.match_batch([{"x": 1}])
    engine.unsubscribe("one")
    engine.subscribe("other", "x = 1")
    assert sorted(found.to_pandas()["subscription"]) == ["all", "one"]


def test_events_are_told_by_their_positions_whatever_threads_do(engine: Engine) -> None:
    events = [{"x": n % 2} for n in range(50)]
    frame = engine.match_batch(events, threads=3).to_pandas()
    assert [event for event, id, *_ in rows_of(frame) if id == "one"] == list(range(1, 50, 2))


def test_fields_that_are_called_like_our_columns() -> None:
    assert columns_of(["owner", "event", "event_"]) == {"owner": "owner", "event": "event__", "event_": "event_"}
    engine = Engine()
    engine.subscribe("a", "x = 1", fields={"event": "sale", "subscription": "gold"})
    assert engine.match_batch([{"x": 1}]).to_pandas().to_dict("records") == [
        {"event": 0, "subscription": "a", "event_": "sale", "subscription_": "gold"}
    ]


def test_polars_is_given_the_same_table(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    polars = ModuleType("polars")
    polars.from_arrow = lambda table: table  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "polars", polars)
    table = engine.match_batch(EVENTS).to_polars()
    assert isinstance(table, pa.Table)
    assert rows_of(table.to_pandas()) == rows_of(engine.match_batch(EVENTS).to_pandas())
    assert engine.match({"x": 1}).to_polars().column_names == ["subscription"]


def test_polars_itself(engine: Engine) -> None:
    pytest.importorskip("polars")
    frame = engine.match_batch(EVENTS).to_polars()
    assert sorted(frame.rows()) == [(0, "all", "Ada", "[1]"), (0, "one", None, None), (2, "all", "Ada", "[1]")]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_not_there(engine: Engine, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    for found in (engine.match({"x": 1}), engine.match_batch(EVENTS)):
        with pytest.raises(MissingExtraError, match=f"this needs {library}, which is not installed") as caught:
            getattr(found, f"to_{library}")()
        assert caught.value.hint == f"pip install {library}"


# HTML


def test_a_table_is_escaped() -> None:
    engine = Engine()
    engine.subscribe("<b>&", "x = 1", fields={"<i>": "<script>"})
    for shown in (engine.match({"x": 1})._repr_html_(), engine.match_batch([{"x": 1}])._repr_html_()):
        assert "&lt;b&gt;&amp;" in shown
        assert "<b>" not in shown
        assert "<script>" not in shown
        assert "<i>" not in shown


def test_a_batch_in_short(engine: Engine) -> None:
    shown = engine.match_batch(EVENTS)._repr_html_()
    assert "<p>4 events, 3 matches, 1 rejected</p>" in shown
    for cell in ("event", "subscription", "owner", "tags"):
        assert f">{cell}</th>" in shown
    assert ">Ada</td>" in shown
    assert "more" not in shown


def test_long_tables_are_cut(engine: Engine) -> None:
    events = [{"x": 0}] * (MOST_SHOWN + 5)
    shown = engine.match_batch(events)._repr_html_()
    assert shown.count("<tr>") == 1 + MOST_SHOWN
    assert "… and 5 more" in shown
    assert "x" * 201 not in html_table("t", ["a"], [["x" * 1_000]])


def test_one_event(engine: Engine) -> None:
    assert "<p>1 match</p>" in engine.match({"x": 5})._repr_html_()
    assert "<p>0 matches</p>" in engine.match({})._repr_html_()


def test_an_engine() -> None:
    engine = Engine()
    engine.subscribe("a", "x = 1")
    engine.subscribe("b", "/a", "xpath")
    shown = engine._repr_html_()
    assert "<p>Engine: 2 subscriptions, columnar</p>" in shown
    assert ">algorithm</td>" in shown
    assert ">matcher: rows</td>" in shown
    assert ">documents: subscriptions</td>" in shown
    assert len(shown) < 3_000


def test_an_explanation_is_escaped_and_coloured(engine: Engine) -> None:
    shown = engine.explain(text="x = 1 AND name = '<b>' OR y < 2", event={"x": 1, "name": "<i>"})._repr_html_()
    assert shown.startswith("<p><b>does not match</b></p><pre>")
    assert "&lt;b&gt;" in shown
    assert "&lt;i&gt;" in shown
    assert "<i>" not in shown
    for mark, colour in (("✓", "green"), ("✗", "red"), ("?", "darkorange")):
        assert f'<span style="color: {colour}">{mark}</span>' in shown
