"""Saving the columnar matcher: what is loaded answers, changes, merges and is saved again as what was saved would."""

from __future__ import annotations

import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import numpy as np
import pytest

from drawn import generate
from harken.codes.flat import Flat
from harken.errors import ContradictionError, SegmentError
from harken.events.batch import validate
from harken.kernels import clusters, columnar, delta, pool, several
from harken.kernels import encode_values as encode
from harken.kernels.compile import IS_PLAIN
from harken.language import Compiler
from harken.language.ast import Expression
from harken.language.normal_form import NormalForm
from harken.language.sql.printer import print_expression
from harken.matchers import Entry
from harken.matchers.columnar import Columnar
from harken.matchers.columnar import saving as module
from harken.matchers.columnar.sample import Statistics
from harken.matchers.columnar.saving import load_matcher, load_statistics, save_state, save_statistics
from harken.reference import expressions as reference
from harken.schema import Schema
from harken.versions.folder import Folder
from properties.generators import Expressions, RawEvent, Vocabulary, nested_events, vocabulary_of
from properties.typed import SCHEMA, TypedVocabulary, typed_events

pytestmark = pytest.mark.seconds

SEED = int(os.environ.get("HARKEN_SEED") or SystemRandom().randrange(10**9))
OPTIONS: dict[str, dict[str, Any]] = {
    "as planned": {},
    "clusters": {"layouts": ("cluster",)},
    "lists": {"layouts": ("list",)},
    "pools": {"layouts": ("pool",)},
    "sketches": {"layouts": ("sketch",)},
    "sieves": {"layouts": ("sieve",)},
    "many layers": {"recent_rows": 8},
}


class Subscribed:
    """A matcher, with what an engine would keep for it, and the expressions for the reference."""

    def __init__(self, expressions: Expressions, schema: Schema | None = None, **options: Any) -> None:
        self.matcher = Columnar(background=False, **{"small_rows": 0, **options})
        self.schema = schema
        self.compiler = Compiler(schema)
        self.forms: dict[int, NormalForm] = {}
        self.expressions: dict[int, Expression] = {}
        self.source = expressions
        self.next = 0

    def add(self, count: int) -> None:
        entries = []
        for number in range(self.next, self.next + count):
            expression = self.source.expression()
            try:
                entries.append(Entry(number, self.compiler.compile(print_expression(expression))))
            except ContradictionError:
                continue
            self.expressions[number] = expression
            self.forms[number] = entries[-1].compiled.normal_form
        self.matcher.add(entries)
        self.next += count

    def remove(self, count: int) -> None:
        gone = self.source.rng.sample(sorted(self.expressions), count)
        self.matcher.remove(gone)
        for number in gone:
            del self.expressions[number]

    def check(self, events: list[RawEvent]) -> int:
        batch = validate(events, self.schema).batch
        assert len(batch) == len(events)
        found = 0
        for raw, numbers in zip(events, self.matcher.match(batch, self.forms.__getitem__).by_event(), strict=True):
            expected = {
                number for number, each in self.expressions.items() if reference.matches(each, raw, self.schema)
            }
            assert len(numbers) == len(set(numbers))
            assert set(numbers) == expected, f"HARKEN_SEED={SEED}"
            found += len(numbers)
        return found

    def reload(self, folder: Folder) -> None:
        """Save the matcher, and go on with what is loaded."""
        save(self.matcher, folder)
        self.matcher = load(folder)


def lasting(matcher: Columnar) -> dict[str, Any]:
    """What a matcher tells of itself, but for what its batches took: that is not saved."""
    return {key: value for key, value in matcher.stats().items() if key not in ("besides", "seen_ns")}


def save(matcher: Columnar, folder: Folder) -> None:
    with folder.publishing() as draft:
        matcher.save(draft.write)


def load(folder: Folder, **options: Any) -> Columnar:
    found = load_matcher(folder.open().files, **options)
    assert found is not None
    return found


