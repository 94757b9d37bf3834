"""The index of programs: what goes there, changes while it matches, and what it learns."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from drawn import needs_laboratory
from harken import Engine, Limits
from harken.errors import ContradictionError, LanguageError
from harken.internals import join_engines
from harken.language import Compiler
from harken.language.compiled import FlatPlan, ProgramPlan
from harken.matchers.columnar.view import ColumnarView

EVENT: dict[str, Any] = {"cmd": "run --quiet payload.exe", "user": "eve", "size": 7}


def kind_of(text: str, limits: Limits | None = None) -> str:
    return Compiler(limits=limits or Limits()).compile(text).plan.kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("user = 'eve'", "flat"),
        ("cmd LIKE 'run%'", "flat"),
        ("cmd LIKE '%run'", "programs"),
        ("cmd NOT LIKE '%run%'", "programs"),
        ("user = 'eve' AND (cmd LIKE '%a%' OR size > 3)", "programs"),
        (" AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(4)), "flat"),
        (" AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(40)), "programs"),
    ],
)
def test_patterns_and_large_forms_go_to_programs(text: str, kind: str) -> None:
    assert kind_of(text) == kind


def test_no_form_is_too_large() -> None:
    """It would be two to the power of 200 conjunctions."""
    text = " AND ".join(f"(a{place} = 1 OR b{place} = 2)" for place in range(200))
    for algorithm in ("columnar", "counting_lists", "naive"):
        engine = Engine(algorithm=algorithm)
        engine.subscribe("large", text)
        assert engine.match({f"{'ab'[place % 2]}{place}": 1 + place % 2 for place in range(200)}).ids == ["large"]
        assert engine.match({f"{'ab'[place % 2]}{place}": 1 + place % 2 for place in range(199)}).ids == []


def test_other_algorithms_take_patterns_as_rows() -> None:
    engine = Engine(algorithm="naive")
    engine.subscribe("p", "cmd LIKE '%payload%'")
    assert engine.match(EVENT).ids == ["p"]
    assert "programs" not in engine.stats()


@pytest.mark.parametrize(
    "text",
    [
        "cmd LIKE '%a%' AND size = 1 AND size = 2",
        "cmd LIKE '%a%' AND cmd IS NULL",
        "(cmd LIKE '%a%' OR size = 1) AND cmd IS NULL AND size = 2",
        "cmd LIKE '%a%' AND (size = 1 OR user = 'x') AND size = 3 AND user = 'y'",
    ],
)
def test_contradictions_are_rejected(text: str) -> None:
    with pytest.raises(ContradictionError):
        Compiler().compile(text)


def test_what_is_always_true_is_told() -> None:
    compiled = Compiler().compile("cmd LIKE '%a%' OR TRUE")
    assert isinstance(compiled.plan, ProgramPlan | FlatPlan)
    assert compiled.plan.always
    assert compiled.warnings


def test_adding_and_removing_while_matching() -> None:
    engine = Engine()
    engine.subscribe_many((f"fixed{place}", f"cmd LIKE '%payload%' AND size < {place}") for place in range(20))
    failures: list[Any] = []
    stop = False

    def match() -> None:
        while not stop:
            found = set(engine.match(EVENT).ids)
            fixed = {f"fixed{place}" for place in range(8, 20)}
            if not fixed <= found or not found - fixed <= {"coming"}:
                failures.append(found)

    threads = [Thread(target=match) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        engine.subscribe("coming", "cmd LIKE '%quiet%'")
        engine.unsubscribe("coming")
    stop = True
    for thread in threads:
        thread.join()
    assert not failures
    assert len(engine.match(EVENT).ids) == 12


def test_a_replaced_text_is_found_by_its_new_form() -> None:
    engine = Engine()
    engine.subscribe("a", "cmd LIKE '%payload%'")
    assert engine.match(EVENT).ids == ["a"]
    engine.subscribe("a", "size = 8", replace=True)
    assert engine.match(EVENT).ids == []
    engine.subscribe("a", "cmd LIKE '%exe'", replace=True)
    assert engine.match(EVENT).ids == ["a"]


def test_without_any_pattern_what_left_is_forgotten() -> None:
    engine = Engine(limits=Limits(max_conjunctions=0))
    engine.subscribe("stays", "a = 1 OR b = 2")
    engine.subscribe("goes", "c = 3 OR d = 4")
    assert engine.match({"a": 1}).ids == ["stays"]
    engine.unsubscribe("goes")
    engine.merge()
    assert [engine.match(event).ids for event in ({"b": 2}, {"c": 3})] == [["stays"], []]


def test_saved_loaded_and_followed(tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe_many(
        (f"{place}", f"cmd LIKE '%load{'.' * (place % 3)}%' AND size > {place}") for place in range(9)
    )
    engine.subscribe("flat", "size = 7")
    engine.match_batch([EVENT] * 200)
    expected = sorted(engine.match(EVENT).ids)
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine", follow=True)
    assert sorted(loaded.match(EVENT).ids) == expected
    assert loaded.stats()["programs"]["indexes"][0]["events"] > 200
    engine.subscribe("more", "cmd LIKE '%--quiet%'")
    engine.unsubscribe("0")
    engine.save(tmp_path / "engine")
    assert sorted(loaded.match(EVENT).ids) == sorted({*expected, "more"} - {"0"})
    assert loaded.attributes() == {"cmd", "size"}


def test_cut_and_joined() -> None:
    engine = Engine()
    engine.subscribe_many((f"{place}", f"cmd LIKE '%load%' AND size > {place}") for place in range(9))
    engine.subscribe_many((f"flat{place}", f"size > {place}") for place in range(9))
    expected = sorted(engine.match(EVENT).ids)
    parts = engine.internals.cut(3)
    assert sorted(id for part in parts for id in part.match(EVENT).ids) == expected
    assert all(part.stats()["programs"]["subscriptions"] == 3 for part in parts)
    joined, twice = join_engines(parts)
    assert not twice
    assert sorted(joined.match(EVENT).ids) == expected


def test_the_cover_is_chosen_by_what_events_have() -> None:
    """Every event has the pattern, and few have the user: once that is learnt, few programs are run."""
    engine = Engine()
    engine.subscribe_many((f"{n}", f"cmd LIKE '%a pattern of every event%' AND user = 'u{n}'") for n in range(500))
    events = [{"cmd": "this is a pattern of every event", "user": f"u{n % 1000}"} for n in range(1_000)]
    for _ in range(2):
        found = engine.match_batch(events)
        assert list(found.counts) == [n % 1000 < 500 for n in range(1_000)]
    assert sum(found.candidates) < 2_000


def test_the_columns_of_patterns_are_compared_with_tables() -> None:
    import pyarrow as pa

    engine = Engine()
    engine.subscribe("a", "cmd LIKE '%x%' AND size = 1")
    engine.subscribe("b", "cmd LIKE '%x%' OR size = 1")
    found = engine.mismatches(pa.schema([("size", pa.int64()), ("cmdline", pa.string())]))
    assert (found.never, found.partly) == (1, 1)
    assert [(each.attribute, each.subscriptions) for each in found] == [("cmd", 2)]
    assert not engine.mismatches(pa.schema([("size", pa.int64()), ("cmd", pa.string())]))


def test_values_of_another_kind_fit_no_pattern() -> None:
    engine = Engine()
    engine.subscribe("like", "cmd LIKE '%1%'")
    engine.subscribe("unlike", "cmd NOT LIKE '%1%'")
    events = [{"cmd": 1}, {"cmd": None}, {}, {"cmd": "1"}, {"cmd": "2"}, {"cmd": ["1", 2]}, {"cmd": [2, "3", "1"]}]
    assert [sorted(ids) for ids in engine.match_batch(events).ids] == [
        *([], [], [], ["like"], ["unlike"]),
        *(["like"], ["like", "unlike"]),
    ]


def test_elements_of_one_array_are_bound_together() -> None:
    engine = Engine()
    engine.subscribe("same", "items.name LIKE '%bolt%' AND items.price < 5")
    engine.subscribe("either", "items.name LIKE '%bolt%' AND (items.price < 5 OR total > 100)")
    cheap = {"items": [{"name": "a bolt", "price": 9}, {"name": "a nut", "price": 1}], "total": 3}
    assert engine.match(cheap).ids == []
    assert engine.match({**cheap, "total": 101}).ids == ["either"]
    assert sorted(engine.match({"items": [{"name": "bolts", "price": 1}]}).ids) == ["either", "same"]


def test_a_table_replaces_subscriptions_of_any_kind() -> None:
    import pyarrow as pa

    engine = Engine()
    engine.subscribe("a", "x LIKE '%foo%'")
    predicates = [[{"attribute": "y", "operator": "=", "value": 1}]]
    assert engine.subscribe_many(pa.table({"id": ["a"], "predicates": predicates}), replace=True).accepted == 1
    engine.subscribe("c", "z = 7")
    assert engine.match({"x": "foo"}).ids == []
    assert engine.match({"x": "foo", "y": 1, "z": 7}).ids == ["a", "c"]
    engine.unsubscribe("c")
    assert engine.match({"y": 1, "z": 7}).ids == ["a"]


@needs_laboratory
def test_what_the_flat_index_has_no_room_for_leaves_nothing_behind() -> None:
    engine = Engine(algorithm="counting_bits", limits=Limits(max_matrix_bytes=400))
    large = " AND ".join(f"(a{place} = 1 OR b{place} = 2)" for place in range(40))
    report = engine.subscribe_many([*((f"f{n}", f"x{n} = {n}") for n in range(60)), ("p", large)])
    assert report.faults
    event = {f"a{place}": 1 for place in range(40)}
    assert engine.match(event).ids == (["p"] if "p" in engine else [])


@pytest.mark.parametrize("truth", ["TRUE", "FALSE"])
@pytest.mark.parametrize("tags", [5, "x", "z", [5, "z"], ["x", 5], None])
def test_contains_that_may_be_unknown(truth: str, tags: Any) -> None:
    event = {"tags": tags, "y": "a"}
    answers = []
    for algorithm in ("columnar", "naive"):
        engine = Engine(algorithm=algorithm)
        engine.subscribe("s", f"(tags CONTAINS 'x') IS NOT {truth} AND y LIKE '%a%'")
        answers += [engine.match(event).ids, engine.match_batch([event]).ids[0]]
    assert answers == [answers[-1]] * 4


def test_a_contradiction_is_the_fault_of_its_record_alone() -> None:
    engine = Engine(algorithm="naive")
    report = engine.subscribe_many([("good", "x = 1"), ("bad", "n = 'a' AND n LIKE 'b_x'")])
    assert report.accepted == 1
    assert [fault.id for fault in report.faults] == ["bad"]


def test_an_index_that_is_empty_again_is_cut() -> None:
    engine = Engine()
    engine.subscribe("p", "x LIKE '%foo%'")
    engine.subscribe("f", "x = 1")
    engine.unsubscribe("p")
    assert sorted(len(part) for part in engine.internals.cut(2)) == [0, 1]


def test_a_long_chain_of_alternatives_is_compiled_soon() -> None:
    links = " AND ".join(f"(x{place} = 2 OR x{place + 1} = 1)" for place in range(1_000))
    compiled = Compiler().compile(f"x0 = 1 AND z LIKE '%q%' AND {links}")
    assert compiled.plan.kind == "programs"
    engine = Engine()
    engine.subscribe("chain", compiled.text)
    assert engine.match({"z": "q", **{f"x{place}": 1 for place in range(1_001)}}).ids == ["chain"]
    assert engine.match({"z": "q", **{f"x{place}": 1 for place in range(1_000)}}).ids == []


def test_half_a_character_is_rejected_at_once() -> None:
    engine = Engine()
    for text in ("x LIKE '%\ud800%'", "x = '\ud800'"):
        with pytest.raises(LanguageError, match="a lone surrogate"):
            engine.subscribe("bad", text)


@pytest.mark.parametrize(("before", "after"), [("x LIKE '%foo%'", "y = 1"), ("y = 1", "x LIKE '%foo%'")])
def test_an_id_that_changes_its_kind_is_found_once(before: str, after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaced while a match goes from one of the two indexes to the other."""
    engine = Engine()
    engine.subscribe_many([("p", "x LIKE '%foo%' AND y = 2"), ("f", "y = 2 AND x = 'a'"), ("a", before)])
    original = ColumnarView.match_one
    searches: list[Any] = []

    def match_one(*given: Any) -> Any:
        searches.append(original(*given))
        engine.subscribe("a", after, replace=True)
        return searches[-1]

    monkeypatch.setattr(ColumnarView, "match_one", match_one)
    assert engine.match({"x": "foo", "y": 1}).ids == ["a"]
    assert len(searches) == 1
