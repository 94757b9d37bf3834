"""The columnar matcher through the engine: what it looks at, what it chooses, and that nothing throws it off."""

from __future__ import annotations

import operator
import threading
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from harken import Engine
from harken.errors import CapabilityError
from harken.kernels.runs import Runs
from harken.matchers import candidates
from harken.matchers.columnar import Columnar, index, match_one, matcher
from harken.matchers.columnar.columnar_settings import DEFAULT_SETTINGS
from harken.matchers.columnar.costs import LAYOUT_NAMES
from harken.matchers.verify import is_match


def columnar(**options: Any) -> Engine:
    """An engine that indexes however few rows there are."""
    return Engine(algorithm="columnar", background=False, **{"small_rows": 0, **options})


def layouts(engine: Engine) -> set[str]:
    engine.merge()
    return {group["layout"] for layer in engine.stats()["matcher"]["layers"] for group in layer["groups"]}


# Chunks


@pytest.fixture(scope="module")
def crowd() -> tuple[dict[str, str], list[dict[str, int]], list[list[str]]]:
    """Subscriptions, events of which some match thousands, and what they match."""
    draw = Random(5)
    texts = [f"x > {draw.randrange(300)} AND y > {draw.randrange(300)}" for _ in range(5_000)]
    texts += [f"a = {draw.randrange(50)} AND x < {draw.randrange(1_000)}" for _ in range(2_000)]
    texts += [f"b = {draw.randrange(9)} AND c <> {draw.randrange(9)}" for _ in range(2_000)]
    names = {"a": 50, "b": 9, "c": 9, "x": 1_000, "y": 1_000}
    events = [{name: draw.randrange(top) for name, top in names.items() if draw.random() < 0.9} for _ in range(400)]
    subscriptions = {str(number): text for number, text in enumerate(texts)}
    pytest.importorskip("harken_lab", reason="another quick algorithm is the judge")
    counting = Engine(algorithm="counting_lists")
    counting.subscribe_many(subscriptions.items())
    return subscriptions, events, [sorted(ids) for ids in counting.match_batch(events).ids]


@pytest.mark.seconds
@pytest.mark.parametrize(
    "allowed", [("cluster",), ("sketch",), ("list",), ("pool", "cluster"), ("sieve",), LAYOUT_NAMES]
)
@pytest.mark.parametrize("is_narrow", [False, True])
def test_what_does_not_fit_is_taken_in_smaller_chunks(
    crowd: tuple[dict[str, str], list[dict[str, int]], list[list[str]]],
    allowed: tuple[str, ...],
    is_narrow: bool,
) -> None:
    narrow = {"chunk_events": 64, "least_passed": 0, "most_visits": 0}
    subscriptions, events, expected = crowd
    engine = columnar(layouts=allowed, settings=narrow if is_narrow else {})
    engine.subscribe_many(subscriptions.items())
    engine.merge()
    times = 12  # more events than a chunk has, and more ids than the cache
    found = engine.match_batch(events * times)
    assert [sorted(ids) for ids in found.ids[: len(events)]] == expected
    assert found.counts == [len(ids) for ids in expected] * times
    numbers, size = found.numbers, int(found.offsets[len(events)])
    for turn in range(1, times):
        assert (numbers[turn * size : (turn + 1) * size] == numbers[:size]).all()


# What it looks at


def test_a_key_leads_to_few_candidates() -> None:
    engine = columnar()
    engine.subscribe_many((n, f"symbol = 'S{n % 500}' AND price < {n}") for n in range(5_000))
    engine.merge()
    found = engine.match({"symbol": "S7", "price": 2_500})
    assert sorted(map(int, found.ids)) == [n for n in range(7, 5_000, 500) if n > 2_500]
    assert found.candidates <= 10


def test_a_range_cuts_the_run_short() -> None:
    engine = columnar()
    engine.subscribe_many((n, f"price >= {n}") for n in range(3_000))
    engine.merge()
    found = engine.match({"price": 9})
    assert found.candidates == len(found.ids) == 10


@pytest.mark.seconds
@pytest.mark.parametrize("layout", ["cluster", "sketch"])
@pytest.mark.parametrize("size", [1, 63, 64, 65, 127, 128, 4_096, 4_160, 40_000])
def test_ranges_without_a_key_end_where_they_should(size: int, layout: str) -> None:
    draw = Random(size)
    bounds = draw.sample(range(0, 3 * size, 3), size)  # of 40,000 constants codes are wide
    engine = columnar(layouts=[layout])
    engine.subscribe_many((f"u{n}", f"up <= {bound}") for n, bound in enumerate(bounds))
    engine.subscribe_many((f"d{n}", f"down >= {bound}") for n, bound in enumerate(bounds))
    engine.subscribe_many((f"w{n}", f"within BETWEEN {bound} AND {bound + 90}") for n, bound in enumerate(bounds))
    engine.merge()
    values = [-1, 3 * size, *draw.choices(bounds, k=4), *(draw.choice(bounds) + 1 for _ in range(4))]
    expected = [
        {f"u{n}" for n, bound in enumerate(bounds) if value <= bound}
        | {f"d{n}" for n, bound in enumerate(bounds) if value >= bound}
        | {f"w{n}" for n, bound in enumerate(bounds) if bound <= value <= bound + 90}
        for value in values
    ]
    found = engine.match_batch([{"up": value, "down": value, "within": value} for value in values])
    for ids, true in zip(found.ids, expected, strict=True):
        assert len(ids) == len(true)
        assert set(ids) == true


