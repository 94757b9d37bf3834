"""The index of XPath subscriptions: what it finds, through what, and what it says about itself."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from harken import Engine, Limits
from harken.errors import DecodeError, HarkenError, LimitError
from harken.language.xpath.parser import parse
from harken.language.xpath.token_reader import MOST_STEPS
from harken.reference.documents import holds, read

PAPER = '/a//b[.//c/d/text()="v1" AND p//q/text()="v2"]/x[@y="v3"]//z/text() = "v4"'
MESSAGE = (
    b'<a><b><c><d>v1</d></c><p><p2><q>v2</q></p2></p><x y="v3"><z>v4</z><z>v5</z></x></b><b><b><x y="v4"/></b></b></a>'
)


def subscribed(*texts: str, **options: Any) -> Engine:
    """An engine with these texts, each its own id."""
    engine = Engine(**options)
    report = engine.subscribe_many({"id": text, "where": text, "language": "xpath"} for text in texts)
    assert not report.faults
    return engine


def test_the_papers_message_and_subscription_match():
    assert subscribed(PAPER).match(MESSAGE).ids == [PAPER]


@pytest.mark.parametrize(
    "document",
    [
        # Fig. 3.12, second row: all values are there, but the x with v3 is below another b.
        MESSAGE.replace(b'<x y="v3">', b"<x>").replace(b'y="v4"', b'y="v3"'),
        # Fig. 3.11 lays b at 2 and x at 4: that x is no child of that b.
        MESSAGE.replace(b'<x y="v3">', b'<b><x y="v3">').replace(b"</x></b>", b"</x></b></b>", 1),
        # The x with v3 is not the one with z.
        MESSAGE.replace(b'<x y="v3">', b'<x y="v3"/><x>'),
        MESSAGE.replace(b"v1", b"v9"),
        MESSAGE.replace(b"<z>v4</z>", b""),
        MESSAGE.replace(b"<a>", b"<e>").replace(b"</a>", b"</e>"),
    ],
)
def test_branches_that_do_not_meet_do_not_match(document):
    assert not holds(parse(PAPER), document)
    assert subscribed(PAPER).match(document).ids == []


def test_every_branch_may_go_through_the_second_of_two():
    moved = MESSAGE.replace(b"<a>", b"<a><b><x y='v3'/><b>").replace(b"</a>", b"</b></b></a>", 1)
    assert subscribed(PAPER).match(moved).ids == [PAPER]


DOCUMENT = b"<a x='5' y='six'><b>7<c> 8 </c></b><b/><d>12.50</d><e>v<!-- -->w</e>\n</a>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a", True),
        ("/b", False),
        ("b", False),
        (".", True),
        ("/", True),
        (". = '78 12.50vw'", False),
        ("/ != 'x'", True),
        ("/*", True),
        ("/*/*", True),
        ("/*/*/*/*", False),
        ("/a/@x", True),
        ("/a/@z", False),
        ("//@*", True),
        ("/a/b/@*", False),
        ("//@* = 'six'", True),
        ("//@* = 'seven'", False),
        ("//* = '7 8 '", True),
        ("/a/*[. = '']", True),
        ("/a/b != '7 8 '", True),
        ("/a/d != '12.50'", False),
        ("/a/zz != 'x'", False),
        ("/a/d = 12.5", True),
        ("12.5 = /a/d", True),
        ("/a/d = '12.5'", False),
        ("12 < /a/d", True),
        ("13 < /a/d", False),
        ("/a/d >= '12.5'", True),
        ("/a/@y > 0", False),
        ("/a/@y != 6", True),
        ("/a/@x != 5", False),
        ("/a/b/text() = 7", True),
        ("/a/b/c = 8", True),
        ("/a/b/c/text() = '8'", False),
        ("/a/e/text() = 'v'", True),
        ("/a/e/text() = 'w'", True),
        ("/a/e/text() = 'vw'", False),
        ("/a/e = 'vw'", True),
        ("/a/text()", True),
        ("/a/text() != ''", True),
        ("//text() = 12.5", True),
        ("/text()", False),
        ("//c//text()", True),
        ("/a//@x", True),
        ("/a[@x = 5][@y = 'six']/b[c]", True),
        ("/a[@x = 5][@y = 'seven']/b[c]", False),
        ("/a/b[not(c)]", True),
        ("/a[not(b/c)]", False),
        ("not(//zzz)", True),
        ("not(//zzz) and not(//b = 'q')", True),
        ("not(//c)", False),
        ("/a[b[c = 8] and d > 12 or f]", True),
        ("/a[(b = 'q' or d) and not(f)]", True),
    ],
)
def test_one_expression(text, expected):
    assert holds(parse(text), DOCUMENT) is expected
    engine = subscribed(text)
    assert (engine.match(DOCUMENT).ids == [text]) is expected
    assert (engine.match_batch([DOCUMENT] * 3).ids == [[text]] * 3) is expected


@pytest.mark.parametrize(
    ("text", "document", "expected"),
    [
        ("//a//b/c/b", b"<a><b><c><b><b/></b></c></b></a>", True),
        ("//a//b/c/b/b", b"<a><b><c><b><b/></b></c></b></a>", True),
        ("//a//b/c//b/b", b"<a><b><c><b><b/></b></c></b></a>", True),
        ("//a//b/c/b/b/b", b"<a><b><c><b><b/></b></c></b></a>", False),
        ("//b/b//b/c", b"<b><b><b><b><c/></b></b></b></b>", True),
        ("//b/c//b/c/d", b"<b><c><b><c><b><c><d/></c></b></c></b></c></b>", True),
        ("/a//b//a//b", b"<a><a><b><b><a><c><b/></c></a></b></b></a></a>", True),
        ("/a//b/a//b/a", b"<a><b><a><a><b><b/></b></a></a></b></a>", False),
        ("//*/a//*/b", b"<a><a><b><b/></b></a></a>", True),
        ("//a//a//a", b"<a><a><b/></a><a/></a>", False),
        ("//a[b]//a[c]/d", b"<a><b/><a><a><c/><d/></a></a></a>", True),
        ("//a[b]/a[c]/d", b"<a><b/><a><a><c/><d/></a></a></a>", False),
    ],
)
def test_double_slashes_that_have_to_retreat(text, document, expected):
    assert holds(parse(text), document) is expected
    assert bool(subscribed(text).match(document).ids) is expected


def test_all_of_them_in_one_index():
    texts = [f"/a[b{number} = 'x']/{'/' * (number % 2)}c > {number}" for number in range(50)]
    texts += [f"//c > {number}" for number in range(50)]
    texts += [f"not(//b{number})" for number in range(50)]
    engine = subscribed(*texts)
    document = b"<a><b7>x</b7><b8>x</b8><d><c>20</c></d><c>4</c></a>"
    expected = {text for text in texts if holds(parse(text), document)}
    assert len(expected) > 60
    assert set(engine.match(document).ids) == expected


def test_subscriptions_are_found_by_what_is_rare():
    engine = subscribed(*(f"/a[b = 'v{number}' and c > {number % 7}]" for number in range(2_000)))
    found = engine.match(b"<a><b>v77</b><b>v1234</b><c>9</c></a>")
    assert len(found.ids) == found.candidates == 2
    assert engine.match(b"<a><b>other</b><c>9</c></a>").candidates == 0
    assert engine.match(b"<z/>").candidates == 0


def test_a_second_value_spares_programs():
    engine = subscribed(*(f"/a[b = 'same' and c = 'v{number}']" for number in range(1_000)))
    assert engine.match(b"<a><b>same</b><c>v5</c></a>").candidates == 1


def test_ten_thousand_subscriptions_on_one_value():
    engine = subscribed(*(f"/a[b = 'x' and c >= {number}]" for number in range(10_000)))
    assert len(engine.match(b"<a><b>x</b><c>4999</c></a>").ids) == 5_000
    assert len(engine.match(b"<a><b>x</b><c>99999</c></a>").ids) == 10_000
    assert engine.match(b"<a><b>y</b><c>99999</c></a>").candidates == 0
    assert engine.match_batch([b"<a><b>x</b><c>0</c></a>"] * 20).counts == [1] * 20


def test_a_document_with_100_000_equal_children():
    texts = ["/a/b[. = 'x']", "/a[b != 'x']", "/a[not(b != 'x')]/b", "//b[@y]", "/a[c]/b = 'x'", "//*[. = 'x']/text()"]
    engine = subscribed(*texts)
    many = b"<b>x</b>" * 100_000
    assert set(engine.match(b"<a>" + many + b"</a>").ids) == {texts[0], texts[2], texts[5]}
    assert set(engine.match(b"<a>" + many + b"<b y='1'>z</b><c/></a>").ids) == set(texts) - {texts[2]}
    assert set(engine.match(b"<a/>").ids) == set()


def test_a_deep_document():
    texts = ["/" + "/".join("a" * depth) for depth in (1, 30, 59)] + ["//" + "//".join("a" * 30) + "/b = 'x'"]
    texts += ["//a[c]//b", "//a" * 20 + "/c", "/a[" + "a[" * 50 + "a" + "]" * 51]
    engine = subscribed(*texts)
    document = b"<a>" * 59 + b"<b>x</b>" + b"</a>" * 59
    expected = {text for text in texts if holds(parse(text), document)}
    assert expected == {*texts[:4], texts[6]}
    assert set(engine.match(document).ids) == expected
    with pytest.raises(LimitError, match="max_event_depth"):
        engine.match(b"<a>" * 65 + b"</a>" * 65)


def test_deeper_documents_are_matched_where_the_limit_is_wider():
    engine = subscribed("//a/b = 'x'", limits=Limits(max_event_depth=300))
    assert engine.match(b"<a>" * 299 + b"<b>x</b>" + b"</a>" * 299).ids == ["//a/b = 'x'"]


@pytest.mark.parametrize("steps", [61, 300, MOST_STEPS])
def test_paths_of_many_steps_are_matched_where_the_limit_is_wider(steps: int):
    """Also with a predicate at each step, which is more than Python could follow call by call."""
    limits = Limits(max_xpath_steps=steps, max_event_depth=steps)
    plain = "/a" * steps
    texts = [plain, "/a[@x]" * (steps - 1) + "/b = 'v'", "/a[@x][not(@y)]" * (steps - 1), "/a[c or @x]" * (steps - 1)]
    texts += ["/a[@z]" + "/a[@x]" * (steps - 2), "//a" + "[@x]/a" * (steps - 1)]
    if steps > 300:  # to match the others takes seconds
        texts = texts[:3]
    engine = subscribed(*texts, limits=limits)
    document = b"<a x='1'>" * (steps - 1) + b"<b>v</b>" + b"</a>" * (steps - 1)
    expected = {text for text in texts if holds(parse(text, limits), read(document, limits))}
    assert expected == set(texts[1:4])
    assert set(engine.match(document).ids) == expected


def test_an_empty_engine():
    engine = Engine()
    assert engine.match(b"<a/>").ids == []
    assert engine.match_batch([b"<a/>", b"<b/>"]).ids == [[], []]
    engine.subscribe("a", "/a", language="xpath")
    assert engine.match(b"<a/>").ids == ["a"]
    engine.unsubscribe("a")
    assert engine.match(b"<a/>").ids == []
    engine.merge()
    assert engine.match(b"<a/>").ids == []
    assert engine.internals.document_paths() == ()


def test_several_documents_in_one_event():
    engine = subscribed("/a[b = 1]", "/a[c = 2]", "/a[b = 1][c = 2]", "/z", "not(/z)", "/a")
    found = engine.match({"document": ["<a><b>1</b></a>", "<a><c>2</c></a>", "<z/>", "<a/>"]})
    assert len(found.ids) == len(set(found.ids))
    assert set(found.ids) == {"/a[b = 1]", "/a[c = 2]", "/z", "not(/z)", "/a"}
    events = [{"document": "<a/>"}, {}, {"document": ["<z/>", "<a><b>1</b></a>"]}, {"document": 5}, {"document": None}]
    answers = engine.match_batch(events).ids
    assert [sorted(ids) for ids in answers] == [
        ["/a", "not(/z)"],
        [],
        ["/a", "/a[b = 1]", "/z", "not(/z)"],
        [],
        [],
    ]


def test_a_document_that_is_rejected_leaves_the_others():
    engine = subscribed("/a", "not(/b)")
    found = engine.match_batch([b"<a/>", b"<a>", b"<!DOCTYPE a><a/>", b"", b"\xff", b"<b/>", b"<c/>"])
    assert [sorted(ids) for ids in found.ids] == [["/a", "not(/b)"], [], [], [], [], [], ["not(/b)"]]
    assert [each.position for each in found.rejected] == [1, 2, 3, 4]
    assert all(isinstance(each.error, HarkenError) and each.error.message for each in found.rejected)
    with pytest.raises(DecodeError):
        engine.match(b"<a>")
    mixed = engine.match_batch([{"document": ["<a/>", "<a>"]}, {"document": "<a/>"}])
    assert [sorted(ids) for ids in mixed.ids] == [[], ["/a", "not(/b)"]]
    assert [each.position for each in mixed.rejected] == [0]


def test_sql_and_xpath_side_by_side():
    engine = subscribed("/a")
    engine.subscribe("flat", "n = 1")
    engine.subscribe("text", "document LIKE '%<b/>%'")
    engine.subscribe("both", "n = 1 AND xpath_boolean(document, '/a/b')")
    assert sorted(engine.match({"n": 1, "document": "<a><b/></a>"}).ids) == ["/a", "both", "flat", "text"]
    assert sorted(engine.match({"n": 2, "document": "<a/>"}).ids) == ["/a"]
    assert engine.match({"n": 1}).ids == ["flat"]
    assert sorted(engine.match(b"<a><b/></a>").ids) == ["/a", "text"]
    assert engine.internals.document_paths() == (("document",),)


def test_a_text_may_take_the_place_of_one_in_another_language():
    engine = Engine()
    engine.subscribe("s", "/a", language="xpath")
    assert engine.match(b"<a/>").ids == ["s"]
    engine.subscribe("s", "n = 1", replace=True)
    assert engine.match(b"<a/>").ids == []
    assert engine.match({"n": 1}).ids == ["s"]
    engine.subscribe("s", "/b", language="xpath", replace=True)
    assert engine.match({"n": 1}).ids == []
    assert engine.match(b"<b/>").ids == ["s"]


def test_numbers_are_used_again():
    engine = Engine()
    for turn in range(5):
        for number in range(30):
            engine.subscribe(f"{turn}-{number}", f"/a[b = '{number}']", language="xpath")
        document = b"<a>" + b"".join(b"<b>%d</b>" % number for number in range(30)) + b"</a>"
        assert set(engine.match(document).ids) == {f"{turn}-{number}" for number in range(30)}
        for number in range(30):
            engine.unsubscribe(f"{turn}-{number}")
    assert engine.match(document).ids == []


@pytest.mark.seconds
def test_what_a_match_sees_is_one_of_the_states_that_existed():
    documents = [b"<a><b>1</b><c>5</c></a>", b"<a><b>2</b><d x='1'/></a>", b"<z/>"]
    texts = ["/a[b = '1']", "//d[@x = 1]", "not(//b)", "/a[b = '2' or c > 4]", "//b", "/z", "/a/c < 3"]
    truth = {text: [holds(parse(text), document) for document in documents] for text in texts}
    engine = Engine()
    fixed = {f"fixed{number}": f"/a[c = {number}]" for number in range(40)}
    for id, text in fixed.items():
        engine.subscribe(id, text, language="xpath")
    engine.match_batch(documents)
    states: list[dict[str, str]] = [{}]
    done = threading.Event()
    problems: list[object] = []

    def answers_in(state: dict[str, str]) -> list[set[str]]:
        always = [{"fixed5"}, set(), set()]
        return [always[place] | {id for id, text in state.items() if truth[text][place]} for place in range(3)]

    def read() -> None:
        while not done.is_set() and not problems:
            before = max(0, len(states) - 2)  # of the last one it is not known yet whether it was reached
            try:
                found = [set(ids) for ids in engine.match_batch(documents).ids]
            except BaseException as problem:
                problems.append(problem)
                return
            if found not in [answers_in(state) for state in states[before:]]:
                problems.append((found, states[before:]))

    def change(turn: int) -> None:
        state = dict(states[-1])
        id, text = f"s{turn % 5}", texts[turn * 3 % len(texts)]
        if turn % 4 == 3 and id in state:
            del state[id]
            states.append(state)
            engine.unsubscribe(id)
        else:
            states.append({**state, id: text})
            engine.subscribe(id, text, language="xpath", replace=True)
        if turn % 17 == 0:
            engine.merge()

    threads = [threading.Thread(target=read) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for turn in range(300):
            change(turn)
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not problems
    assert [set(ids) for ids in engine.match_batch(documents).ids] == answers_in(states[-1])


def test_threads_share_a_batch():
    engine = subscribed(*(f"/a[b = '{number}' or c > {number}]" for number in range(50)))
    documents = [b"<a><b>%d</b><c>%d</c></a>" % (number % 60, number % 7) for number in range(500)]
    one = [sorted(ids) for ids in engine.match_batch(documents).ids]
    assert [sorted(ids) for ids in engine.match_batch(documents, threads=4).ids] == one


def test_stats():
    engine = subscribed("/a[b = 'x' and c > 3]", "/a[b = 'x']", "not(//zzz)", "//d")
    assert engine.stats()["documents"]["documents"] == 0
    assert engine.stats()["documents"]["seen_programs"] is None
    engine.match_batch([b"<a><b>x</b></a>", b"<d/>"])
    stats = engine.stats()["documents"]
    assert stats["subscriptions"] == 4
    assert [each["programs"] for each in stats["indexes"]] == [4]
    assert [each["always"] for each in stats["indexes"]] == [1]
    assert stats["linear_paths"] == 5  # /a /a/b /a/c //zzz //d
    assert stats["values"] == 1
    assert stats["documents"] == 2
    assert 1 <= stats["seen_programs"] <= 4
    assert stats["memory"]["bytes"] > 0
    assert stats["tag_paths"] >= 4


def test_what_is_learnt_lays_the_index_out_anew():
    """All documents have the first value, and few the second: once that is known, few programs are run."""
    engine = subscribed(*(f"/a[@b = 'often' and c/@d = 'v{number}' and @e > 0]" for number in range(500)))
    documents = [f"<a b='often' e='1'><c d='v{number}'/></a>".encode() for number in range(700)]
    for _ in range(2):
        found = engine.match_batch(documents)
        assert found.counts == [1] * 500 + [0] * 200
    assert max(found.candidates) == 1


def test_explain():
    engine = subscribed(PAPER)
    assert engine.explain(PAPER, MESSAGE).matched
    apart = MESSAGE.replace(b'<x y="v3">', b'<x y="v3"/><x>')
    explained = engine.explain(PAPER, apart)
    assert not explained.matched
    assert "not below one `x`" in str(explained)
    assert not engine.explain(PAPER, {"n": 1}).matched
