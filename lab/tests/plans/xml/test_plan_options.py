"""The paper's plans by their options: without sharing, k predicates to a row, the cross product, ordered strings."""

from __future__ import annotations

from typing import Any

import pytest

from harken import Engine
from harken.errors import CapabilityError
from harken_lab.plans.xml import plan_matcher
from harken_lab.plans.xml.cost import CostParameters, crossed_cost, recursive_cost, unrolled_cost
from plans.xml.random_documents import drawn_documents, drawn_texts
from plans.xml.test_plans import answers, matcher_of, rows_of

OPTIONS: list[dict[str, Any]] = [
    {"documents": "xpath_shared"},
    {"documents": "xpath_shared", "shared": False},
    {"documents": "xpath_buckets"},
    {"documents": "xpath_unrolled"},
    {"documents": "xpath_unrolled", "k": 1},
    {"documents": "xpath_unrolled", "k": 2, "crossed": True},
    {"documents": "xpath_unrolled", "crossed": True},
]


def engine_of(texts: dict[str, str], **options: Any) -> Engine:
    engine = Engine(**options)
    assert not engine.subscribe_many(
        {"id": id, "where": text, "language": "xpath"} for id, text in texts.items()
    ).faults
    return engine


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: " ".join(map(str, each.values())))
def test_every_plan_answers_as_the_reference_and_xpath_do(options: dict[str, Any], database: str) -> None:
    texts = {f"s{place}": text for place, text in enumerate(dict.fromkeys(drawn_texts(160, 7)))}
    documents = drawn_documents(40, 8)
    engine, judge = engine_of(texts, **options, database=database), engine_of(texts, documents="xpath")
    for _ in range(2):
        expected = answers(judge, documents)
        assert answers(engine, documents) == expected
        assert 150 < sum(map(len, expected)) < 5_000
        for each in (engine, judge):
            for place in range(0, len(texts), 15):
                if f"s{place}" in each:
                    each.unsubscribe(f"s{place}")
    for document in documents[:5]:  # the reference, which explains
        ids = set(engine.match(document).ids)
        for id in list(texts)[1:40:3]:
            explanation = engine.explain(id, document)
            assert explanation.matched == (id in ids), texts[id]


def test_without_sharing_each_subscription_has_a_chain_of_its_own(database: str) -> None:
    texts = {f"s{n}": f"/a[b = 'x' and c = 'y' and d > {n}]" for n in range(10)}
    engine = engine_of(texts, documents="xpath_shared", shared=False, database=database)
    assert rows_of(engine, "SELECT count(*), sum(final) FROM query_predicate") == [[30, 10]]
    assert answers(engine, [b"<a><b>x</b><c>y</c><d>5</d></a>"]) == [[f"s{n}" for n in range(5)]]
    for id in list(texts)[1:]:
        engine.unsubscribe(id)
    assert rows_of(engine, "SELECT count(*), sum(final) FROM query_predicate") == [[3, 1]]


def test_unrolled_rows_and_their_chains_share_prefixes(database: str) -> None:
    texts = {f"s{n}": f"/a[b = 'x' and c = 'y' and d = 'z' and e > {n}]" for n in range(10)}
    engine = engine_of(texts, documents="xpath_unrolled", k=2, database=database)
    assert rows_of(engine, "SELECT count(*), sum(final) FROM predicate_unroll") == [[1, 0]]
    assert rows_of(engine, "SELECT count(*), sum(final) FROM query_predicate") == [[11, 10]]
    document = b"<a><b>x</b><c>y</c><d>z</d><e>5</e></a>"
    assert answers(engine, [document]) == [[f"s{n}" for n in range(5)]]
    engine.subscribe("more", "/a[b = 'x' and c = 'y' and d = 'z' and e > 4]", language="xpath")
    assert rows_of(engine, "SELECT count(*) FROM predicate_unroll") == [[1]]
    for id in [*texts, "more"]:
        engine.unsubscribe(id)
    for table in ("predicate_unroll", "query_predicate", "query_subscription", "query_value", "query_branchpoint"):
        assert rows_of(engine, f"SELECT count(*) FROM {table}") == [[0]], table


@pytest.mark.parametrize("options", [{"k": 0}, {"k": 65}, {"k": True}, {"k": 1, "crossed": True}, {"crossed": 1}])
def test_a_value_that_no_plan_takes_is_an_error(options: dict[str, Any]) -> None:
    with pytest.raises(CapabilityError, match=r"`k`|`crossed`"):
        Engine(documents="xpath_unrolled", **options)
    with pytest.raises(CapabilityError, match="strings"):
        Engine(documents="xpath_shared", strings="order")


# Ordered strings