def filters(engine: Engine) -> list[list[str]]:
    engine.merge()
    groups = [group for layer in engine.stats()["matcher"]["layers"] for group in layer["groups"]]
    return sorted([group["key"], *group["filter"]] for group in groups if group["filter"])


@pytest.mark.seconds
@pytest.mark.parametrize("layout", ["cluster", "sketch"])
def test_a_filter_keeps_events_from_what_they_cannot_match(layout: str) -> None:
    draw = Random(4)
    asked = {n: (draw.randrange(60), draw.randrange(80), draw.randrange(100)) for n in range(3_000)}
    engine = columnar(layouts=[layout])
    engine.subscribe_many((n, f"a = {a} AND b = 'v{b}' AND c < {c}") for n, (a, b, c) in asked.items())
    assert filters(engine) == [["b string", "a number"]]
    (group,) = engine.stats()["matcher"]["layers"][0]["groups"]
    assert 0 < group["expected_candidates"] < 0.8 * 3_000 / 80, "without a filter all rows of a key are expected"
    events = [(draw.randrange(62), draw.randrange(82), draw.randrange(100)) for _ in range(2_000)]

    def check() -> None:
        expected = [
            {str(n) for n, (a, b, c) in asked.items() if (a, b) == event[:2] and event[2] < c} for event in events
        ]
        found = engine.match_batch([{"a": a, "b": f"v{b}", "c": c} for a, b, c in events])
        assert [set(ids) for ids in found.ids] == expected
        agreeing = {(a, b) for a, b, _ in asked.values()}
        away = [n for (a, b, _), n in zip(events, found.candidates, strict=True) if (a, b) not in agreeing]
        assert sum(n > 0 for n in away) < len(away) / 10, "most events that no row agrees with are not led to any"

    check()
    for n in range(0, 3_000, 3):
        engine.unsubscribe(str(n))
        del asked[n]
    check()
    engine.merge()
    check()
    several = engine.match({"a": [asked[1][0], asked[2][0]], "b": [f"v{asked[1][1]}", f"v{asked[2][1]}"], "c": [-1]})
    pairs = [(a, b) for a in {asked[1][0], asked[2][0]} for b in {asked[1][1], asked[2][1]}]
    assert set(several.ids) == {str(n) for n, (a, b, _) in asked.items() if (a, b) in pairs}
    assert not engine.match({"a": asked[1][0], "c": 0}).ids
    assert not engine.match({"a": asked[1][0] + 0.5, "b": f"v{asked[1][1]}", "c": 0}).ids


def test_there_is_no_filter_where_most_events_would_pass_it_or_rows_ask_for_ranges() -> None:
    draw = Random(4)
    engine = columnar(layouts=["cluster"])
    engine.subscribe_many((n, f"a = {n % 20} AND b = {draw.randrange(20)} AND c < {n}") for n in range(3_000))
    engine.subscribe_many(
        (f"r{n}", f"k = {n} AND m {draw.choice('=<')} {draw.randrange(90)} AND o < {n}") for n in range(3_000)
    )
    assert not filters(engine)


def test_a_prefix_is_a_range_of_strings() -> None:
    engine = columnar()
    engine.subscribe_many((n, f"name LIKE 'n{n:05}%'") for n in range(2_000))
    engine.merge()
    found = engine.match({"name": "n00123 and more"})
    assert found.ids == ["123"]
    assert found.candidates < 1_500, "a run of a range with two ends is cut at one of them"


def test_what_cannot_be_indexed_is_verified_and_the_rest_is_not_looked_at() -> None:
    engine = columnar()
    engine.subscribe_many((n, f"symbol = 'S{n % 100}' AND title LIKE '%word{n} %'") for n in range(1_000))
    engine.merge()
    found = engine.match({"symbol": "S1", "title": "a word101 b"})
    assert found.ids == ["101"]
    assert found.candidates <= 20


