"""XPath subscriptions drawn from documents: they are what the parameters say, and lxml finds what the engine finds."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from lxml import etree

from harken import Engine
from harken.language.xpath.ast import And, Comparison, Exists, Expression, Location
from harken.language.xpath.parser import parse
from harken.limits import DEFAULT_LIMITS
from harken_lab.workloads import generate
from harken_lab.workloads.nasa import Nasa
from harken_lab.workloads.workload import Workload
from harken_lab.workloads.xml_collections import has_nasa, records
from harken_lab.workloads.xpaths import Tags, XPaths, XPathShape

DECLARED = re.compile(r"declare namespace (\w+)='([^']*)'; ")
DOCUMENTS = [
    b"<a k='1'><b><c>x</c><c>y</c></b><b><c>7</c><d>it's</d></b></a>",
    b"<a><b><c>-2.5</c></b><e>\n two\n lines</e></a>",
    b"<other xmlns='urn:o'><f>x</f><g xmlns:p='urn:p' p:h='z'/></other>",
]


def drawn(count: int, documents: list[bytes] | None = None, seed: int = 0, **shape: object) -> list[str]:
    tags = Tags(DOCUMENTS if documents is None else documents, int(shape.get("longest", 200)))  # type: ignore[call-overload]
    return list(XPaths(tags, XPathShape(**shape)).texts(count, np.random.default_rng(seed)))  # type: ignore[arg-type]


def comparisons(expression: Expression | Location) -> list[Comparison]:
    """All that a subscription compares, also in predicates."""
    if isinstance(expression, And):
        return [each for item in expression.items for each in comparisons(item)]
    if isinstance(expression, Location):
        return [each for step in expression.steps for inner in step.predicates for each in comparisons(inner)]
    if isinstance(expression, Exists):
        return comparisons(expression.path)
    assert isinstance(expression, Comparison), expression
    return [*comparisons(expression.path), expression]


def by_lxml(text: str, root: etree._Element) -> bool:
    declared = dict(DECLARED.findall(text))
    path = etree.XPath(f"boolean({DECLARED.sub('', text)})", namespaces=declared or None)
    return bool(path(root))


# What is drawn


def test_a_plain_shape_writes_tag_paths_as_they_are() -> None:
    texts = drawn(300, descendant=0, wildcard=0, equality=1, paths=(1, 3), mean=2)
    assert "/a[@k = '1' and b/c = '7']" in texts
    assert "/a/b[c = 'y' and d = \"it's\"]" in texts
    assert "/a/e = '\n two\n lines'" in texts
    assert "declare namespace n1='urn:o'; /n1:other/n1:f = 'x'" in texts
    assert "declare namespace n1='urn:o'; declare namespace n2='urn:p'; /n1:other/n1:g/@n2:h = 'z'" in texts
    assert not any("*" in text or "//" in text.replace("://", "") for text in texts)


def test_paths_of_a_subscription_are_different_and_of_one_root() -> None:
    for text in drawn(300, paths=(5, 5), mean=5, descendant=0, wildcard=0):
        assert len(comparisons(parse(text, DEFAULT_LIMITS))) == (2 if "other" in text else 4)
        assert ("/a" in text) is not ("other" in text)


def test_wildcards_and_descendants() -> None:
    texts = drawn(2_000, descendant=0.4, wildcard=0.4)
    assert any("/*" in text for text in texts)
    assert any("@*" in text for text in texts)
    assert any(text.startswith("//") for text in texts)
    assert any(re.search(r"^/a\[.*\.//c", text) for text in texts), "the step between is left out"
    assert not any("///" in text for text in texts)


@pytest.mark.parametrize("shape", [{}, {"descendant": 0.5, "wildcard": 0.5}, {"equality": 0.0}])
def test_every_comparison_is_as_it_should_be(shape: dict[str, float]) -> None:
    known = {"x", "y", "7", "-2.5", "1", "z", "it's", "\n two\n lines"}
    operators = Counter()
    for text in drawn(1_000, **shape):
        for each in comparisons(parse(text, DEFAULT_LIMITS)):
            operators[each.operator] += 1
            if each.operator in ("=", "!="):
                assert each.value in known
            else:
                assert float(each.value) in (7, 1, -2.5)
    share = operators["="] / operators.total()
    assert share == pytest.approx(shape.get("equality", 0.8), abs=0.03)
    assert set(operators) - {"="} == {"<", "<=", ">", ">=", "!="}


def test_long_values_and_those_that_no_literal_says_are_not_drawn() -> None:
    documents = [b"<a><b>short</b><b>much too long</b><c>'\"</c><d/></a>"]
    assert set(drawn(50, documents, longest=5, descendant=0, wildcard=0, equality=1)) == {"/a/b = 'short'"}


def test_nothing_to_draw_and_what_cannot_be_read_are_told() -> None:
    with pytest.raises(ValueError, match="no value of up to 200 characters"):
        Tags([b"<a/>"])
    with pytest.raises(ValueError, match="document 1 cannot be read"):
        Tags([b"<a>1</a>", b"<a>"])


def test_what_was_drawn_is_counted() -> None:
    xpaths = XPaths(Tags(DOCUMENTS), XPathShape(descendant=0.3, wildcard=0.3))
    texts = list(xpaths.texts(1_500, np.random.default_rng(0)))
    assert xpaths.predicates == sum(len(comparisons(parse(text, DEFAULT_LIMITS))) for text in texts)
    assert {"/a/b/c", "/a/b/d", "/a/@k", "/*/e", "/a//c", "/a/@*", "//a/e"} <= xpaths.linear_paths


def test_fewer_are_the_first_of_more() -> None:
    assert drawn(100) == drawn(3_000)[:100]


def test_the_number_of_linear_paths() -> None:
    texts = list(Nasa(documents="records").texts(3_000, np.random.default_rng(1)))
    counts = np.array([len(comparisons(parse(text, DEFAULT_LIMITS))) for text in texts])
    assert (counts.min(), counts.max()) == (2, 10)
    assert counts.mean() == pytest.approx(7, abs=0.1)


# What they find


@pytest.mark.parametrize("shape", [{}, {"paths": (1, 2), "mean": 1.5}, {"descendant": 0.4, "wildcard": 0.4}])
def test_lxml_finds_the_same(shape: dict[str, object]) -> None:
    documents = list(records()[:40])
    texts = drawn(400, documents, **shape)
    found = matches(texts, documents)
    assert found.any()
    roots = [etree.ElementTree(etree.fromstring(document)) for document in documents]
    for row, text in enumerate(texts):
        expected = [by_lxml(text, root) for root in roots]
        assert found[row].tolist() == expected, text


def matches(texts: list[str], documents: list[bytes]) -> np.ndarray:
    engine = Engine()
    records_ = [{"id": row, "where": text, "language": "xpath"} for row, text in enumerate(texts)]
    assert not engine.subscribe_many(records_).faults
    found = np.zeros((len(texts), len(documents)), np.bool_)
    for place, ids in enumerate(engine.match_batch(documents).ids):
        found[[int(id) for id in ids], place] = True
    return found


# The collections


def test_records_are_nested_recursive_and_mixed() -> None:
    found = records()
    assert len(found) == 300
    assert len(set(found)) == 300
    assert sum(b"</section></section></section>" in each for each in found) > 10
    assert all(re.search(rb"<para>[^<]+<term>\w+</term>[^<]+</para>", each) for each in found)
    assert all(b"link:href" in each for each in found)


def test_documents_come_once_before_one_comes_again() -> None:
    events = generate("nasa", 0, 650, documents="records").events["document"].to_pylist()
    assert set(Counter(events).values()) == {2, 3}
    assert len(set(events[:300])) == len(set(events[300:600])) == 300


def test_without_data_records_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARKEN_DATA", raising=False)
    assert generate("nasa", 1, 1).parameters["documents"] == "records"
    with pytest.raises(ValueError, match="environment variable HARKEN_DATA"):
        generate("nasa", 1, 1, documents="nasa")


@pytest.mark.seconds
@pytest.mark.skipif(not has_nasa(), reason="HARKEN_DATA is not set")
def test_nasa_matches_and_grows_as_the_paper_says() -> None:
    model = Nasa(documents="nasa")
    assert len(model.collection()) == 2_435
    xpaths = model.xpaths()
    texts = list(xpaths.texts(20_000, np.random.default_rng(0)))
    assert 2_000 < len(xpaths.linear_paths) < 6_565
    documents = list(islice(model.collection(), 400))
    found = matches(texts, documents).sum() / len(documents) / len(texts) * 100_000
    assert 2.5 < found < 10


# Stock


@pytest.mark.parametrize("selectivity", [1e-4, 3e-4])
def test_stock_messages_match_as_often_as_asked(selectivity: float) -> None:
    workload = generate("stock-xml", 10_000, 1_000, selectivity=selectivity)
    found = matches(workload.texts().to_pylist(), documents_of(workload))
    assert found.mean() == pytest.approx(selectivity, rel=0.1)


def test_stock_is_as_in_the_paper() -> None:
    workload = generate("stock-xml", 2_000, 50)
    names = Counter(
        name for text in workload.texts().to_pylist() for name in re.findall(r"/stock/(\w+)/text\(\)", text)
    )
    assert set(names) == {"symbol", "price", "open", "change", "low", "high", "volume"}
    assert names["symbol"] == 2_000
    assert names.total() == 10_000
    root = etree.fromstring(documents_of(workload)[0])
    assert [each.tag for each in root] == ["symbol", "price", "open", "change", "low", "high", "volume"]


def documents_of(workload: Workload) -> list[bytes]:
    return [text.encode() for text in workload.events["document"].to_pylist()]
