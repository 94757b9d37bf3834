"""Domains: what they read and reject, and how their values compare."""

import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import InvalidValueError, SchemaError
from harken.schema import BUILT_IN, EnumeratedDomain, HierarchicalDomain, IntegerDomain, Kind

OPERATORS = ["=", "<>", "<", "<=", ">", ">="]
QUANTITY = IntegerDomain("quantity", 1, 1000)
PERIOD = EnumeratedDomain("period", ("XVI", "XVII", "XVIII", "antique"), (("XVI", "XVII"), ("XVII", "XVIII")))
CATEGORY = HierarchicalDomain(
    "furniture_category",
    (
        ("furniture", None),
        ("bedroom", "furniture"),
        ("dining room", "furniture"),
        ("chair", "dining room"),
        ("toys", None),
    ),
)
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


class Loud(str):
    """A string whose str() is another, as a member of an enumeration of strings is."""

    def __str__(self) -> str:
        return self.upper()


@pytest.mark.parametrize(
    ("domain", "raw", "value"),
    [
        (QUANTITY, 1, 1),
        (QUANTITY, 1000.0, 1000),
        (QUANTITY, Decimal("7.00"), 7),
        (BUILT_IN["integer"], 2**63 - 1, 2**63 - 1),
        (BUILT_IN["integer"], -(2.0**63), -(2**63)),
        (BUILT_IN["float"], 2**53 + 1, 2**53 + 1),
        (BUILT_IN["float"], 0.5, 0.5),
        (BUILT_IN["float"], Decimal("0.1"), 0.1),
        (BUILT_IN["string"], "", ""),
        (BUILT_IN["string"], Loud("red"), "red"),
        (BUILT_IN["boolean"], False, False),
        (BUILT_IN["timestamp"], "2024-05-01T12:00:00Z", NOON),
        (BUILT_IN["timestamp"], "2024-05-01 14:00:00+02:00", NOON),
        (BUILT_IN["timestamp"], datetime(2024, 5, 1, 12), NOON),
        (BUILT_IN["timestamp"], datetime(2024, 5, 1, 14, tzinfo=timezone(timedelta(hours=2))), NOON),
        (BUILT_IN["date"], "2024-05-01", date(2024, 5, 1)),
        (BUILT_IN["date"], date(2024, 5, 1), date(2024, 5, 1)),
        (PERIOD, "XVI", "XVI"),
        (CATEGORY, "chair", "chair"),
    ],
)
def test_reads_to_the_canonical_value(domain, raw, value):
    read = domain.read(raw)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("domain", "raw"),
    [
        (QUANTITY, 0),
        (QUANTITY, 1001),
        (QUANTITY, 1.5),
        (QUANTITY, True),
        (QUANTITY, "5"),
        (QUANTITY, float("inf")),
        (QUANTITY, float("nan")),
        (QUANTITY, Decimal("NaN")),
        (QUANTITY, Decimal("1.5")),
        (QUANTITY, Decimal("1e1000000000")),
        (BUILT_IN["integer"], 2**63),
        (BUILT_IN["integer"], 2.0**63),
        (BUILT_IN["float"], 2**63),
        (BUILT_IN["float"], True),
        (BUILT_IN["float"], "1.5"),
        (BUILT_IN["float"], float("nan")),
        (BUILT_IN["float"], Decimal("sNaN")),
        (BUILT_IN["string"], 5),
        (BUILT_IN["string"], b"bytes"),
        (BUILT_IN["boolean"], 1),
        (BUILT_IN["boolean"], "true"),
        (BUILT_IN["timestamp"], "yesterday"),
        (BUILT_IN["timestamp"], date(2024, 5, 1)),
        (BUILT_IN["timestamp"], 1_700_000_000),
        (BUILT_IN["timestamp"], "0001-01-01T00:00:00+05:00"),
        (BUILT_IN["timestamp"], datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))),
        (BUILT_IN["date"], NOON),
        (BUILT_IN["date"], "2024-02-30"),
        (BUILT_IN["date"], "2024-05-01T12:00:00"),
        (PERIOD, "XV"),
        (PERIOD, 16),
        (CATEGORY, "Chair"),
        (CATEGORY, ["chair"]),
    ],
)
def test_rejects_what_is_outside(domain, raw):
    with pytest.raises(InvalidValueError):
        domain.read(raw)