@pytest.mark.parametrize("options", OPTIONS[:4], ids=lambda each: " ".join(map(str, each.values())))
def test_ordered_strings_compare_as_texts(options: dict[str, Any], database: str) -> None:
    long = "m" * 450
    constants = ["w", "W", "", "10", "é", "\U0001f600", "m" * 440, long, "a'"[:1]]
    texts = {f"{op} {value}": f"/a {op} '{value}'" for op in ("<", "<=", ">", ">=") for value in constants}
    values = ["v", "w", "wa", "x", "", "9", "10", "é", "\uffee", "\U0001f600", long, long + "x", "m" * 439]
    engine = engine_of({**texts, "number": "/a < 10"}, **options, strings="ordered", database=database)
    compare = {"<": str.__lt__, "<=": str.__le__, ">": str.__gt__, ">=": str.__ge__}
    for value, ids in zip(values, answers(engine, [f"<a>{each}</a>".encode() for each in values]), strict=True):
        expected = [id for id in texts if compare[id.split(" ")[0]](value[:440], id.partition(" ")[2][:440])]
        assert ids == sorted([*expected, *["number"] * (value == "9")]), value
    standard = engine_of({"1": "/a < 'w'"}, **options, database=database)
    assert answers(standard, [b"<a>v</a>"]) == [[]], "XPath 1.0 compares numbers"


# The cost metric


def test_the_cost_metric_is_that_of_sections_4_1_and_4_3() -> None:
    given = CostParameters(subscriptions=1_000, branches=2, values=5, paths=2, selectivity=0.01)
    cost = recursive_cost(given)
    ratio = 0.01 * 10 * 0.5  # s p m (b - 1) / b
    retrieved = 1_000 * 0.01 * 10 / (1 - ratio)
    assert cost.tuples == pytest.approx(retrieved)
    assert cost.accesses == pytest.approx(10 + retrieved * 10 * 0.5)
    assert cost.total(2, 3) == pytest.approx(2 * cost.accesses + 3 * cost.tuples)
    assert recursive_cost(given._replace(subscriptions=2_000)).tuples == pytest.approx(2 * retrieved)
    assert crossed_cost(given, 5) == (100, pytest.approx(0.0001 * 100 * 1_000 * 5))
    assert unrolled_cost(given, 5) == (10, pytest.approx(0.01 * 10 * 1_000 * 5))


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: " ".join(map(str, each.values())))
def test_statistics_show_the_expected_cost_beside_the_measured_one(options: dict[str, Any], database: str) -> None:
    texts = {f"s{n}": f"/a[b = '{n % 5}' and c > {n}]" for n in range(50)}
    engine = engine_of(texts, **options, database=database)
    assert "cost" not in engine.stats()["documents"]
    document = b"<a><b>1</b><c>25</c></a>"
    found = answers(engine, [document] * 40)
    assert [len(each) for each in found] == [5] * 40
    stats = engine.stats()["documents"]
    cost = stats["cost"]
    assert (cost["subscriptions"], cost["values"]) == (50, 3)  # two values, and the row that each document has
    assert cost["branches"] == (2 if "buckets" not in options["documents"] else pytest.approx(2, abs=1))
    assert cost["measured_tuples"] >= 5
    assert cost["expected_accesses"] > 0
    assert cost["measured_seconds"] > 0
    if options == OPTIONS[1]:  # ten first predicates hold, and five of the ten second ones
        assert cost["measured_tuples"] == 15
        assert cost["selectivity"] == pytest.approx(10 / (cost["paths"] * 3 * 50))
    assert answers(engine, [document] * 40) == found, "statistics change nothing"


# Paths


def test_paths_that_fit_are_found_by_an_index() -> None:
    from harken_lab.plans.xml import linear_paths

    engine = engine_of({"1": "//c = '1'"}, documents="xpath_shared", database="sqlite")
    engine.match(b"<a><c>1</c></a>")
    database = matcher_of(engine)._session.database
    for query in (linear_paths._TAGS_OF_KEYS, linear_paths._PATHS_OF_KEYS, linear_paths._TAGS_OF_PATHS):
        plan = [step for *_, step in database.rows(f"EXPLAIN QUERY PLAN {query}")]
        assert plan[0] == "SCAN given"
        assert all("USING" in step and "INDEX" in step for step in plan[1:]), plan


def test_tag_paths_leave_one_by_one(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_matcher, "MOST_TAG_PATHS", 24)
    texts = {"any": "//c = '1'", "branch": "//*[c = '1']/d = '2'", "first": "/r/n0[c = '1']/d"}
    engine = engine_of(texts, documents="xpath_shared", database=database)
    documents = [f"<r><n{n}><c>1</c><d>2</d></n{n}></r>".encode() for n in range(30)]
    for n, document in enumerate(documents):
        assert answers(engine, [document]) == [["any", "branch", *["first"] * (n == 0)]]
        assert engine.stats()["documents"]["tag_paths"] <= 24
    ((stored, least),) = rows_of(engine, "SELECT count(*), min(tagpath_id) FROM tagpath_map")
    assert (stored <= 24, least) == (True, 1), "the root element's tag path is in every document, and stays"
    for table in ("pathmatch", "tagpath_brinfo", "tagpath_key"):
        known = "(SELECT tagpath_id FROM tagpath_map)"
        query = f"SELECT count(*) FROM {table} WHERE tagpath_id <> 0 AND abs(tagpath_id) NOT IN {known}"
        assert rows_of(engine, query) == [[0]], table
    assert answers(engine, documents[:3]) == [["any", "branch", "first"], *[["any", "branch"]] * 2]