def workload(name: str, subscriptions: int = 5_000, **options: Any) -> tuple[Columnar, Any]:
    """A matcher with a workload, and a batch of its events."""
    drawn = generate(name, subscriptions=subscriptions, events=100)
    matcher = Columnar(background=False, **{"small_rows": 0, **options})
    matcher.add_flat(Flat.of_predicates(np.arange(subscriptions, dtype=np.int32), drawn.predicates))
    return matcher, validate(drawn.events).batch


def answers(matcher: Columnar, batch: Any) -> list[set[int]]:
    return list(map(set, matcher.match(batch, _no_form).by_event()))


def _no_form(number: int) -> NormalForm:
    raise AssertionError("rows of workloads are exact")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "saved")


# Round trips


def go_round(
    rng: Random, vocabulary: Vocabulary, events: list[RawEvent], schema: Schema | None, options: Any, folder: Folder
) -> int:
    subscribed = Subscribed(Expressions(rng, vocabulary), schema, **options)
    subscribed.add(50)
    found = subscribed.check(events)
    subscribed.reload(folder)
    found += subscribed.check(events)
    subscribed.remove(12)
    subscribed.check(events)
    subscribed.reload(folder)  # with deletes, and nothing to merge
    subscribed.check(events)
    subscribed.add(12)
    subscribed.remove(5)
    subscribed.check(events)
    subscribed.reload(folder)
    subscribed.check(events)
    subscribed.matcher.merge()
    subscribed.reload(folder)
    return found + subscribed.check(events)


@pytest.mark.parametrize("options", OPTIONS)
def test_round_trip_without_a_schema(folder: Folder, options: str) -> None:
    rng = Random(f"{SEED} {options}")
    events = nested_events(rng, 25)
    go_round(rng, vocabulary_of(events), events, None, OPTIONS[options], folder)


@pytest.mark.parametrize("options", OPTIONS)
def test_round_trip_with_a_schema(folder: Folder, options: str) -> None:
    rng = Random(f"{SEED} {options}")
    vocabulary = TypedVocabulary(rng)
    assert go_round(rng, vocabulary, typed_events(rng, vocabulary, 25), SCHEMA, OPTIONS[options], folder) > 50


@pytest.mark.parametrize("name", ["stock", "le-subscribe", "gryphon", "w4"])
def test_round_trip_of_workloads(folder: Folder, name: str) -> None:
    matcher, batch = workload(name)
    expected = answers(matcher, batch)
    save(matcher, folder)
    loaded = load(folder)
    assert lasting(loaded) == lasting(matcher)
    assert answers(loaded, batch) == expected
    assert loaded.stats()["events_seen"] == 200
    loaded.merge()
    assert answers(loaded, batch) == expected
    gone = set(range(0, 5_000, 3))
    loaded.remove(gone)
    assert answers(loaded, batch) == [numbers - gone for numbers in expected]


def test_empty_matcher(folder: Folder) -> None:
    save(Columnar(), folder)
    loaded = load(folder)
    assert loaded.stats()["rows"] == 0
    assert answers(loaded, validate([{"a": 1}]).batch) == [set()]
    matcher, batch = workload("stock")
    drawn = generate("stock", subscriptions=5_000, events=0)
    loaded.add_flat(Flat.of_predicates(np.arange(5_000, dtype=np.int32), drawn.predicates))
    assert answers(loaded, batch) == answers(matcher, batch)


def test_options_are_kept_unless_others_are_given(folder: Folder) -> None:
    matcher, _ = workload("gryphon", layouts=("list",), recent_rows=16)
    save(matcher, folder)
    assert {group["layout"] for group in merged_groups(load(folder))} == {"list"}
    assert {group["layout"] for group in merged_groups(load(folder, layouts=("pool",)))} == {"pool"}


def merged_groups(matcher: Columnar) -> list[dict[str, Any]]:
    matcher.merge()
    return list(matcher.stats()["layers"][0]["groups"])


