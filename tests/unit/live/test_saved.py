"""Engines on disk."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harken import Engine, Limits
from harken.errors import DuplicateIdError, HarkenError, SegmentError, SubscriptionError, UnknownIdError
from harken.language.compiled import Compiler
from harken.matchers import ALGORITHMS
from harken.matchers.columnar import saving
from harken.schema import NewEventType, Schema, parse_schema
from harken.schema.event_types import EventType

EVENTS: list[dict[str, Any]] = [
    {"x": 1, "name": "one lamp"},
    {"x": 2.5, "tags": ["a", "b"]},
    {"x": None},
    {"name": "lamp"},
    {"x": [1, 9]},
]
OWN = saving.LAYOUT_OF[saving.INDEX]
TEXTS = {
    "one": "x = 1",
    "more": "x > 1 AND x < 3",
    "lamp": "name LIKE '%lamp%'",
    "tag": "tags CONTAINS 'b'",
    "either": "x = 9 OR name = 'lamp'",
    "all": "TRUE",
}


def answers(engine: Engine) -> list[list[str]]:
    return [sorted(ids) for ids in engine.match_batch(EVENTS).ids]


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.subscribe_many(TEXTS.items())
    return engine


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_what_was_saved_is_loaded(algorithm: str, tmp_path: Path) -> None:
    engine = Engine(algorithm=algorithm, limits=Limits(max_values=77))
    engine.subscribe_many(TEXTS.items())
    engine.subscribe("owned", "x = 1", fields={"owner": "Ada", "rank": 3})
    engine.unsubscribe("more")
    assert engine.save(tmp_path / "saved") == 1
    loaded = Engine.load(tmp_path / "saved")
    assert loaded.algorithm == algorithm
    assert loaded.internals.limits.max_values == 77
    assert loaded.version == engine.version == 1
    assert answers(loaded) == answers(engine)
    assert len(loaded) == len(engine)
    assert loaded.subscription("owned") == engine.subscription("owned")
    assert loaded.explain("lamp", EVENTS[0]).matched
    with pytest.raises(UnknownIdError):
        loaded.subscription("more")


def test_a_loaded_engine_goes_on(engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path)
    free = loaded.subscription("one").number
    loaded.unsubscribe("one")
    with pytest.raises(DuplicateIdError):
        loaded.subscribe("all", "x = 4")
    assert loaded.subscribe("new", "x = 1 AND name = 'one lamp'").number == free
    loaded.subscribe("all", "x = 2.5", replace=True)
    assert answers(loaded) == [["lamp", "new"], ["all", "more", "tag"], [], ["either", "lamp"], ["either"]]
    assert loaded.save(tmp_path) == 2
    again = Engine.load(tmp_path)
    assert answers(again) == answers(loaded)
    assert sorted(each.id for each in again) == sorted(each.id for each in loaded)
    assert answers(engine) != answers(again), "the first engine has seen nothing of it"


def test_an_engine_follows_what_others_save(engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path)
    follower, other = Engine.load(tmp_path, follow=True), Engine.load(tmp_path)
    engine.subscribe("late", "x IS NULL")
    engine.save(tmp_path)
    assert answers(follower) == answers(engine)
    assert follower.version == 2
    assert answers(other) != answers(engine)
    assert other.refresh()
    assert not other.refresh()
    assert answers(other) == answers(engine)


def test_another_process_sees_new_versions(engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path)
    program = (
        "import sys, harken\n"
        f"engine = harken.Engine.load({str(tmp_path)!r}, follow=True)\n"
        "for line in sys.stdin:\n"
        "    print(sorted(engine.match({'x': 77}).ids), flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        for expected in (["all"], ["all", "new 1"], ["all", "new 1", "new 2"]):
            reader.stdin.write("\n")
            reader.stdin.flush()
            assert reader.stdout.readline().strip() == str(expected)
            engine.subscribe(f"new {engine.version}", "x = 77")
            engine.save(tmp_path)
        reader.stdin.close()


def test_nobody_overwrites_what_another_saved(engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path)
    other = Engine.load(tmp_path)
    engine.save(tmp_path)
    other.subscribe("new", "x = 5")
    with pytest.raises(SegmentError, match="another writer"):
        other.save(tmp_path)
    with pytest.raises(SegmentError, match="has changes"):
        other.refresh()
    assert other.save(tmp_path / "elsewhere") == 1


def test_a_schema_is_saved_with_it(tmp_path: Path) -> None:
    text = """