def test_rows_that_a_directory_does_not_tell_apart_get_a_directory_of_their_own() -> None:
    rng = Random(11)
    asked = {n: (rng.randrange(8), rng.randrange(10), rng.randrange(8), rng.randrange(4)) for n in range(12_000)}
    event = {f"a{i}": i % 4 for i in range(8)}

    def expected(event: dict[str, Any]) -> list[int]:
        values = {name: value if isinstance(value, list) else [value] for name, value in event.items()}
        return [n for n, (a, v, b, u) in asked.items() if v in values[f"a{a}"] and any(x != u for x in values[f"b{b}"])]

    event |= {f"b{i}": (i + 1) % 4 for i in range(8)}
    engine = columnar(layouts=["pool"])
    engine.subscribe_many((n, f"a{a} = {v} AND b{b} <> {u}") for n, (a, v, b, u) in asked.items())
    assert layouts(engine) == {"pool"}
    assert sum(len(layer["groups"]) for layer in engine.stats()["matcher"]["layers"]) > 1
    found = engine.match(event)
    assert sorted(map(int, found.ids)) == expected(event)
    assert found.candidates < 8_000, "by one directory of two attributes every event would look at 9,000 and more"
    for n in range(0, 12_000, 5):
        engine.unsubscribe(str(n))
        del asked[n]
    assert sorted(map(int, engine.match(event).ids)) == expected(event)
    engine.merge()
    assert sorted(map(int, engine.match(event).ids)) == expected(event), "rows are read back from all pools"
    several = event | {"a1": [1, 3], "b2": [0, 3]}
    assert sorted(map(int, engine.match(several).ids)) == expected(several)


@pytest.mark.seconds
def test_few_values_go_to_a_pool_and_many_to_clusters() -> None:
    rng = Random(7)
    small = columnar()
    names = [f"a{i}" for i in range(12)]
    small.subscribe_many(
        (n, " AND ".join(f"{name} = {rng.randrange(4)}" for name in rng.sample(names, 4))) for n in range(6_000)
    )
    assert layouts(small) == {"pool"}
    large = columnar()
    large.subscribe_many((n, f"user = 'u{n}' AND price < {rng.randrange(1_000)}") for n in range(6_000))
    assert layouts(large) <= {"cluster", "list"}


def test_events_teach_which_key_is_better() -> None:
    """By their constants the two attributes look alike; events tell that one of them is nearly always the same."""
    engine = columnar()
    engine.subscribe_many((n, f"country = 'c{n % 200}' AND city = 'c{n // 5 % 200}'") for n in range(4_000))
    rng = Random(5)
    engine.learn([{"country": "c7", "city": f"c{rng.randrange(200)}"} for _ in range(500)])
    groups = engine.stats()["matcher"]["layers"][0]["groups"]
    assert {group["key"] for group in groups} == {"city string"}
    engine.learn([{"country": f"c{rng.randrange(200)}", "city": "c3"} for _ in range(5_000)])
    groups = engine.stats()["matcher"]["layers"][0]["groups"]
    assert {group["key"] for group in groups} == {"country string"}


@pytest.mark.seconds
def test_attributes_that_come_together_are_planned_so() -> None:
    """Of four kinds of events each has attributes of its own. Rows go where they would go without the others."""
    rng = Random(3)

    def planned(kinds: int) -> list[tuple[str, int]]:
        engine = columnar()
        for kind in range(kinds):
            draw = Random(kind)
            texts = [
                " AND ".join(f"k{kind}_{at} = {draw.randrange(5)}" for at in sorted(draw.sample(range(8), 4)))
                for _ in range(4_000)
            ]
            engine.subscribe_many((f"{kind}-{number}", text) for number, text in enumerate(texts))
        engine.learn([{f"k{each % kinds}_{at}": rng.randrange(5) for at in range(8)} for each in range(400 * kinds)])
        groups = engine.stats()["matcher"]["layers"][0]["groups"]
        own = [group for group in groups if any(name.startswith("k0_") for name in group["attributes"])]
        return sorted((group["layout"], group["rows"]) for group in own)

    assert planned(4) == planned(1)


@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_a_layout_can_be_forced(layout: str) -> None:
    engine = columnar(layouts=[layout])
    engine.subscribe_many((n, f"a = {n % 3} AND b > {n % 5}") for n in range(600))
    assert layouts(engine) == {layout}
    assert len(engine.match({"a": 1, "b": 3}).ids) == 120


