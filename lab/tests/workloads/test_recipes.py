"""`generate`: every workload by name, replayed by its seed, at any size, with other parameters."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from harken_lab.workloads import WORKLOADS, generate
from harken_lab.workloads.workload import Workload

NAMES = list(WORKLOADS)
TABLES = [name for name, each in WORKLOADS.items() if each.has_table]


def same_subscriptions(one: Workload, other: Workload) -> bool:
    return bool(one.texts().equals(other.texts()))


def test_the_names() -> None:
    papers = ["w0", "w1", "w2", "w3", "w4", "le-subscribe", "stock", "gryphon"]
    others = ["orders", "ranges", "attributes-many", "disjunctive", "text", "detections"]
    assert [*papers, *others, "stock-xml", "nasa", "mixed"] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_replays(name: str) -> None:
    one, again, other = (generate(name, 500, 50, seed) for seed in (7, 7, 8))
    assert same_subscriptions(one, again)
    assert one.events.equals(again.events)
    assert not same_subscriptions(one, other)
    assert not one.events.equals(other.events)


@pytest.mark.parametrize("name", NAMES)
def test_subscriptions_and_events_are_independent(name: str) -> None:
    one, more_events, more_subscriptions = (generate(name, *sizes, 7) for sizes in ((300, 40), (300, 90), (700, 40)))
    assert same_subscriptions(one, more_events)
    assert one.events.equals(more_subscriptions.events)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("subscriptions", "events"), [(0, 0), (1, 1), (0, 3), (3, 0), (5, 5)])
def test_any_size(name: str, subscriptions: int, events: int) -> None:
    workload = generate(name, subscriptions, events)
    assert workload.subscriptions == len(workload.texts()) == subscriptions
    assert workload.events.num_rows == events
    ids = [id for each in workload.batches("where") for id in each["id"].to_pylist()]
    assert ids == [f"s{number}" for number in range(subscriptions)]
    assert workload.has_table is WORKLOADS[name].has_table
    if workload.has_table:
        assert workload.table()["id"].to_pylist() == ids
    else:
        with pytest.raises(ValueError, match=f"a table of predicates cannot express the subscriptions of {name}"):
            workload.table()


@pytest.mark.parametrize("name", TABLES)
def test_what_an_index_relies_on(name: str) -> None:
    workload = generate(name, 2_000, 10)
    assert len({each.column for each in workload.predicates}) == len(workload.predicates)
    counts = np.zeros(2_000, np.int64)
    for each in workload.predicates:
        assert each.rows.dtype == each.low.dtype == each.high.dtype == np.int32
        assert each.low_side.dtype == each.high_side.dtype == np.uint8
        assert len(each.rows) == len(each.low) == len(each.low_side) == len(each.high) == len(each.high_side) > 0
        assert (np.diff(each.rows) > 0).all(), "ascending, each at most once"
        constants = each.constants
        assert isinstance(constants, list) or (isinstance(constants, np.ndarray) and constants.dtype == np.int64)
        used = np.union1d(each.low, each.high)
        assert used[used >= 0].tolist() == list(range(len(constants))), "every constant is used"
        assert len(np.unique(constants)) == len(constants), "constants are different"
        counts[each.rows] += 1
    assert counts.min() >= 1, "no subscription is empty"


@pytest.mark.parametrize("name", NAMES)
def test_events_are_integers_and_strings(name: str) -> None:
    events = generate(name, 10, 20).events
    assert {str(kind) for field in events.schema for kind in leaves(field.type)} <= {"int64", "string"}


def leaves(kind: pa.DataType) -> list[pa.DataType]:
    """The types of values inside of lists and structs."""
    if pa.types.is_list(kind):
        return leaves(kind.value_type)
    return [leaf for field in kind for leaf in leaves(field.type)] if pa.types.is_struct(kind) else [kind]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_workload_tells_of_itself(name: str) -> None:
    workload = generate(name, 3, 2, 5)
    assert (workload.name, workload.seed) == (name, 5)
    assert workload.description == WORKLOADS[name].description
    assert workload.parameters == WORKLOADS[name].all_parameters()
    assert same_subscriptions(workload, generate(name, 3, 2, 5, **workload.parameters))


def test_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = generate("mixed", 1_000, 0)
    monkeypatch.setattr("harken_lab.workloads.workload.BLOCK", 64)
    pieces = generate("mixed", 1_000, 0)
    assert pieces.texts().num_chunks == 16
    assert pieces.texts().combine_chunks().equals(whole.texts().combine_chunks())
    assert pieces.table().equals(whole.table())


@pytest.mark.parametrize(
    ("name", "parameters", "told"),
    [
        ("le-subscibe", {}, "there is no workload `le-subscibe`; did you mean `le-subscribe`?"),
        ("nothing", {}, "there is no workload `nothing`; there are: w0, w1"),
        ("le-subscribe", {"equalty": 0.5}, "there is no parameter `equalty`; did you mean `equality`?"),
        ("le-subscribe", {"equality": "often"}, '`equality` is something like 0.5, not "often"'),
        ("le-subscribe", {"equality": 2}, "`equality` are probabilities"),
        ("le-subscribe", {"equality": float("nan")}, "`equality` are probabilities"),
        ("le-subscribe", {"in_subscription": 0}, "the first above 0"),
        ("le-subscribe", {"strings": 0, "numbers": 0}, "not both 0"),
        ("le-subscribe", {"number_values": 0}, "`number_values` are from 1"),
        ("w4", {"attributes": 0}, "`attributes` is 1 to 10,000, not 0"),
        ("w4", {"attributes": True}, "`attributes` is something like 120, not true"),
        ("w4", {"predicates": (1, 11)}, "within 1 to 10"),
        ("w4", {"predicates": (0, 3)}, "within 1 to 10"),
        ("w4", {"predicates": (1, 2, 3)}, "a least and a most number"),
        ("w4", {"carried": 11}, "`carried` is 0 to 10"),
        ("w4", {"domains": ()}, "`domains` is something like"),
        ("w4", {"domains": ((3, 1),)}, "`domains` are pairs"),
        ("stock", {"symbols": 0}, "`symbols` and `values` are from 1"),
        ("stock", {"reach": 1.5}, "`reach` is a share"),
        ("gryphon", {"attributes": 0}, "`attributes` and `values` are 1 or more"),
        ("gryphon", {"popularity": 0}, "the first is not 0"),
        ("gryphon", {"exponent": -1}, "`exponent` is from 0"),
        ("orders", {"skus": 0}, "`countries`, `skus` and `prices` are from 1"),
        ("orders", {"items": (3, 1)}, "`items` are a least and a most number"),
        ("orders", {"items": (1,)}, "`items` are a least and a most number"),
        ("orders", {"unknown": 2}, "`unknown` is a probability"),
        ("ranges", {"predicates": 21}, "`predicates` from 1 to that"),
        ("ranges", {"width": 0}, "`width` a share above 0"),
        ("attributes-many", {"kinds": 0}, "`kinds` and `attributes` are 1 or more"),
        ("attributes-many", {"predicates": (3, 26)}, "within 1 to 25"),
        ("attributes-many", {"more": 26}, "`more` is at most `attributes`"),
        ("disjunctive", {"numbers": 1}, "`numbers` 2 or more"),
        ("disjunctive", {"string_values": 0}, "`number_values` are from 1"),
        ("disjunctive", {"conjunctions": (3, 2)}, "`conjunctions` are a least and a most number"),
        ("disjunctive", {"in_event": 2}, "`in_event` is a probability"),
        ("text", {"vocabulary": 3}, "`vocabulary` is 16 to 1,000,000"),
        ("stock-xml", {"symbols": 0}, "`symbols` is from 1"),
        ("stock-xml", {"selectivity": 0.001}, "`selectivity` is from 0 to 1 / `symbols`"),
        ("nasa", {"paths": (0, 3)}, "`paths` are a least and a most number within 1 to 64"),
        ("nasa", {"mean": 11}, "`mean` is within 2 to 10"),
        ("nasa", {"wildcard": 2}, "`wildcard` is a share"),
        ("nasa", {"longest": 0}, "`longest` is 1 or more"),
        ("nasa", {"documents": "mars"}, "`documents` is one of nasa, records, not mars"),
        ("mixed", {"kinds": ("w4", "text")}, "`kinds` are different ones of: w0"),
        ("mixed", {"kinds": ("w4", "mixed")}, "`kinds` are different ones of: w0"),
        ("mixed", {"kinds": ("w4", "w4")}, "`kinds` are different ones of: w0"),
    ],
)
def test_what_cannot_be_drawn_is_rejected(name: str, parameters: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        generate(name, 1, 1, **parameters)
    assert told in str(caught.value)


@pytest.mark.parametrize("numbers", [(-1, 0, 0), (0, -1, 0), (2**31, 0, 0), (0, 0, -1)])
def test_sizes_and_seeds_are_checked(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"there can be 0 to 2,147,483,647|a seed is not negative"):
        generate("w4", *numbers)


def test_lists_do_for_tuples() -> None:
    assert same_subscriptions(
        generate("w4", 50, 0, domains=[[1, 3]], predicates=[2, 2]),
        generate("w4", 50, 0, domains=((1, 3),), predicates=(2, 2)),
    )


def test_importing_the_room_is_light() -> None:
    program = (
        "import sys, harken_lab.workloads, harken_lab.workloads.auction; print({'numpy', 'pyarrow'} & set(sys.modules))"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "set()\n"
    )


def test_tables_have_the_promised_columns() -> None:
    table = generate("stock", 2, 0).table()
    predicate = pa.struct([("attribute", "string"), ("operator", "string"), ("integer", "int64"), ("string", "string")])
    assert table.schema.equals(pa.schema([("id", pa.string()), ("predicates", pa.list_(predicate))]))