[domains.kind]
type = "hierarchical"
[domains.kind.children]
Toy = ["Doll"]
[attributes]
c = "kind"
n = "integer"
"""
    schema = parse_schema(text)
    engine = Engine(schema)
    engine.subscribe_many([("toys", "c <= 'Toy'"), ("five", "n = 5")])
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path)
    assert loaded.schema == schema
    assert sorted(loaded.match({"c": "Doll", "n": 5}).ids) == ["five", "toys"]
    with pytest.raises(HarkenError):
        loaded.subscribe("wrong", "c = 'Car'")


def test_an_extended_schema(tmp_path: Path) -> None:
    engine = Engine(Schema(event_types={"sale": EventType("sale", {})}))
    engine.subscribe("sales", "event_type = 'sale'")
    engine.extend_schema(NewEventType(EventType("rental", {})))
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path)
    assert loaded.match({"event_type": "sale"}).ids == ["sales"]
    assert loaded.match({"event_type": "rental"}).ids == []


def test_an_empty_engine(tmp_path: Path) -> None:
    Engine().save(tmp_path)
    loaded = Engine.load(tmp_path)
    assert len(loaded) == 0
    assert loaded.match({"x": 1}).ids == []
    loaded.subscribe("a", "x = 1")
    assert loaded.match({"x": 1}).ids == ["a"]


def test_what_is_no_engine_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SegmentError):
        Engine.load(tmp_path / "nowhere")
    (tmp_path / "manifest.harken").write_text("{}", encoding="utf-8")
    with pytest.raises(SegmentError):
        Engine.load(tmp_path)


def test_other_options(engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path, layouts=("list",), small_rows=0)
    loaded.merge()
    layers = loaded.stats()["matcher"]["layers"]
    assert {group["layout"] for layer in layers for group in layer["groups"]} == {"list"}
    assert answers(loaded) == answers(engine)


def test_a_save_never_overwrites_what_somebody_else_saved_whatever_the_folder_is_called(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "real"
    engine.save(folder)
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    mine = Engine.load(folder)
    theirs = Engine.load("real")
    theirs.subscribe("theirs", "x = 1")
    theirs.save(tmp_path / "link")
    mine.subscribe("mine", "x = 2")
    for name in (folder, Path("real"), Path("link"), tmp_path / "." / "link"):
        with pytest.raises(SegmentError, match="changed by another writer"):
            mine.save(name)
    assert "theirs" in Engine.load(folder)


def test_nor_after_it_saved_elsewhere(engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path / "one")
    theirs = Engine.load(tmp_path / "one")
    theirs.subscribe("theirs", "x = 1")
    theirs.save(tmp_path / "one")
    engine.save(tmp_path / "two")
    with pytest.raises(SegmentError, match="changed by another writer"):
        engine.save(tmp_path / "one")
    engine.subscribe("mine", "x = 2")
    assert engine.save(tmp_path / "two") == 2


def save_as_an_earlier_one(engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setitem(saving.LAYOUT_OF, saving.INDEX, saving.LAYOUT_OF[saving.INDEX] - 1)
        engine.save(folder)


def test_an_index_of_an_earlier_harken_is_built_anew(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine.unsubscribe("more")
    save_as_an_earlier_one(engine, tmp_path, monkeypatch)
    with caplog.at_level(logging.WARNING, "harken"):
        loaded = Engine.load(tmp_path)
    assert "index of an earlier Harken is rebuilt" in caplog.text
    assert answers(loaded) == answers(engine)
    assert loaded.algorithm == "columnar"
    assert loaded.stats()["matcher"]["layers"][0]["groups"], "it is indexed, however small"
    loaded.subscribe("more", TEXTS["more"])
    assert loaded.save(tmp_path) == 2
    caplog.clear()
    assert answers(Engine.load(tmp_path)) == answers(loaded)
    assert not caplog.records


def test_an_index_of_an_earlier_harken_can_be_rejected(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_as_an_earlier_one(engine, tmp_path, monkeypatch)
    with pytest.raises(SegmentError, match=f"saved in layout {OWN - 1}, and this Harken reads layout {OWN}") as caught:
        Engine.load(tmp_path, rebuild=False)
    assert caught.value.hint == "load it with `Engine.load`, and save or publish it again"


def test_a_text_that_cannot_be_read_any_more_is_named_and_a_follower_stays_as_it_was(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.save(tmp_path)
    follower = Engine.load(tmp_path, follow=True)
    before = answers(follower)
    engine.subscribe("new", "x = 3")
    save_as_an_earlier_one(engine, tmp_path, monkeypatch)
    compile = Compiler.compile

    def reject(self: Compiler, where: str, *given: Any) -> Any:
        if where == "x = 3":
            raise SubscriptionError("that is not understood any more")
        return compile(self, where, *given)

    with monkeypatch.context() as stricter:
        stricter.setattr(Compiler, "compile", reject)
        for _ in range(2):
            with pytest.raises(SegmentError, match="subscription new cannot be compiled any more: that is not"):
                follower.match({"x": 3})
            assert follower.version == 1
    assert sorted(follower.match({"x": 3}).ids) == ["all", "new"]
    assert follower.version == 2
    assert answers(follower) == before


def test_an_index_of_a_later_harken_is_rejected(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        later.setitem(saving.LAYOUT_OF, saving.INDEX, OWN + 1)
        engine.save(tmp_path)
    with pytest.raises(SegmentError, match=f"saved in layout {OWN + 1}, and this Harken reads layout {OWN}") as caught:
        Engine.load(tmp_path)
    assert caught.value.hint == "use the Harken that saved it, or a later one"


def test_names_of_fields_are_saved(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.subscribe("owned", "x = 1", fields={"owner": "Ada", "rank": 3})
    engine.save(tmp_path)
    later = Engine.load(tmp_path)
    assert later.internals.field_names() == ["owner", "rank"]
    later.unsubscribe("owned")
    later.subscribe("other", "x = 2", fields={"channel": "mail"})
    assert later.internals.field_names() == ["channel"]
    later.save(tmp_path)
    assert Engine.load(tmp_path).internals.field_names() == ["channel"]
    monkeypatch.setattr("harken.live.saved._MOST_FIELD_NAMES", 0)  # as an engine that an earlier Harken saved
    later.save(tmp_path)
    assert Engine.load(tmp_path).internals.field_names() == ["channel"]
