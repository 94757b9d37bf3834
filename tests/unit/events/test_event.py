"""The canonical form: what is dropped, what is converted, what is rejected, and how values are found again."""

from __future__ import annotations

import sys
from collections import OrderedDict, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import AttributeRuleError, EventTypeError, HarkenError, InvalidValueError, LimitError
from harken.events import Event
from harken.limits import Limits
from harken.schema import BUILT_IN, EventType, Rule, Schema

NAN = float("nan")
INFINITY = float("inf")
HUGE = pytest.param(10**5_000, id="huge")
NOON = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    LARGE = 3


class Plain(Enum):
    ONE = 1


class Nowhere(tzinfo):
    """A zone that does not know its offset."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None


def of(value: Any) -> Any:
    """What an event's attribute `a` holds when it was given this value; None if it is missing."""
    return Event.of({"a": value}).attributes.get("a")


class TestWhatIsMissing:
    @pytest.mark.parametrize(
        "value", [None, NAN, np.float64("nan"), np.float32("nan"), Decimal("NaN"), Decimal("sNaN")]
    )
    def test_nulls_and_nans(self, value: Any) -> None:
        assert Event.of({"a": value, "b": [value, 1, value]}).attributes == {"b": [1]}

    @pytest.mark.parametrize("value", [pd.NA, pd.NaT, np.datetime64("NaT", "s"), np.ma.masked_array([1], [True])])
    def test_nulls_of_other_libraries(self, value: Any) -> None:
        assert Event.of({"a": value}).attributes == {}

    @pytest.mark.parametrize("value", [[], (), set(), [None], [NAN, None], [[]], [[None], [[], []]], np.array([])])
    def test_empty_lists(self, value: Any) -> None:
        assert Event.of({"a": value, "b": {"c": value}}).attributes == {"b": {}}

    def test_empty_objects_stay(self) -> None:
        assert of({}) == {}
        assert of([{}, {"b": None}]) == [{}, {}]

    def test_lists_inside_lists_stay_lists(self) -> None:
        assert of([[1, None], [], [2]]) == [[1], [2]]


class TestWhatIsConverted:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (-0.0, 0.0),
            (Decimal("0.1"), 0.1),
            (Decimal("-0"), 0.0),
            (Decimal("Infinity"), INFINITY),
            (INFINITY, INFINITY),
            (2**63 - 1, 2**63 - 1),
            (-(2**63), -(2**63)),
            (np.int64(7), 7),
            (np.uint8(7), 7),
            (np.float32(0.5), 0.5),
            (np.float16(0.5), 0.5),
            (np.longdouble("0.5"), 0.5),
            (np.float64("-0.0"), 0.0),
            (np.bool_(True), True),
            (np.str_("ü"), "ü"),
            (np.array(3), 3),
            (Colour.RED, "red"),
            (Size.LARGE, 3),
        ],
    )
    def test_scalars(self, value: Any, expected: Any) -> None:
        canonical = of(value)
        assert canonical == expected
        assert type(canonical) is type(expected)
        assert str(canonical) == str(expected)  # -0.0 == 0.0, so the sign is told by the text

    @pytest.mark.parametrize(
        "value",
        [
            NOON,
            datetime(2026, 7, 1, 12, 0),
            datetime(2026, 7, 1, 14, 0, tzinfo=timezone(timedelta(hours=2))),
            datetime(2026, 7, 1, 12, 0, tzinfo=Nowhere()),
            pd.Timestamp("2026-07-01T14:00:00.000000999+02:00"),
            np.datetime64("2026-07-01T12:00:00", "s"),
            np.datetime64("2026-07-01T12:00:00.000000999", "ns"),
        ],
    )
    def test_moments_are_in_utc(self, value: Any) -> None:
        canonical = of(value)
        assert canonical == NOON
        assert type(canonical) is datetime
        assert canonical.tzinfo is UTC

    def test_dates(self) -> None:
        assert of(date(2026, 7, 1)) == date(2026, 7, 1)
        assert of(np.datetime64("2026-07-01")) == date(2026, 7, 1)

    @pytest.mark.parametrize(
        "value",
        [
            [1, 2],
            (1, 2),
            {1, 2},
            frozenset({1, 2}),
            np.array([1, 2], dtype=np.uint16),
            np.array([1, 2], dtype=object),
            namedtuple("Pair", "x y")(1, 2),
        ],
    )
    def test_collections_are_lists(self, value: Any) -> None:
        assert sorted(of(value)) == [1, 2]

    def test_arrays_of_numpy(self) -> None:
        assert of(np.array([[1.5, NAN], [-0.0, 2.0]])) == [[1.5], [0.0, 2.0]]
        assert of(np.array(["2026-07-01T12:00:00", "NaT"], dtype="datetime64[ns]")) == [NOON]

    def test_other_mappings_are_objects(self) -> None:
        assert Event.of(MappingProxyType({"a": OrderedDict(b=1)})).attributes == {"a": {"b": 1}}

    def test_the_input_is_left_alone(self) -> None:
        raw = {"a": [1, None], "b": {"c": None}}
        Event.of(raw)
        assert raw == {"a": [1, None], "b": {"c": None}}

    def test_an_event_stays_itself(self) -> None:
        event = Event.of({"a": [1, {"b": "x"}]})
        assert Event.of(event).attributes is event.attributes


