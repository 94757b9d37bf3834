"""XPath expressions as conjunctions of branches: the tables of Fig. 3.3, 3.4 and 4.1 of seed 004, and more."""

from __future__ import annotations

import pytest

from harken import Limits
from harken.errors import LimitError, UnavailableError
from harken.language.xpath.ast import NodeKind, Step
from harken.language.xpath.linear import Branch, LinearPath, conjunctions
from harken.language.xpath.parser import parse

# The paper writes [//c/d…] and [/p//q…] for paths from b. In XPath 1.0 these would start at the root.
PAPER = "/a//b[.//c/d/text() = 'v1' and p//q/text() = 'v2']/x[@y = 'v3']//z/text() = 'v4'"


def only(text: str) -> tuple[Branch, ...]:
    (found,) = conjunctions(parse(text))
    return found.branches


def shown(branch: Branch) -> tuple[object, ...]:
    return branch.path.text, branch.operator, branch.value, branch.branch_info


def test_figure_3_3_a_conjunction_of_branches():
    assert [shown(branch) for branch in only(PAPER)] == [
        ("/a//b//c/d/text()", "=", "v1", "bp#1=2"),
        ("/a//b/p//q/text()", "=", "v2", "bp#1=2"),
        ("/a//b/x/@y", "=", "v3", "bp#1=2&bp#2=3"),
        ("/a//b/x//z/text()", "=", "v4", "bp#1=2&bp#2=3"),
    ]


def test_figure_3_4_query_linear_path():
    rows = [
        (path.text, number, path.prefix, path.postfix, path.middle)
        for number, path in enumerate((branch.path for branch in only(PAPER)), 100)
    ]
    assert rows == [
        ("/a//b//c/d/text()", 100, "/a", "text()/d/c", "b"),
        ("/a//b/p//q/text()", 101, "/a", "text()/q", "b/p"),
        ("/a//b/x/@y", 102, "/a", "@y/x/b", None),
        ("/a//b/x//z/text()", 103, "/a", "text()/z", "b/x"),
    ]


def test_figure_3_4_query_predicate():
    branches = only(PAPER)
    chain = [0, *range(501, 501 + len(branches) - 1), 5]
    rows = [
        (chain[place], 100 + place, branch.operator, branch.value, chain[place + 1], branch is branches[-1])
        for place, branch in enumerate(branches)
    ]
    assert rows == [
        (0, 100, "=", "v1", 501, False),
        (501, 101, "=", "v2", 502, False),
        (502, 102, "=", "v3", 503, False),
        (503, 103, "=", "v4", 5, True),
    ]


def test_figure_3_4_linear_path_br_info_and_query_branch_point():
    branches = only(PAPER)
    rows = [(branch.path.text, 100 + place, branch.branch_info, 50 + place) for place, branch in enumerate(branches)]
    assert rows == [
        ("/a//b//c/d/text()", 100, "bp#1=2", 50),
        ("/a//b/p//q/text()", 101, "bp#1=2", 51),
        ("/a//b/x/@y", 102, "bp#1=2&bp#2=3", 52),
        ("/a//b/x//z/text()", 103, "bp#1=2&bp#2=3", 53),
    ]
    assert (5, "&".join(str(row[-1]) for row in rows)) == (5, "50&51&52&53")


def test_figure_4_1_unrolled():
    row: tuple[object, ...] = (5,)
    for place, branch in enumerate(only(PAPER)):
        row += (100 + place, branch.operator, branch.value)
    assert row == (5, 100, "=", "v1", 101, "=", "v2", 102, "=", "v3", 103, "=", "v4")


@pytest.mark.parametrize(
    ("text", "prefix", "middle", "postfix"),
    [
        ("/a/b/@c", "/a/b/@c", None, None),
        ("/a//b", "/a", None, "b"),
        ("//b/c", "", None, "c/b"),
        ("//b//c", "", "b", "c"),
        ("/a//b/c//*/d//e/text()", "/a", "b/c//*/d", "text()/e"),
        ("/a/*//@*", "/a/*", None, "@*"),
        ("/", "/", None, None),
    ],
)
def test_a_path_is_cut_at_the_first_and_the_last_double_slash(text, prefix, middle, postfix):
    path = LinearPath.parse(text)
    assert (path.text, path.prefix, path.middle, path.postfix) == (text, prefix, middle, postfix)