@pytest.mark.seconds
def test_sketches_are_exact_where_the_upper_bits_tell_nothing() -> None:
    """Thousands of constants share the 128 or 256 steps of a sketch, and events come close to all of them."""
    rng = Random(11)

    def condition(attribute: str, one_sided: bool) -> str:
        low, high = sorted((rng.randrange(2_000), rng.randrange(2_000)))
        kinds = [f"{attribute} < {low}", f"{attribute} >= {high}"]
        if not one_sided:
            kinds += [f"{attribute} BETWEEN {low} AND {high}", f"{attribute} <> {low}", f"{attribute} IS NOT NULL"]
            kinds += [f"{attribute} NOT BETWEEN {low} AND {low + rng.randrange(20)}"]
        return rng.choice(kinds)

    texts = [
        f"k = {rng.randrange(3)} AND {condition('a', one_sided=True)} AND {condition('b', one_sided=False)}"
        for _ in range(6_000)
    ]
    events = [{"k": rng.randrange(3), "a": rng.randrange(4_000) / 2, "b": rng.randrange(4_000) / 2} for _ in range(300)]
    sketched, clustered = columnar(layouts=["sketch"]), columnar(layouts=["cluster"])
    for engine in (sketched, clustered):
        engine.subscribe_many(enumerate(texts))
    assert layouts(sketched) == {"sketch"}
    for gone in (range(0), range(0, 6_000, 3)):
        for number in gone:
            sketched.unsubscribe(str(number))
            clustered.unsubscribe(str(number))
        found, expected = (list(map(sorted, engine.match_batch(events).ids)) for engine in (sketched, clustered))
        assert found == expected
        assert sum(map(len, found)) > 10_000


def test_an_unknown_layout_is_rejected() -> None:
    with pytest.raises(CapabilityError, match="tower"):
        columnar(layouts=["tower"])
    with pytest.raises(CapabilityError, match="layouts"):
        columnar(layouts=[])


# Bad and strange input


def test_the_empty_index() -> None:
    engine = columnar()
    assert engine.match({"x": 1}).ids == []
    assert engine.match_batch([]).ids == []
    engine.merge()
    assert engine.match_batch([{"x": 1}, {}]).ids == [[], []]


def test_unknown_attributes_wrong_types_and_missing_values() -> None:
    engine = columnar()
    engine.subscribe_many([("n", "x < 5"), ("s", "x = 'a'"), ("none", "x IS NULL"), ("not", "x <> 7")])
    for _ in range(2):
        found = engine.match_batch([{"y": 1}, {"x": True}, {"x": None}, {"x": "a"}, {"x": 7.5}, {"x": 10**18}])
        assert [sorted(ids) for ids in found.ids] == [["none"], [], ["none"], ["s"], ["not"], ["not"]]
        engine.merge()


def test_ten_thousand_values() -> None:
    engine = columnar()
    engine.subscribe("many", f"x IN ({', '.join(map(str, range(0, 20_000, 2)))})")
    engine.subscribe("not", f"x NOT IN ({', '.join(map(str, range(0, 200, 2)))})")
    engine.merge()
    found = engine.match_batch([{"x": 4_444}, {"x": 4_445}, {"x": 20_000}, {"x": [1, 2, 3]}])
    assert [sorted(ids) for ids in found.ids] == [["many", "not"], ["not"], ["not"], ["many", "not"]]


def test_three_hundred_predicates() -> None:
    engine = columnar()
    where = " AND ".join(f"a{i} > {i}" for i in range(300))
    engine.subscribe("long", where)
    engine.subscribe_many((n, f"a{n} > {n}") for n in range(300))
    event = {f"a{i}": i + 1 for i in range(300)}
    for _ in range(2):
        assert len(engine.match(event).ids) == 301
        assert len(engine.match(event | {"a299": 299}).ids) == 299
        engine.merge()


@pytest.mark.slow
@pytest.mark.seconds
def test_a_million_values_in_one_attribute() -> None:
    from harken.limits import Limits

    engine = Engine(limits=Limits(max_event_values=2_000_000), background=False)
    engine.subscribe_many(
        [("in", "x = 999999"), ("out", "x = -1"), ("both", "x > 5 AND x < 7"), ("two", "x = 1 AND y = 2")]
    )
    for _ in range(2):
        found = engine.match_batch([{"x": list(range(1_000_000)), "y": 2}])
        assert sorted(found.ids[0]) == ["both", "in", "two"]
        engine.merge()


def test_arrow_columns() -> None:
    engine = columnar()
    engine.subscribe_many([("cheap", "price < 5"), ("toy", "category = 'Toy'"), ("none", "price IS NULL")])
    table = pa.table({"price": [1.5, None, 7.0], "category": ["Toy", "Toy", None]})
    assert [sorted(ids) for ids in engine.match_batch(table).ids] == [["cheap", "toy"], ["none", "toy"], []]


# Layers


def test_subscriptions_move_through_the_layers() -> None:
    engine = columnar(recent_rows=50)
    rng = Random(3)
    alive: dict[str, int] = {}
    for n in range(2_000):
        engine.subscribe(n, f"x = {n % 20} AND y < {n % 7}")
        alive[str(n)] = n
        if rng.random() < 0.3:
            gone = rng.choice(sorted(alive))
            engine.unsubscribe(gone)
            del alive[gone]
        if n % 97 == 0:
            event = {"x": n % 20, "y": 3}
            expected = {id for id, m in alive.items() if m % 20 == n % 20 and m % 7 > 3}
            assert set(engine.match(event).ids) == expected
    stats = engine.stats()["matcher"]
    assert stats["merges"] > 10
    assert stats["rows"] - stats["recent_rows"] <= len(alive) + 50