class TestWhatIsRejected:
    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            (b"x", "bytes"),
            (bytearray(b"x"), "bytearray"),
            (time(12), "datetime.time"),
            (timedelta(1), "datetime.timedelta"),
            (1j, "complex"),
            (object(), "object"),
            (Plain.ONE, "Plain"),
            (np.timedelta64(1, "s"), "numpy.timedelta64"),
            (np.timedelta64(1, "ns"), "numpy.timedelta64"),
            (np.complex64(1), "numpy.complex64"),
            (np.bytes_(b"x"), "numpy.bytes_"),
            (range(3), "range"),
            (iter(()), "tuple_iterator"),
        ],
    )
    def test_types_that_have_no_place(self, value: Any, kind: str) -> None:
        with pytest.raises(InvalidValueError, match=r"attribute `seller\.photo` is of type ") as caught:
            Event.of({"seller": {"photo": [value]}})
        assert kind in caught.value.message

    @pytest.mark.parametrize("value", [2**63, -(2**63) - 1, np.uint64(2**63), HUGE])
    def test_integers_beyond_64_bits(self, value: Any) -> None:
        with pytest.raises(InvalidValueError, match="attribute `a` is an integer beyond 64 bits"):
            of(value)

    def test_decimals_beyond_binary64(self) -> None:
        with pytest.raises(InvalidValueError, match="too large"):
            of(Decimal("1e400"))

    @pytest.mark.parametrize(
        "value",
        [
            datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
            datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-1))),
            np.datetime64(2**61, "s"),
            np.datetime64("12000-01-01T00:00:00", "us"),
        ],
    )
    def test_times_beyond_the_calendar(self, value: Any) -> None:
        with pytest.raises(InvalidValueError, match="attribute `a` is a time outside the years 1 to 9999"):
            of(value)

    @pytest.mark.parametrize("key", [1, None, ("a",), b"a", HUGE])
    def test_keys_that_are_not_strings(self, key: Any) -> None:
        with pytest.raises(InvalidValueError, match="is not a string"):
            Event.of({key: 1})
        with pytest.raises(InvalidValueError, match="in `a` is not a string"):
            Event.of({"a": {key: 1}})

    @pytest.mark.parametrize("raw", [{"a": "\ud800"}, {"a": ["x", "\udfff"]}, {"\ud800": 1}, {"a": {"\ud800": 1}}])
    def test_lone_surrogates(self, raw: dict[str, Any]) -> None:
        with pytest.raises(InvalidValueError, match="lone surrogate") as caught:
            Event.of(raw)
        str(caught.value).encode()  # the message itself can be printed

    @pytest.mark.parametrize("raw", [None, 1, "text", [1], [("a", 1)]])
    def test_what_is_not_a_mapping(self, raw: Any) -> None:
        with pytest.raises(InvalidValueError, match="an event is an object of attributes and values"):
            Event.of(raw)

    def test_names_are_quoted_and_cut(self) -> None:
        with pytest.raises(InvalidValueError) as caught:
            Event.of({"a.b": {"c" * 10_000: b""}})
        assert "``a.b`.ccc" in caught.value.message
        assert len(caught.value.message) < 400