# What saving does not touch


def test_deletes_after_saving_are_not_in_the_file(folder: Folder) -> None:
    matcher, batch = workload("stock")
    expected = answers(matcher, batch)
    save(matcher, folder)
    load(folder).remove(range(5_000))
    assert answers(load(folder), batch) == expected


def test_a_state_is_not_touched_by_changes_that_come_later(folder: Folder) -> None:
    matcher, batch = workload("stock")
    matcher.remove(range(10))
    expected = answers(matcher, batch)
    state = matcher.state()
    matcher.remove(range(10, 1_000))
    matcher.learn(batch)
    matcher.merge()
    with folder.publishing() as draft:
        save_state(state, draft.write)
    loaded = load(folder)
    assert loaded.stats()["deleted_rows"] == 10
    assert answers(loaded, batch) == expected


def test_nothing_is_merged_if_all_is_in_the_base(folder: Folder) -> None:
    matcher, _ = workload("stock")
    merges = matcher.stats()["merges"]
    save(matcher, folder)
    assert matcher.stats()["merges"] == load(folder).stats()["merges"] == merges


@pytest.mark.skipif(IS_PLAIN, reason="nothing is compiled")
def test_nothing_is_compiled_for_arrays_of_files(folder: Folder) -> None:
    rng = Random(3)
    vocabulary = TypedVocabulary(rng)
    events = typed_events(rng, vocabulary, 20)
    subscribed = Subscribed(Expressions(rng, vocabulary), SCHEMA)

    def go_through_all() -> None:
        subscribed.check(events)
        subscribed.remove(2)
        subscribed.add(2)
        subscribed.check(events)
        subscribed.matcher.merge()

    subscribed.add(60)
    subscribed.matcher.merge()
    go_through_all()
    before = compiled()
    subscribed.reload(folder)
    go_through_all()
    assert compiled() == before


def compiled() -> dict[str, int]:
    """How often each kernel was compiled, for unlike types."""
    return {
        f"{module.__name__}.{name}": len(function.signatures)
        for module in (clusters, columnar, delta, encode, pool, several)
        for name, function in vars(module).items()
        if hasattr(function, "signatures")
    }


def test_loading_copies_no_rows(folder: Folder) -> None:
    matcher, _ = workload("le-subscribe", 100_000)
    save(matcher, folder)
    load(folder)  # what Python keeps of the first time is no copy
    tracemalloc.start()
    try:
        load(folder)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 500_000, "five bytes a row, of some seventeen"


# Statistics


def given(matcher: Columnar, folder: Folder) -> Statistics:
    """The statistics of a matcher by way of a file."""
    with folder.publishing() as draft:
        save_statistics(matcher.statistics(), draft.write)
    return load_statistics(folder.open().files)


def choices(matcher: Columnar) -> list[Any]:
    groups = merged_groups(matcher)
    return [(group["layout"], group["rows"], group.get("key"), group.get("directory")) for group in groups]


def expected_costs(matcher: Columnar) -> list[float]:
    return [group["expected_ns"] for group in matcher.stats()["layers"][0]["groups"]]


@pytest.mark.parametrize("name", ["le-subscribe", "gryphon", "stock"])
def test_statistics_plan_another_matcher_alike(folder: Folder, name: str) -> None:
    matcher, batch = workload(name)
    matcher.learn(batch)
    statistics = given(matcher, folder)
    assert len(statistics) == 100
    drawn = generate(name, subscriptions=5_000, events=0)
    other = Columnar(background=False)
    other.give(statistics)  # before it knows of any attribute
    other.add_flat(Flat.of_predicates(np.arange(5_000, dtype=np.int32), drawn.predicates))
    expected = choices(matcher)
    assert other.stats()["events_sampled"] == 100
    assert choices(other) == expected
    assert expected_costs(other) == pytest.approx(expected_costs(matcher), rel=1e-3)