def test_a_base_that_was_mostly_deleted_is_made_anew() -> None:
    engine = columnar(recent_rows=100)
    engine.subscribe_many((n, f"x = {n}") for n in range(1_000))
    engine.merge()
    merges = engine.stats()["matcher"]["merges"]
    for n in range(300):
        engine.unsubscribe(n)
    stats = engine.stats()["matcher"]
    assert stats["merges"] > merges
    assert stats["deleted_rows"] < 300
    assert engine.match({"x": 700}).ids == ["700"]


def test_a_number_that_comes_back_within_one_layer_brings_nothing_else_back() -> None:
    engine = columnar()
    first = engine.subscribe("first", "x = 1")
    engine.match({"x": 1})
    engine.unsubscribe("first")
    assert engine.subscribe("second", "x = 2").number == first.number
    engine.match({"x": 1})
    engine.merge()
    assert engine.match_batch([{"x": 1}, {"x": 2}]).ids == [[], ["second"]]


@pytest.mark.parametrize("others", [0, 40])
def test_all_rows_of_a_subscription_leave_what_is_recent(others: int) -> None:
    """Whether they came alone or, as more than a few do, column by column."""
    engine = columnar()
    engine.subscribe("several", "x IN (1, 'a') OR y IN (5, 'b')")
    engine.subscribe_many((str(n), "x = 1") for n in range(others))
    events: list[dict[str, object]] = [{"x": "a"}, {"y": 5}, {"y": "b"}]
    assert engine.match_batch(events, on_mismatch="ignore").ids == [["several"]] * 3
    engine.unsubscribe("several")
    assert engine.match_batch(events, on_mismatch="ignore").ids == [[]] * 3


def test_what_fails_in_the_background_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(recent_rows=10, small_rows=0)
    monkeypatch.setattr(matcher, "merged", _fail)
    monkeypatch.setattr(matcher, "middle", _fail)
    for n in range(300):
        engine.subscribe(n, f"x = {n}")
    merger = engine._live.matcher._merger  # type: ignore[attr-defined]
    merger.join()
    with pytest.raises(RuntimeError, match="no memory"):
        engine.match({"x": 5})
    assert engine.match({"x": 5}).ids == ["5"], "and nothing is lost"


def _fail(*_: object) -> None:
    raise RuntimeError("no memory left")


def test_readers_and_writers_at_once() -> None:
    """Some subscriptions stay, others come and go all the time, through merges. What stays is always found, once."""
    engine = Engine(recent_rows=40, small_rows=0)
    engine.subscribe_many((f"stays {n}", f"x = {n % 10}") for n in range(500))
    stop = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        while not stop.is_set():
            try:
                for x, ids in enumerate(engine.match_batch([{"x": x} for x in range(10)]).ids):
                    own = [id for id in ids if id.startswith("stays")]
                    if len(own) != 50 or len(ids) != len(set(ids)) or any(id.endswith(f"not {x}") for id in ids):
                        wrong.append((x, ids))
            except Exception as error:
                wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in range(1_500):
        engine.subscribe(f"goes {n}", f"x = {n % 10} AND x < 100")
        if n % 3:
            engine.subscribe(f"too {n} not {n % 10}", f"x >= 0 AND x <> {n % 10}")
            engine.unsubscribe(f"too {n} not {n % 10}")
        if n >= 100:
            engine.unsubscribe(f"goes {n - 100}")
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong, wrong[:3]
    assert isinstance(engine._live.matcher, Columnar)
    assert engine.stats()["matcher"]["merges"] > 2
    assert len(engine.match({"x": 3}).ids) == 60


def test_an_index_of_nothing_but_what_is_always_true() -> None:
    engine = Engine()
    engine.subscribe("all", "1 = 1")
    engine.merge()
    assert engine.match({"x": 1}).ids == ["all"]


def test_nothing_is_learnt_from_no_events() -> None:
    engine = Engine()
    engine.subscribe("a", "x = 1")
    engine.learn([])
    assert engine.stats()["matcher"]["events_sampled"] == 0
    assert engine.match({"x": 1}).ids == ["a"]


def test_an_answer_stays_as_long_as_somebody_looks_at_it() -> None:
    engine = columnar()
    engine.subscribe_many((n, f"a = {n % 3}") for n in range(3_000))
    events = [{"a": n % 3} for n in range(6)]
    first = engine.match_batch(events)
    part = first.numbers[:500]
    expected, place = part.tolist(), part.ctypes.data
    again = engine.match_batch(list(reversed(events)))
    assert part.tolist() == expected, "a view of an answer keeps its buffer"
    assert again.numbers.ctypes.data != place
    del first
    engine.match_batch(list(reversed(events)))
    assert part.tolist() == expected, "also where the answer itself is gone"
    arrow = again.arrow_numbers()
    expected_lists = arrow.to_pylist()
    del again
    for _ in range(3):
        engine.match_batch(events)
    assert arrow.to_pylist() == expected_lists, "and so does an Arrow array"