class TestLimits:
    def test_depth(self) -> None:
        limits = Limits(max_event_depth=3)
        assert Event.of({"a": {"b": [1]}}, limits=limits).values(("a", "b")) == [1]
        for raw in ({"a": {"b": [[1]]}}, {"a": [[{}]]}, {"a": {"b": {"c": {}}}}):
            with pytest.raises(LimitError) as caught:
                Event.of(raw, limits=limits)
            assert caught.value.limit == "max_event_depth"

    def test_what_holds_itself_is_too_deep(self) -> None:
        raw: dict[str, Any] = {}
        raw["again"] = [raw]
        with pytest.raises(LimitError):
            Event.of(raw)

    def test_a_limit_beyond_what_python_follows_is_still_a_limit(self) -> None:
        raw: dict[str, Any] = {}
        raw["again"] = raw
        with pytest.raises(LimitError):
            Event.of(raw, limits=Limits(max_event_depth=sys.maxsize, max_event_values=sys.maxsize))

    def test_few_lines_of_python_can_write_too_much(self) -> None:
        raw: list[Any] = []
        for _ in range(60):
            raw = [raw, raw]
        with pytest.raises(LimitError):
            Event.of({"a": raw})

    @pytest.mark.parametrize(
        "raw", [{"a": 1, "b": 2, "c": 3}, {"a": [1, 2]}, {"a": [[None]]}, {"a": {"b": {}}, "c": 1}]
    )
    def test_values(self, raw: dict[str, Any]) -> None:
        assert Event.of(raw, limits=Limits(max_event_values=3))
        with pytest.raises(LimitError) as caught:
            Event.of(raw, limits=Limits(max_event_values=2))
        assert caught.value.limit == "max_event_values"


class TestValues:
    EVENT = Event.of(
        {
            "price": 3,
            "tags": ["a", ["b", ["c"]]],
            "seller": {"country": "CH"},
            "items": [{"price": 1}, {"qty": 2}, {"price": [4, 5]}, 6],
            "a.b": 7,
        }
    )

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            (("price",), [3]),
            (("tags",), ["a", "b", "c"]),
            (("seller", "country"), ["CH"]),
            (("seller",), [{"country": "CH"}]),
            (("items", "price"), [1, 4, 5]),
            (("items",), [{"price": 1}, {"qty": 2}, {"price": [4, 5]}, 6]),
            (("a.b",), [7]),
            (("a", "b"), []),
            (("price", "x"), []),
            (("nothing",), []),
            ((), [EVENT.attributes]),
        ],
    )
    def test_values(self, path: tuple[str, ...], expected: list[Any]) -> None:
        assert self.EVENT.values(path) == expected