@pytest.mark.parametrize(
    ("domain", "text", "value"),
    [
        (QUANTITY, " 12 ", 12),
        (QUANTITY, "+3", 3),
        (QUANTITY, "3.0", 3),
        (QUANTITY, "1e2", 100),
        (BUILT_IN["float"], "9007199254740993", 9007199254740993),
        (BUILT_IN["float"], "-.5", -0.5),
        (BUILT_IN["float"], "5.", 5.0),
        (BUILT_IN["float"], "-Infinity", float("-inf")),
        (BUILT_IN["string"], " kept as it is ", " kept as it is "),
        (BUILT_IN["boolean"], "TRUE", True),
        (BUILT_IN["boolean"], "false", False),
        (BUILT_IN["timestamp"], " 2024-05-01T12:00 ", NOON),
        (BUILT_IN["date"], "2024-05-01 ", date(2024, 5, 1)),
        (PERIOD, "XVII", "XVII"),
    ],
)
def test_reads_text(domain, text, value):
    read = domain.read_text(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (QUANTITY, ""),
        (QUANTITY, "3.5"),
        (QUANTITY, "1_0"),
        (QUANTITY, "٣"),
        (QUANTITY, "0x10"),
        (QUANTITY, "9" * 5000),
        (BUILT_IN["float"], "nan"),
        (BUILT_IN["float"], "1,5"),
        (BUILT_IN["float"], "."),
        (BUILT_IN["boolean"], "yes"),
        (BUILT_IN["timestamp"], "noon"),
        (BUILT_IN["date"], "1 May 2024"),
        (PERIOD, " XVI"),
    ],
)
def test_rejects_text(domain, text):
    with pytest.raises(InvalidValueError):
        domain.read_text(text)


def test_pandas_timestamps_become_plain_datetimes():
    pandas = pytest.importorskip("pandas")
    read = BUILT_IN["timestamp"].read(pandas.Timestamp("2024-05-01 14:00", tz="Europe/Paris"))
    assert read == NOON
    assert type(read) is datetime
    with pytest.raises(InvalidValueError):
        BUILT_IN["timestamp"].read(pandas.NaT)


def test_a_rejection_names_the_domain_and_shortens_the_value():
    with pytest.raises(InvalidValueError, match=r"^expected integer 1\.\.1000 \(domain `quantity`\), got 0$"):
        QUANTITY.read(0)
    for raw in ("x" * 100_000, [["y"] * 1000] * 1000, 10**10_000, {"k" * 1000: object()}):
        with pytest.raises(InvalidValueError) as caught:
            QUANTITY.read(raw)
        assert len(caught.value.message) < 300


def test_a_rejection_by_a_list_of_values_guesses_what_was_meant():
    with pytest.raises(InvalidValueError) as caught:
        CATEGORY.read("dinning room")
    assert caught.value.hint == "did you mean `dining room`?"
    assert "furniture_category" in caught.value.message


def test_there_is_no_guess_where_looking_would_take_long():
    many = EnumeratedDomain("many", tuple(f"value {n}" for n in range(201)))
    few = EnumeratedDomain("few", ("value " * 20,))
    for domain, raw in [(many, "valu 1"), (few, "value " * 19)]:
        with pytest.raises(InvalidValueError) as caught:
            domain.read(raw)
        assert caught.value.hint is None


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (QUANTITY, "integer 1..1000"),
        (IntegerDomain("n", low=1), "integer from 1"),
        (IntegerDomain("n", high=9), "integer up to 9"),
        (IntegerDomain("n"), "integer"),
        (PERIOD, "one of 'XVI', 'XVII', 'XVIII', 'antique'"),
        (EnumeratedDomain("e", tuple("abcdefg")), "one of 'a', 'b', 'c', 'd', 'e', …"),
        (CATEGORY, "one of 5 kinds of 'furniture', 'toys'"),
    ],
)
def test_describe(domain, text):
    assert domain.describe() == text


@pytest.mark.parametrize("bounds", [(2, 1), (None, 2**63), (-(2**63) - 1, None)])
def test_an_integer_domain_must_have_values(bounds):
    with pytest.raises(SchemaError):
        IntegerDomain("n", *bounds)


def test_numbers_compare_exactly_and_unlike_kinds_unknown():
    number = BUILT_IN["float"]
    assert number.compare(">", 2**53 + 1, float(2**53)) is True
    assert number.compare("=", 0.0, -0.0) is True
    assert number.compare("=", 1, True) is None
    assert number.compare("<>", 1, "1") is None
    assert BUILT_IN["timestamp"].compare("<", NOON, date(2024, 5, 2)) is None
    assert BUILT_IN["string"].compare("<", "Z", "a") is True


def test_the_kind_of_a_coded_domain_is_string():
    assert PERIOD.kind is CATEGORY.kind is Kind.STRING
    assert QUANTITY.kind is Kind.NUMBER