def test_statistics_survive_other_constants(folder: Folder) -> None:
    """Most events are rare toys: whoever is told so looks up toys by their price."""
    events = [{"kind": "toy", "price": price} for price in range(100)]
    texts = [f"kind = 'toy' AND price = {price}" for price in range(0, 90, 2)]
    learnt = of_texts(texts)
    learnt.learn(validate(events).batch)
    other = of_texts([f"kind = '{kind}' AND price = {price}" for kind in ("toy", "car") for price in range(1, 60, 2)])
    other.give(given(learnt, folder))
    other.merge()
    statistics = other.statistics()
    place = next(i for i, column in enumerate(statistics.columns) if column.path == ("kind",))
    assert set(statistics.dictionaries[place].constants.to_pylist()) == {"toy"}
    assert (statistics.codes[place] == 2).all()
    prices = statistics.codes[1 - place]
    # What was 4, known to the one, lies between 3 and 5, known to the other.
    assert len(set(prices.tolist())) == 31
    assert (prices % 2 == 1).all()


def test_statistics_of_attributes_that_come_later(folder: Folder) -> None:
    learnt = of_texts(["a = 1 AND b = 1", "a = 2", "b = 2"])
    learnt.learn(validate([{"a": 1, "b": 1}] * 9 + [{"a": 2, "b": 3}]).batch)
    other = of_texts(["a = 1"])
    other.give(given(learnt, folder))
    other.merge()
    other.add(entries(["b = 1 AND c = 1"], 1))
    answers_of(other, [{"a": 1}, {"b": 1}])
    other.merge()
    statistics = other.statistics()
    known = {".".join(column.path): codes for column, codes in zip(statistics.columns, statistics.codes, strict=True)}
    assert (known["b"] == 2).mean() >= 0.9  # 1, the only constant
    save(other, folder)
    assert lasting(load(folder)) == lasting(other)
    assert {column.path for column in load(folder).statistics().columns} >= {("a",), ("b",)}


def test_given_statistics_are_saved_with_a_matcher(folder: Folder, tmp_path: Path) -> None:
    learnt = of_texts(["later = 1"])
    learnt.learn(validate([{"later": 1}]).batch)
    other = of_texts(["a = 1"])
    other.give(given(learnt, Folder(tmp_path / "statistics")))
    save(other, folder)
    assert ("later",) in {column.path for column in load(folder).statistics().columns}


def test_statistics_of_nothing(folder: Folder) -> None:
    matcher = Columnar()
    assert len(given(matcher, folder)) == 0
    matcher.give(matcher.statistics())
    assert matcher.stats()["events_sampled"] == 0


def entries(texts: list[str], first: int = 0) -> list[Entry]:
    compiler = Compiler(None)
    return [Entry(number, compiler.compile(text)) for number, text in enumerate(texts, first)]


def of_texts(texts: list[str]) -> Columnar:
    matcher = Columnar(background=False)
    matcher.add(entries(texts))
    matcher.merge()
    return matcher


def answers_of(matcher: Columnar, events: list[RawEvent]) -> None:
    forms = {each.number: each.compiled.normal_form for each in entries(["b = 1 AND c = 1"], 1)}
    matcher.match(validate(events).batch, forms.__getitem__)


# Rejections


def test_other_layout_is_rejected(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.LAYOUT_OF, module.INDEX, 99)
    save(Columnar(), folder)
    monkeypatch.undo()
    with pytest.raises(
        SegmentError, match=rf"saved in layout 99, and this Harken reads layout {module.LAYOUT_OF[module.INDEX]}"
    ):
        load(folder)


def test_what_is_not_there_is_told(folder: Folder) -> None:
    with folder.publishing() as draft:
        save_statistics(Columnar().statistics(), draft.write)
    files = folder.open().files
    assert load_matcher(files) is None
    with pytest.raises(SegmentError, match="have no index of"):
        load_matcher({"index": replace(files["statistics"])})