class TestWithASchema:
    SCHEMA = Schema(
        attributes={
            ("at",): BUILT_IN["timestamp"],
            ("stops", "at"): BUILT_IN["timestamp"],
            ("day",): BUILT_IN["date"],
            ("n",): BUILT_IN["integer"],
        }
    )

    def test_texts_become_what_the_schema_says(self) -> None:
        raw = {"at": "2026-07-01T14:00:00+02:00", "day": "2026-07-01", "n": 3.0, "other": "2026-07-01"}
        attributes = Event.of(raw, self.SCHEMA).attributes
        assert attributes == {"at": NOON, "day": date(2026, 7, 1), "n": 3, "other": "2026-07-01"}
        assert type(attributes["n"]) is int

    def test_also_inside_arrays_each_in_its_place(self) -> None:
        raw = {"stops": [{"at": "2026-07-01T12:00:00", "name": "A"}, {}, [{"at": ["2026-07-02", NOON]}]]}
        later = datetime(2026, 7, 2, tzinfo=UTC)
        expected = {"stops": [{"at": NOON, "name": "A"}, {}, [{"at": [later, NOON]}]]}
        assert Event.of(raw, self.SCHEMA).attributes == expected

    def test_an_event_can_be_held_to_a_schema_later(self) -> None:
        event = Event.of({"at": "2026-07-01T12:00:00"})
        assert Event.of(event, self.SCHEMA).attributes == {"at": NOON}
        assert event.attributes == {"at": "2026-07-01T12:00:00"}

    @pytest.mark.parametrize("raw", [{"at": "soon"}, {"n": "3"}, {"n": [1, 2.5]}, {"stops": [{"at": 1}]}])
    def test_values_outside_their_domains(self, raw: dict[str, Any]) -> None:
        with pytest.raises(InvalidValueError, match="attribute `"):
            Event.of(raw, self.SCHEMA)

    def test_times_beyond_the_calendar(self) -> None:
        with pytest.raises(InvalidValueError):
            Event.of({"at": "0001-01-01T00:00:00+01:00"}, self.SCHEMA)

    def test_the_rules_of_event_types(self) -> None:
        sale = EventType("sale", {("n",): Rule(mandatory=True)})
        schema = Schema(attributes={("n",): BUILT_IN["integer"]}, event_types={"sale": sale})
        assert Event.of({"event_type": "sale", "n": 1}, schema).attributes == {"event_type": "sale", "n": 1}
        with pytest.raises(AttributeRuleError):
            Event.of({"event_type": "sale", "n": None}, schema)
        with pytest.raises(EventTypeError):
            Event.of({"n": 1}, schema)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.decimals()
    | st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-3))]))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(st.characters()) | st.integers(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), anything))
def test_whatever_comes_is_canonical_or_rejected(raw: dict[str, Any]) -> None:
    try:
        event = Event.of(raw)
    except HarkenError as error:
        str(error).encode()
        return
    assert Event.of(event.attributes).attributes == event.attributes


class TestNames:
    @given(st.dictionaries(st.sampled_from("abcdefg"), anything), st.sets(st.sampled_from("abcxyz")))
    def test_an_event_with_names_is_that_of_the_attributes_of_these_names(
        self, raw: dict[str, Any], names: set[str]
    ) -> None:
        """The same attributes or, told in the same words, the same fault."""
        results: list[Any] = []
        for content, wanted in ((raw, frozenset(names)), ({key: raw[key] for key in raw if key in names}, None)):
            try:
                results.append(Event.of(content, names=wanted).attributes)
            except HarkenError as error:
                results.append(str(error))
        assert results[0] == results[1]

    def test_only_what_is_named_counts(self) -> None:
        limits = Limits(max_event_values=3, max_event_depth=2)
        raw = {"a": [1], "b": [0] * 100, "c": {"d": {"e": {}}}}
        assert Event.of(raw, None, limits, frozenset("a")).attributes == {"a": [1]}
        for name in ("b", "c"):
            with pytest.raises(LimitError):
                Event.of(raw, None, limits, frozenset(name))

    def test_nothing_else_is_touched(self) -> None:
        class Watched(dict[str, Any]):
            def __getitem__(self, key: str) -> Any:
                assert key == "a"
                return super().__getitem__(key)

            def items(self) -> Any:
                raise AssertionError("all of it was looked at")

        raw = Watched(a=1, b=2)
        assert Event.of(raw, names=frozenset("a")).attributes == {"a": 1}
        assert Event.of(MappingProxyType(raw), names=frozenset("a")).attributes == {"a": 1}

    def test_a_schema_reads_what_is_named(self) -> None:
        schema = Schema(attributes={("a",): BUILT_IN["date"]})
        event = Event.of({"a": "2026-07-01", "b": b""}, schema, names=frozenset("a"))
        assert event.attributes == {"a": date(2026, 7, 1)}