@pytest.mark.parametrize("domain", [*BUILT_IN.values(), QUANTITY, PERIOD, CATEGORY], ids=lambda domain: domain.name)
def test_domains_are_values(domain):
    copy = pickle.loads(pickle.dumps(domain))
    assert copy == domain
    assert hash(copy) == hash(domain)
    with pytest.raises(AttributeError):
        domain.name = "other"


# Enumerated domains


def test_the_partial_order_of_the_periods():
    assert PERIOD.compare("<", "XVI", "XVIII") is True
    assert PERIOD.compare("<", "XVIII", "XVI") is False
    assert PERIOD.compare(">=", "XVIII", "XVI") is True
    assert PERIOD.compare("<", "XVI", "antique") is None
    assert PERIOD.compare(">=", "antique", "antique") is True
    assert PERIOD.compare(">", "antique", "antique") is False
    assert PERIOD.compare("<>", "XVI", "antique") is True
    assert PERIOD.compare("<", "XVI", "no value of it") is None


def test_an_order_is_the_same_in_whatever_order_it_is_told():
    pairs = (("a", "b"), ("b", "c"))
    assert EnumeratedDomain("e", ("a", "b", "c"), pairs) == EnumeratedDomain(
        "e", ("a", "b", "c"), (*pairs[::-1], *pairs)
    )


@pytest.mark.parametrize(
    ("values", "order", "message"),
    [
        ((), (), "no values"),
        (("a", "b", "a"), (), "'a' twice"),
        (("a",), (("a", "b"),), "'b', which is not one"),
        (("a",), (("a", "a"),), "cycle"),
        (("a", "b", "c"), (("a", "b"), ("b", "c"), ("c", "a")), "cycle"),
    ],
)
def test_what_is_no_enumerated_domain(values, order, message):
    with pytest.raises(SchemaError, match=message):
        EnumeratedDomain("e", values, order)


@st.composite
def enumerations(draw):
    """A domain and its pairs. A pair always goes up in a hidden total order, so that there is no cycle."""
    hidden = draw(st.permutations("abcdefg"))
    places = st.integers(0, len(hidden) - 1)
    drawn = draw(st.lists(st.tuples(places, places).filter(lambda pair: pair[0] < pair[1]), max_size=12))
    pairs = [(hidden[low], hidden[high]) for low, high in drawn]
    return EnumeratedDomain("e", tuple("abcdefg"), tuple(pairs)), pairs


def reachable(pairs, start):
    """By the book: grow the set until nothing is added."""
    reached = {high for low, high in pairs if low == start}
    while True:
        more = reached | {high for low, high in pairs if low in reached}
        if more == reached:
            return reached
        reached = more


@given(enumerations())
def test_enumerated_comparisons_are_the_closure_of_the_pairs(drawn):
    domain, pairs = drawn
    for a in domain.values:
        above = reachable(pairs, a)
        for b in domain.values:
            lower, higher = b in above, a in reachable(pairs, b)
            known = lower or higher or a == b
            expected = {
                "=": a == b,
                "<>": a != b,
                "<": lower if known else None,
                "<=": lower or a == b if known else None,
                ">": higher if known else None,
                ">=": higher or a == b if known else None,
            }
            assert {operator: domain.compare(operator, a, b) for operator in OPERATORS} == expected


@given(enumerations())
def test_the_codes_that_compare_with_a_value(drawn):
    domain, _ = drawn
    check_runs(domain)


def check_runs(domain):
    for operator in ("<", "<=", ">", ">="):
        for value in domain.values:
            for wanted in (True, False):
                runs = domain.runs(operator, value, wanted)
                codes = [code for first, last in runs for code in range(first, last + 1)]
                expected = [domain.compare(operator, other, value) is wanted for other in domain.values]
                assert codes == [code for code, is_meant in enumerate(expected) if is_meant]
    with pytest.raises(InvalidValueError):
        domain.runs("<", "no value of it", True)


@given(enumerations())
def test_enumerated_comparison_is_a_strict_partial_order(drawn):
    domain, _ = drawn

    def less(a, b):
        return domain.compare("<", a, b) is True

    for a in domain.values:
        assert not less(a, a)
        for b in domain.values:
            assert not (less(a, b) and less(b, a))
            assert domain.compare("<", a, b) is domain.compare(">", b, a)
            assert all(less(a, c) for c in domain.values if less(a, b) and less(b, c))


@given(enumerations())
def test_an_order_with_a_way_back_is_rejected(drawn):
    domain, pairs = drawn
    for low, high in pairs:
        with pytest.raises(SchemaError, match="cycle"):
            EnumeratedDomain("e", domain.values, (*pairs, (high, low)))


# Hierarchical domains