@pytest.mark.seconds
def test_buffers_are_used_again() -> None:
    engine = columnar()
    engine.subscribe_many((n, f"a = {n % 3}") for n in range(60_000))
    places = set()
    for _ in range(6):
        places.add(engine.match_batch([{"a": 1}] * 8).numbers.ctypes.data)
    assert len(places) == 1
    for _ in range(6):
        found = engine.match_batch([{"a": 1}] * 8)  # the last one is there until this one is
        places.add(found.numbers.ctypes.data)
    assert len(places) == 2
    large = engine.match_batch([{"a": 1}] * 200).numbers.nbytes
    assert large > 10_000_000
    for _ in range(2):
        few = engine.match_batch([{"a": 1}]).numbers
    held = few if few.base is None else few.base
    assert held.nbytes < large / 8, "one large answer does not hold its memory for ever"


@pytest.mark.seconds
@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_answers_of_unlike_sizes(layout: str) -> None:
    """The memory for an answer is taken before it is known: it may be too little for any event of a batch."""
    engine = columnar(layouts=[layout])
    engine.subscribe_many([*((str(n), "a = 1") for n in range(30_000)), ("one", "a = 2"), ("two", "b < 3")])
    few, many, none = {"a": 2, "b": 1}, {"a": 1, "b": 2}, {"a": 3}
    expected = {id(few): 2, id(many): 30_001, id(none): 0}
    seen = set()
    for events in ([many] * 90, [many] * 90, [few] * 90):
        engine.match_batch(events)
        (layer,) = engine.stats()["matcher"]["layers"]
        seen.add(tuple(group["seen_candidates"] for group in layer["groups"]))
    assert len(seen) == 2, "what is found before there is enough memory is found, and counted, once"
    for events in ([few], [many], [none], [few] * 3_000, [few] * 5_000 + [many], [many, *[few] * 5_000], [many] * 90):
        found = engine.match_batch(events)
        assert found.counts == [expected[id(event)] for event in events]
        assert len(set(found.of(len(events) - 1).tolist())) == found.counts[-1]


@pytest.mark.seconds
def test_what_matches_much_does_not_decide_what_is_reserved_for_the_rest() -> None:
    engine = columnar()
    engine.subscribe_many([*((str(n), "a = 1") for n in range(100_000)), ("one", "a = 2")])
    assert len(engine.match({"a": 1}).ids) == 100_000
    rare = engine.match_batch(pa.table({"a": np.full(200_000, 2)}))
    assert rare.counts == [1] * 200_000
    first = engine.match_batch(pa.table({"a": np.where(np.arange(2_000_000) < 50, 1, 3)}))
    assert len(first.numbers) == 50 * 100_000
    for found in (rare, first):
        held = found.numbers if found.numbers.base is None else found.numbers.base
        assert held.nbytes <= 16 * max(found.numbers.nbytes, 100_000)


def test_subscribing_and_matching_in_turns_merges_too() -> None:
    """A match takes in what waits, so that there are never many waiting; yet they must not stay recent for ever."""
    engine = columnar(recent_rows=50)
    for number in range(400):
        engine.subscribe(str(number), f"a = {number % 7}")
        engine.match({"a": 1})
    found = engine.stats()["matcher"]
    assert found["merges"] > 3
    assert found["recent_rows"] <= 50


def test_replacing_everything_merges_too() -> None:
    engine = columnar(recent_rows=2_000)
    engine.subscribe_many((n, f"a = {n}") for n in range(3_000))
    before = engine.stats()["matcher"]["merges"]
    for n in range(3_000):
        engine.subscribe(str(n), f"a = {n + 1}", replace=True)
    found = engine.stats()["matcher"]
    assert found["merges"] > before
    assert found["deleted_rows"] < 3_000


@pytest.mark.seconds
def test_long_runs_are_not_sketched() -> None:
    """Two ranges without a key: an event looks at half of all rows, and some hundreds of these would be in doubt."""
    rng = Random(2)
    engine = columnar()
    engine.subscribe_many((n, f"a > {rng.randrange(90_000)} AND b < {rng.randrange(90_000)}") for n in range(150_000))
    assert "sketch" not in layouts(engine)


FEW_PLACES = {"most_places": 1 << 10}


def test_an_index_of_more_rows_than_a_run_can_begin_at_is_rejected() -> None:
    engine = columnar(settings=FEW_PLACES)
    engine.subscribe("s", "x = 1")
    with pytest.raises(CapabilityError, match="cannot hold 1 rows"):
        engine.merge()
    assert engine.match({"x": 1}).ids == ["s"], "what was there is still found"