def test_the_text_of_a_path_has_slashes_between_steps_only():
    uri = "http://x/{1}/100%25"
    path = LinearPath((Step(False, NodeKind.ELEMENT, f"{{{uri}}}a"), Step(True, NodeKind.ATTRIBUTE, f"{{{uri}}}b")))
    escaped = "{http:%2F%2Fx%2F%7B1%7D%2F100%2525}"
    assert path.text == f"/{escaped}a//@{escaped}b"
    assert LinearPath.parse(path.text) == path
    assert (path.prefix, path.postfix) == (f"/{escaped}a", f"@{escaped}b")


def test_equalities_come_first_and_branching_points_keep_their_numbers():
    assert [shown(branch) for branch in only("/a[b > 1 and c[d and e = 2] and f = 3]")] == [
        ("/a/c/e", "=", 2.0, "bp#1=1&bp#2=2"),
        ("/a/f", "=", 3.0, "bp#1=1"),
        ("/a/b", ">", 1.0, "bp#1=1"),
        ("/a/c/d", None, None, "bp#1=1&bp#2=2"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a/b", [("/a/b", None, None, "")]),
        ("/a[b]", [("/a/b", None, None, "")]),
        ("/a[b]/c", [("/a/b", None, None, "bp#1=1"), ("/a/c", None, None, "bp#1=1")]),
        ("/a/b = 1 and /a/c = 2", [("/a/b", "=", 1.0, ""), ("/a/c", "=", 2.0, "")]),
        ("/a[. > 1 and . < 5]", [("/a", ">", 1.0, "bp#1=1"), ("/a", "<", 5.0, "bp#1=1")]),
        ("/a[. != 'x']/b", [("/a", "!=", "x", "bp#1=1"), ("/a/b", None, None, "bp#1=1")]),
        ("/a[b[.]]", [("/a/b", None, None, "")]),
        ("/a[b][b]", [("/a/b", None, None, "bp#1=1"), ("/a/b", None, None, "bp#1=1")]),
        (". = 'x'", [("/", "=", "x", "")]),
        (".", [("/", None, None, "")]),
        ("//*[@* >= 2]//text()", [("//*/@*", ">=", 2.0, "bp#1=1"), ("//*//text()", None, None, "bp#1=1")]),
    ],
)
def test_branches(text, expected):
    assert [shown(branch) for branch in only(text)] == expected


def test_or_makes_several_conjunctions_each_with_its_own_branching_points():
    found = conjunctions(parse("/a[b = 1 or c/d[e = 2 and f]]/g or //h"))
    assert [[shown(branch) for branch in each.branches] for each in found] == [
        [("/a/b", "=", 1.0, "bp#1=1"), ("/a/g", None, None, "bp#1=1")],
        [
            ("/a/c/d/e", "=", 2.0, "bp#1=1&bp#2=3"),
            ("/a/c/d/f", None, None, "bp#1=1&bp#2=3"),
            ("/a/g", None, None, "bp#1=1"),
        ],
        [("//h", None, None, "")],
    ]


def test_the_number_of_conjunctions_is_limited():
    ten = parse(" and ".join(f"(a{place} or b{place})" for place in range(10)))
    assert len(conjunctions(ten)) == 1_024
    more = parse(" and ".join(f"(a{place} or b{place})" for place in range(60)))
    with pytest.raises(LimitError) as caught:
        conjunctions(more)
    assert caught.value.limit == "max_conjunctions"
    assert "`max_conjunctions`" in str(caught.value)
    with pytest.raises(LimitError):
        conjunctions(parse("a or b or c"), Limits(max_conjunctions=2))
    assert len(conjunctions(parse("a or b"), Limits(max_conjunctions=2))) == 2


@pytest.mark.parametrize(
    ("text", "named"),
    [("not(/a)", "not(/a)"), ("/a[b and not(c = 'x')]", "not(c = 'x')"), ("/a or /b[not(.//c)]", "not(.//c)")],
)
def test_what_is_not_there_has_no_branch(text, named):
    with pytest.raises(UnavailableError) as caught:
        conjunctions(parse(text))
    assert f"`{named}`" in caught.value.message
    assert "does not exist" in caught.value.message