def test_is_a_kind_of():
    assert CATEGORY.compare("<=", "chair", "furniture") is True
    assert CATEGORY.compare("<", "chair", "chair") is False
    assert CATEGORY.compare("<=", "chair", "chair") is True
    assert CATEGORY.compare("<", "furniture", "chair") is False
    assert CATEGORY.compare(">", "furniture", "chair") is True
    assert CATEGORY.compare("<=", "bedroom", "dining room") is False
    assert CATEGORY.compare(">=", "bedroom", "toys") is False
    assert CATEGORY.compare("<=", "chair", "no value of it") is None


def test_codes_are_in_preorder():
    assert CATEGORY.values == ("furniture", "bedroom", "dining room", "chair", "toys")
    assert [CATEGORY.code(value) for value in CATEGORY.values] == [0, 1, 2, 3, 4]
    assert CATEGORY.span("furniture") == (0, 3)
    assert CATEGORY.span("toys") == (4, 4)
    with pytest.raises(InvalidValueError):
        CATEGORY.span("lamp")


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ((), "no values"),
        ((("a", None), ("b", None), ("a", "b")), "'a' is placed twice"),
        ((("a", "lamp"),), "'lamp', which is not one"),
        ((("a", "a"),), "cycle"),
        ((("r", None), ("a", "b"), ("b", "a"), ("c", "a")), "cycle"),
    ],
)
def test_what_is_no_hierarchy(parents, message):
    with pytest.raises(SchemaError, match=message):
        HierarchicalDomain("h", parents)


@st.composite
def forests(draw):
    """Pairs of (value, parent) in any order; every parent precedes its children in a hidden order."""
    size = draw(st.integers(1, 12))
    above = [draw(st.none() | st.integers(0, value - 1)) if value else None for value in range(size)]
    pairs = [(f"v{value}", None if parent is None else f"v{parent}") for value, parent in enumerate(above)]
    return tuple(draw(st.permutations(pairs)))


@given(forests())
def test_spans_and_comparisons_equal_the_walk_to_the_root(pairs):
    domain = HierarchicalDomain("h", pairs)
    parent_of = dict(pairs)
    assert sorted(domain.values) == sorted(parent_of)
    for value in domain.values:
        walked = [value]
        while parent_of[walked[-1]] is not None:
            walked.append(parent_of[walked[-1]])
        for other in domain.values:
            first, last = domain.span(other)
            is_kind = other in walked
            assert (first <= domain.code(value) <= last) == is_kind
            assert domain.compare("<=", value, other) is is_kind
            assert domain.compare(">=", other, value) is is_kind
            assert domain.compare("<", value, other) is (is_kind and value != other)
            assert domain.compare(">", other, value) is (is_kind and value != other)


@given(forests())
def test_the_codes_of_a_hierarchy_that_compare_with_a_value(pairs):
    check_runs(HierarchicalDomain("h", pairs))


@given(forests())
def test_a_hierarchy_told_in_preorder_is_the_same(pairs):
    domain = HierarchicalDomain("h", pairs)
    assert HierarchicalDomain("h", tuple((value, dict(pairs)[value]) for value in domain.values)) == domain


def test_ten_thousand_levels():
    names = [f"v{level}" for level in range(10_000)]
    hierarchy = HierarchicalDomain("deep", ((names[0], None), *zip(names[1:], names, strict=False)))
    assert hierarchy.span(names[5_000]) == (5_000, 9_999)
    assert hierarchy.compare("<", names[-1], names[0]) is True
    assert pickle.loads(pickle.dumps(hierarchy)) == hierarchy
    chain = EnumeratedDomain("long", tuple(names), tuple(pairwise(names)))
    assert chain.compare("<", names[0], names[-1]) is True
    assert chain.compare("<=", names[-1], names[5_000]) is False


def test_the_closure_is_made_when_it_is_needed():
    values = tuple(f"v{n}" for n in range(3))
    domain = EnumeratedDomain("e", values, ((values[0], values[1]),))
    domain.read("v1")
    assert domain.compare("=", "v0", "v1") is False
    assert domain._related is None
    assert domain.compare("<", "v0", "v1") is True
    assert domain._related is not None


@pytest.mark.parametrize("raw", [Decimal("1e400"), Decimal("-1e400")])
def test_a_decimal_beyond_binary64_is_rejected(raw: Decimal) -> None:
    with pytest.raises(InvalidValueError):
        BUILT_IN["float"].read(raw)


def test_a_text_beyond_binary64_is_rejected_and_infinity_is_not() -> None:
    with pytest.raises(InvalidValueError):
        BUILT_IN["float"].read_text("1e999")
    assert BUILT_IN["float"].read_text("-inf") == float("-inf")