@pytest.mark.parametrize("background", [False, True])
def test_a_merge_that_fails_is_told_once_and_changes_nothing(background: bool) -> None:
    engine = Engine(recent_rows=4, small_rows=0, background=background, settings=FEW_PLACES)
    for n in range(6):
        engine.subscribe(f"s{n}", f"x = {n}")
        engine._live.matcher._absorb()  # as if an event had come
    engine.unsubscribe("s5")
    merger = engine._live.matcher._merger
    if merger is not None:
        merger.join()
    with pytest.raises(CapabilityError, match="cannot hold"):
        engine.match({"x": 1})
    assert [engine.match({"x": n}).ids for n in range(6)] == [["s0"], ["s1"], ["s2"], ["s3"], ["s4"], []]


def test_a_table_that_is_rejected_leaves_nothing() -> None:
    engine = columnar(recent_rows=4, settings=FEW_PLACES)
    engine.subscribe("s", "x = 1")
    predicates = [[{"attribute": "x", "operator": "=", "integer": n}] for n in range(50)]
    table = pa.table({"id": [f"t{n}" for n in range(50)], "predicates": predicates})
    with pytest.raises(CapabilityError, match="cannot hold"):
        engine.subscribe_many(table)
    assert len(engine) == 1
    assert engine.match({"x": 1}).ids == ["s"]
    engine._live.matcher.settings = DEFAULT_SETTINGS  # type: ignore[attr-defined]
    engine.subscribe_many(table)
    assert sorted(engine.match({"x": 1}).ids) == ["s", "t1"]


@pytest.mark.seconds
def test_layers_of_unlike_sizes_are_merged_where_that_pays() -> None:
    """Of the layers in the middle the large one stays, and the small one is merged with what is recent."""
    engine = columnar(recent_rows=20, settings={"fixed_worth": 1 << 60})  # verifying is no reason to merge everything
    engine.subscribe_many((f"b{n}", f"x = {n}") for n in range(4_000))
    engine.merge()
    sizes = set()
    for n in range(600):
        engine.subscribe(f"s{n}", f"y = {n}")
        assert engine.match({"y": n}).ids == [f"s{n}"]
        sizes.add(tuple(len(each.searched) for each in engine._live.matcher._version.middles))
    assert any(len(each) > 1 for each in sizes)
    for n in range(600):
        assert sorted(engine.match({"x": 1, "y": n}).ids) == ["b1", f"s{n}"]


def test_what_an_event_matches_behind_a_key_is_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upper ends and lower ends in one column, which are compared: those that hold follow each other."""
    rooms: list[Runs] = []
    make_room = index._runs
    monkeypatch.setattr(index, "_runs", lambda *given: rooms.append(make_room(*given)) or rooms[-1])
    draw = Random(1)
    asked = {f"{n}": (n % 10, draw.choice(["<", "<=", ">", ">="]), draw.randrange(40)) for n in range(400)}
    engine = columnar(layouts=["cluster"])
    engine.subscribe_many((id, f"k = {key} AND x {sign} {bound}") for id, (key, sign, bound) in asked.items())
    engine.merge()
    tests = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
    for x in range(-1, 41):
        expected = [id for id, (key, sign, bound) in asked.items() if key == 3 and tests[sign](x, bound)]
        assert sorted(engine.match({"k": 3, "x": x}).ids, key=int) == expected
        assert (sum(each.whole[0] for each in rooms), sum(each.part[0] for each in rooms)) == (1, 0)


def test_runs_may_fill_the_room_of_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """One event that has a run in every cluster, and no room for more."""
    rooms: list[Runs] = []
    make_room = index._runs
    monkeypatch.setattr(index, "_runs", lambda *given: rooms.append(make_room(*given)) or rooms[-1])
    engine = columnar(layouts=["cluster"])
    asked = {f"{n}": n % 997 for n in range(2_000)}
    engine.subscribe_many((id, f"x >= {x}") for id, x in asked.items())
    engine.subscribe_many((id, f"{name} = 1") for id, name in (("p", "p"), ("q", "q"), ("r", "r")))
    engine.merge()
    found = engine.match_batch([{"x": x, "p": 1, "q": 1, "r": 1} for x in range(450, 600)])
    for place, x in enumerate(range(450, 600)):
        assert sorted(found.ids[place]) == sorted([*(id for id, low in asked.items() if low <= x), "p", "q", "r"])
    (room,) = (each for each in rooms if each.of_event.shape[0] > 1)
    assert room.of_event.shape[0] == 4
    assert (room.whole + room.part).max() == 4


# Fresh subscriptions, and small engines


def alerts(count: int, first: int = 0) -> list[tuple[str, str]]:
    return [(f"s{n}", f"category = 'c{n % 50}' AND price < {n}") for n in range(first, first + count)]


ALERT_EVENTS = [{"category": f"c{n % 60}", "price": n * 7 % 1_000} for n in range(120)]


def expected_alerts(known: list[tuple[str, str]], event: dict[str, Any]) -> list[str]:
    found = []
    for id, _ in known:
        number = int(id[1:])
        if event["category"] == f"c{number % 50}" and event["price"] < number:
            found.append(id)
    return found


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What is verified, one subscription after the other, in interpreted code."""
    numbers: list[int] = []

    def counting(form: Any, event: Any, limits: Any) -> bool:
        numbers.append(1)
        return is_match(form, event, limits)

    monkeypatch.setattr(candidates, "is_match", counting)
    monkeypatch.setattr(match_one, "is_match", counting)
    return numbers


@pytest.mark.seconds
@pytest.mark.parametrize("count", [10, 1_000, 4_000])
@pytest.mark.parametrize("small_rows", [0, 1_024])
def test_what_was_added_is_indexed_by_the_first_batch(count: int, small_rows: int, verified: list[int]) -> None:
    engine = Engine(small_rows=small_rows)
    known = alerts(count)
    engine.subscribe_many(known)
    found = engine.match_batch(ALERT_EVENTS).ids
    assert [sorted(ids) for ids in found] == [sorted(expected_alerts(known, event)) for event in ALERT_EVENTS]
    assert len(verified) <= DEFAULT_SETTINGS.fixed_worth
    engine.match_batch(ALERT_EVENTS)
    engine.match_batch(ALERT_EVENTS)
    assert len(verified) <= DEFAULT_SETTINGS.fixed_worth + count + len(ALERT_EVENTS) * count // 50
    done = len(verified)
    for _ in range(2):
        engine.match_batch(ALERT_EVENTS * 10)
    assert len(verified) - done <= DEFAULT_SETTINGS.fixed_worth + count


def test_single_events_have_them_indexed_too(verified: list[int]) -> None:
    engine = Engine()
    known = alerts(500)
    engine.subscribe_many(known)
    for event in ALERT_EVENTS * 5:
        assert sorted(engine.match(event).ids) == sorted(expected_alerts(known, event))
    assert len(verified) <= 2 * (DEFAULT_SETTINGS.fixed_worth + len(known))


def test_what_comes_to_a_large_index_is_indexed_once_that_pays(verified: list[int]) -> None:
    engine = Engine(background=False)
    engine.subscribe_many([(f"t{n}", f"category = 'k{n % 300}' AND price < {n}") for n in range(5_000)])
    engine.match_batch(ALERT_EVENTS)
    known = alerts(400)
    engine.subscribe_many(known)
    for _ in range(10):
        found = engine.match_batch(ALERT_EVENTS).ids
        assert [sorted(ids) for ids in found] == [sorted(expected_alerts(known, event)) for event in ALERT_EVENTS]
    assert len(verified) <= 2 * (DEFAULT_SETTINGS.fixed_worth + 5_400)


def test_conditions_that_must_be_verified_anyway_are_no_reason_to_merge() -> None:
    engine = Engine(background=False)
    engine.subscribe_many([(f"s{n}", f"title LIKE '%{n % 10}%'") for n in range(300)])
    for _ in range(20):
        engine.match_batch([{"title": f"a{n}"} for n in range(20)])
    assert engine.stats()["matcher"]["merges"] <= 1


def test_a_small_engine_is_saved_and_loaded_like_a_large_one(tmp_path: Path) -> None:
    engine = Engine()
    known = alerts(100)
    engine.subscribe_many(known)
    engine.unsubscribe("s7")
    engine.match_batch(ALERT_EVENTS)
    engine.subscribe("late", "category = 'c1' AND price >= 0")
    expected = [sorted(ids) for ids in engine.match_batch(ALERT_EVENTS).ids]
    engine.save(tmp_path / "saved")
    assert [sorted(ids) for ids in engine.match_batch(ALERT_EVENTS).ids] == expected
    loaded = Engine.load(tmp_path / "saved")
    assert [sorted(ids) for ids in loaded.match_batch(ALERT_EVENTS).ids] == expected
    assert [sorted(loaded.match(event).ids) for event in ALERT_EVENTS] == expected


def test_the_plan_of_a_small_engine_says_how_it_is_searched() -> None:
    engine = Engine()
    engine.subscribe_many(alerts(100))
    engine.match_batch(ALERT_EVENTS * 3)
    (layer,) = engine.stats()["matcher"]["layers"]
    (group,) = layer["groups"]
    assert (group["layout"], group["rows"], layer["rows"]) == ("chains", 100, 100)


def test_attributes_that_come_one_after_the_other_need_no_room_for_rows() -> None:
    """Every new attribute once doubled the room for recent rows: forty of them were more than any machine has."""
    engine = Engine()
    for n in range(40):
        engine.subscribe(f"s{n}", f"a{n} = 1")
        assert engine.match({f"a{n}": 1, f"a{n - 1}": 2}).ids == [f"s{n}"]
    for n in range(40):
        assert engine.match({f"a{n}": 1, "a0": 1}).ids == sorted({f"s{n}", "s0"})
