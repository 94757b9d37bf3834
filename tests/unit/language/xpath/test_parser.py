"""The parser: what each text stands for, and for each kind of rejection its message, its place and its hint."""

from __future__ import annotations

import sys

import pytest

from harken.errors import LimitError, ParseError
from harken.language.xpath.ast import And, Comparison, Exists, Expression, Location, NodeKind, Not, Or, Step
from harken.language.xpath.parser import parse, parse_accepted, parse_carefully
from harken.language.xpath.token_reader import MOST_STEPS
from harken.limits import DEFAULT_LIMITS, Limits
from unit.deadline import without_hanging


def child(name: str | None, *predicates: Expression) -> Step:
    return Step(False, NodeKind.ELEMENT, name, predicates)


def below(name: str | None, *predicates: Expression) -> Step:
    return Step(True, NodeKind.ELEMENT, name, predicates)


def attribute(name: str | None, *predicates: Expression) -> Step:
    return Step(False, NodeKind.ATTRIBUTE, name, predicates)


def path(*steps: Step) -> Location:
    return Location(steps)


def exists(*steps: Step) -> Exists:
    return Exists(path(*steps))


def equal(value: str | float, *steps: Step) -> Comparison:
    return Comparison(path(*steps), "=", value)


TEXT = Step(False, NodeKind.TEXT, None)
A, B, C, X = (exists(child(name)) for name in "abcx")
FIG_3_2 = '/a//b[.//c/d/text()="v1" AND p//q/text()="v2"]/x[@y="v3"]//z/text() = "v4"'
BRANCHES = And(
    (equal("v1", below("c"), child("d"), TEXT), equal("v2", child("p"), below("q"), TEXT)),
)


# Paths


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("/a", [child("a")]),
        ("a", [child("a")]),
        ("./a", [child("a")]),
        ("/./a/.", [child("a")]),
        ("//a", [below("a")]),
        (".//a", [below("a")]),
        ("/a//b", [child("a"), below("b")]),
        ("/a/*//*", [child("a"), child(None), below(None)]),
        ("/a/@b", [child("a"), attribute("b")]),
        ("/a/@*", [child("a"), attribute(None)]),
        ("//@b", [Step(True, NodeKind.ATTRIBUTE, "b")]),
        ("/a//@*", [child("a"), Step(True, NodeKind.ATTRIBUTE, None)]),
        ("/a/text()", [child("a"), TEXT]),
        ("/a/text ( )", [child("a"), TEXT]),
        ("/a//text()", [child("a"), Step(True, NodeKind.TEXT, None)]),
        ("/a/text", [child("a"), child("text")]),
        (" / a\n/\tb ", [child("a"), child("b")]),
        ("/a-b/c.d/_e", [child("a-b"), child("c.d"), child("_e")]),
        ("/größe/名", [child("größe"), child("名")]),
        ("child::a/child::*", [child("a"), child(None)]),
        ("/child::a/attribute::b", [child("a"), attribute("b")]),
        ("a/attribute::*", [child("a"), attribute(None)]),
        ("/descendant::a", [below("a")]),
        ("a/descendant::text()", [child("a"), Step(True, NodeKind.TEXT, None)]),
        ("a/child::text()", [child("a"), TEXT]),
        ("a//descendant::b", [child("a"), below("b")]),
        ("a//child::b", [child("a"), below("b")]),
        ("/descendant-or-self::node()/a", [below("a")]),
        ("a/descendant-or-self::node()//b", [child("a"), below("b")]),
        ("a/descendant-or-self::node()/@b", [child("a"), Step(True, NodeKind.ATTRIBUTE, "b")]),
        ("a/descendant-or-self::node()/child::b", [child("a"), below("b")]),
        ("self::node()/a", [child("a")]),
        ("a/self::node()//b", [child("a"), below("b")]),
        ("/child/descendant/self", [child("child"), child("descendant"), child("self")]),
        ("/", []),
        (".", []),
        ("self::node()", []),
    ],
)
def test_a_path(text, steps):
    assert parse(text) == exists(*steps)
    assert parse_carefully(text) == exists(*steps)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("/and/or", exists(child("and"), child("or"))),
        ("/a[and = 'x' and b]", exists(child("a", And((equal("x", child("and")), B))))),
        ("or or or", Or((exists(child("or")), exists(child("or"))))),
        ("and and and", And((exists(child("and")), exists(child("and"))))),
        ("not and not(not)", And((exists(child("not")), Not(exists(child("not")))))),
        ("* and *", And((exists(child(None)), exists(child(None))))),
        ("div = 'x' or mod", Or((equal("x", child("div")), exists(child("mod"))))),
        ("declare", exists(child("declare"))),
        ("declare/namespace", exists(child("declare"), child("namespace"))),
        ("a and/b", And((A, B))),
        ("a[b]and//c", And((exists(child("a", B)), exists(below("c"))))),
    ],
)
def test_words_are_names_where_a_step_may_stand(text, expression):
    assert parse(text) == expression


def test_a_location_knows_where_it_stood():
    found = parse("/a[b]  and  c = 5")
    assert isinstance(found, And)
    first, second = found.items
    assert isinstance(first, Exists)
    assert isinstance(second, Comparison)
    assert (first.path.at, second.path.at) == (0, 12)


# Comparisons


@pytest.mark.parametrize("sign", ["=", "!=", "<", "<=", ">", ">="])
def test_the_comparisons(sign):
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
    assert parse(f"a {sign} 5") == Comparison(path(child("a")), sign, 5.0)
    assert parse(f"5{sign}a") == Comparison(path(child("a")), mirrored, 5.0)
    assert parse(f"'x' {sign} a/@b") == Comparison(path(child("a"), attribute("b")), mirrored, "x")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'x'", "x"),
        ('"it\'s"', "it's"),
        ("'a \"b\"'", 'a "b"'),
        ("''", ""),
        ("'a\\'", "a\\"),
        ("' and [ / '", " and [ / "),
        ("5", 5.0),
        ("-5", -5.0),
        ("- 5", -5.0),
        ("--5", 5.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("05.50", 5.5),
        ("-0", 0.0),
        ("12345678901234567890", 12345678901234567890.0),
    ],
)
def test_the_constants(written, value):
    found = parse(f"a = {written}")
    assert found == equal(value, child("a"))
    assert str(found.value) == str(value)  # no -0.0


def test_parentheses_around_operands_change_nothing():
    assert parse("((a)) = ('x')") == equal("x", child("a"))
    assert parse("(5) > (a/b)") == Comparison(path(child("a"), child("b")), "<", 5.0)


# Predicates


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("a[b]", exists(child("a", B))),
        ("a[b][c]", exists(child("a", B, C))),
        ("a[b[c]]/x", exists(child("a", exists(child("b", C))), child("x"))),
        ("a[. = 'x']", exists(child("a", equal("x")))),
        ("a[@b = 'x']/c = 5", equal(5.0, child("a", equal("x", attribute("b"))), child("c"))),
        ("a/@b[. = 'x']", exists(child("a"), attribute("b", equal("x")))),
        ("a/text()[. = 'x']", exists(child("a"), Step(False, NodeKind.TEXT, None, (equal("x"),)))),
        ("a[b = 'x'] = 'y'", equal("y", child("a", equal("x", child("b"))))),
        ("//*[@*]", exists(below(None, exists(attribute(None))))),
        ("a[.//b and ./c]", exists(child("a", And((exists(below("b")), C))))),
    ],
)
def test_predicates(text, expression):
    assert parse(text) == expression


def test_the_subscription_of_figure_3_2():
    steps = [child("a"), below("b", BRANCHES), child("x", equal("v3", attribute("y"))), below("z"), TEXT]
    assert parse(FIG_3_2) == equal("v4", *steps)
    assert parse(FIG_3_2.replace("]/x", "] /x").replace(" AND ", " and ")) == equal("v4", *steps)


def test_the_issue_s_form_of_figure_3_2():
    found = parse("/a//b[c/d = 'v1' and p//q = 'v2']/x[@y = 'v3']//z = 'v4'")
    both = And((equal("v1", child("c"), child("d")), equal("v2", child("p"), below("q"))))
    assert found == equal("v4", child("a"), below("b", both), child("x", equal("v3", attribute("y"))), below("z"))


# And, or, not


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("a and b and c", And((A, B, C))),
        ("a or b or c", Or((A, B, C))),
        ("a and b or c", Or((And((A, B)), C))),
        ("a or b and c", Or((A, And((B, C))))),
        ("(a or b) and c", And((Or((A, B)), C))),
        ("a and (b and c)", And((A, B, C))),
        ("(a or b) or (c or x)", Or((A, B, C, X))),
        ("a AND b OR c", Or((And((A, B)), C))),
        ("not(a)", Not(A)),
        ("not (a) and b", And((Not(A), B))),
        ("not(not(a))", A),
        ("not(not(not(a)))", Not(A)),
        ("not(a and b)", Not(And((A, B)))),
        ("a = 5 and b < 6", And((equal(5.0, child("a")), Comparison(path(child("b")), "<", 6.0)))),
        ("a[not(b = 'x')]", exists(child("a", Not(equal("x", child("b")))))),
        ("((a))", A),
        ("not((a))", Not(A)),
        ("not((not(a)))", A),
    ],
)
def test_precedence(text, expression):
    assert parse(text) == expression


# Namespaces


def test_declared_prefixes():
    found = parse("declare namespace p = 'u'; declare namespace q=\"v\"; /p:a/q:b[@p:c = 'x']/d/@e")
    steps = [child("{u}a"), child("{v}b", equal("x", attribute("{u}c"))), child("d"), attribute("e")]
    assert found == exists(*steps)


def test_the_default_namespace_is_that_of_elements():
    assert parse("declare default element namespace 'u'; a/@b") == exists(child("{u}a"), attribute("b"))
    assert parse("declare default element namespace ''; a") == A
    assert parse("a") == A


def test_the_prefix_xml_is_always_declared():
    assert parse("a/@xml:lang") == exists(child("a"), attribute("{http://www.w3.org/XML/1998/namespace}lang"))


# Rejections: text, column, words of the message, words of the hint


REJECTIONS = [
    ("", 1, "the text is empty", "expected a path"),
    ("  ", 1, "the text is empty", None),
    ("a and", 6, "ends too early", "expected a path"),
    ("a/", 3, "ends too early", "a step"),
    ("a[b", 4, "ends too early", "`]`"),
    ("a[]", 3, "the predicate is empty", "a[b]"),
    ("not()", 5, "not() is empty", "not(a)"),
    ("my-own(a)", 1, "the function my-own()", None),
    ("fn:exists(a)", 1, "the function fn:exists()", None),
    ("$x = 5", 1, "variables", "write the value"),
    (".[a]", 2, "cannot have a predicate", "the step before"),
    ("a/.[b]", 4, "cannot have a predicate", "the step before"),
    ("(: note :) a", 1, "comments", None),
    ("a (: note :)", 3, "comments", None),
    ("a = 'x", 5, "not closed", "end it with '"),
    ('a = "x', 5, "not closed", 'end it with "'),
    ("a <> 5", 4, "unexpected `>`", "!="),
    ("a == 5", 4, "unexpected `=`", "="),
    ("a eq 5", 3, "unexpected `eq`", "write ="),
    ("a && b", 3, "'&'", "write and"),
    ("!a", 1, "'!'", "not("),
    ("a And b", 3, "unexpected `And`", "write and or AND"),
    ("not a", 5, "unexpected `a`", "not(a)"),
    ("a b", 3, "unexpected `b`", "and or or"),
    ("a 5", 3, "unexpected `5`", "and or or"),
    ("a, b", 2, "unexpected `,`", "and or or"),
    ("a]", 2, "unexpected `]`", "expected"),
    ("a)", 2, "unexpected `)`", "expected"),
    ("a///b", 4, "unexpected `/`", "//"),
    ("/[a]", 2, "unexpected `[`", "a step"),
    ("/ and b", 7, "unexpected `b`", None),
    ("a/@", 4, "ends too early", "attribute"),
    ("a/@5", 4, "unexpected `5`", "attribute"),
    ("{u}a", 1, "'{'", "declare namespace"),
    ("a\u00a0= 5", 2, "unexpected character", "no-break space"),
    ("a = \u201cx\u201d", 5, "unexpected character", "plain quotes"),
    ("p:a", 1, "the prefix `p` is not declared", "declare namespace p = 'uri';"),
    ("a/@p:b", 4, "the prefix `p` is not declared", "declare namespace p = 'uri';"),
    ("declare namespace p 'u'; a", 21, "unexpected", "`=`"),
    ("declare namespace p = u; a", 23, "unexpected `u`", "in quotes"),
    ("declare namespace p = 'u' p:a", 27, "unexpected `p:a`", "`;`"),
    ("declare namespace p = ''; p:a", 23, "empty", None),
    ("declare namespace xml = 'u'; a", 19, "cannot be declared", None),
    ("declare namespace p = 'u'; declare namespace p = 'v'; a", 48, "declared twice", None),
    ("declare default namespace 'u'; a", 17, "unexpected `namespace`", "default element namespace"),
    ("declare namespace p = 'u';", 27, "ends too early", "expected a path"),
    ("a = " + "9" * 400, 5, "too large", None),
    ("count(a, b)", 1, "count() takes 1 argument, not 2", None),
    ("concat('x') = a", 1, "concat() takes at least 2 arguments, not 1", None),
    ("substring(a) = 'x'", 1, "substring() takes 2 or 3 arguments, not 1", None),
    ("position(1)", 1, "position() takes no arguments, not 1", None),
    ("translate(a, 'x')", 1, "translate() takes 3 arguments, not 2", None),
    ("string(a, b)", 1, "string() takes 0 or 1 arguments, not 2", None),
    ("count('x') = 1", 1, "count() takes nodes", "write a path"),
    ("sum(a + 1) = 1", 1, "sum() takes nodes", "write a path"),
    ("contains(a,", 12, "ends too early", "expected a path"),
    ("contains(a, )", 13, "unexpected `)`", "expected a path"),
    ("concat(a b)", 10, "unexpected `b`", None),
    ("stringlength(a) = 3", 1, "the function stringlength()", "did you mean `string-length`"),
    ("id('x')", 1, "the function id()", "//a[@id = '7']"),
    ("lower-case(a) = 'x'", 1, "the function lower-case()", "translate"),
    ("a/string()", 3, "the function string() cannot be a step", "string(a/b)"),
    ("a/not(b)", 3, "not() cannot be a step", "not(a/b)"),
    ("namespace::b", 1, "the axis namespace:: is not supported", "namespace-uri()"),
    ("a/parents::b", 3, "there is no axis parents::", "parent::"),
    ("a/comment()", 3, "the node test comment()", "without comments"),
    ("//processing-instruction('x')", 3, "the node test processing-instruction()", "without comments"),
    ("a/text('x')", 8, "unexpected `'x'`", "text() takes nothing"),
    ("a/..[b]", 5, "`..` cannot have a predicate", "parent::node()[a]"),
    ("a || b", 4, "unexpected `|`", "or is written or"),
    ("a | 'x'", 8, "only nodes can stand beside `|`", "or"),
    ("1 | a", 3, "only nodes can stand beside `|`", "or"),
    ("'x'[1]", 4, "`[` needs nodes before it", "a[b]"),
    ("count(a)/b", 9, "`/` needs nodes before it", "a[b]"),
    ("a + ", 4, "ends too early", "expected a path"),
    ("a * = 3", 5, "unexpected `=`", None),
    ("+a = 2", 1, "unexpected `+`", None),
    ("$x + 1 = a", 1, "variables", "write the value"),
    ("a/p:*", 3, "the prefix `p` is not declared", "declare namespace p = 'uri';"),
]


@pytest.mark.parametrize(("text", "column", "message", "hint"), REJECTIONS, ids=lambda value: str(value)[:30])
def test_rejections(text, column, message, hint):
    with pytest.raises(ParseError) as caught:
        parse(text)
    error = caught.value
    assert error.place is not None
    assert (error.place.line, error.place.column) == (1, column)
    assert message in error.message
    assert error.excerpt is not None
    if hint is not None:
        assert hint in (error.hint or "")


def test_a_place_has_a_line_and_a_caret():
    with pytest.raises(ParseError) as caught:
        parse("/a[\n  b = 'x' and\n  size(c)\n]")
    error = caught.value
    assert str(error.place) == "line 3, column 3"
    assert error.excerpt == "  size(c)\n  ^"


# Limits


def limit_of(text: str, **limits: int) -> str:
    with pytest.raises(LimitError) as caught:
        parse(text, Limits(**limits))
    assert caught.value.place is not None
    return caught.value.limit


def test_the_length_of_a_text_is_limited():
    assert parse("/abc", Limits(max_text_length=4))
    assert limit_of("/abcd", max_text_length=4) == "max_text_length"


def test_nesting_is_limited():
    limits = Limits(max_nesting=3)
    for text in ("((( a )))", "a[b[c[x]]]", "not(not(not(a)))", "not((a[b]))"):
        assert parse(text, limits)
        assert limit_of(f"({text})", max_nesting=3) == "max_nesting"
    assert parse(" and ".join(["(a[b])"] * 50), limits)


def test_constants_are_limited():
    assert parse("a = 1 or a = 'x'", Limits(max_values=2))
    assert limit_of("a = 1 or a = 'x' or a = -2", max_values=2) == "max_values"


def test_steps_are_limited():
    most = "/a" * DEFAULT_LIMITS.max_xpath_steps
    assert parse(most)
    assert limit_of(most + "/a") == "max_xpath_steps"
    half = "/a" * (DEFAULT_LIMITS.max_xpath_steps // 2)
    assert parse(f"{half}[{half[1:]}]/a")
    assert limit_of(f"{half}[{half[1:]}[a]]") == "max_xpath_steps"
    assert limit_of(f"{half}[{half[1:]}/a]") == "max_xpath_steps"


@pytest.mark.parametrize("most", [3, 100, MOST_STEPS])
def test_the_limit_on_steps_is_the_one_that_was_set(most: int):
    limits = Limits(max_xpath_steps=most)
    for step in ("/a", "//a[b = 1]"):  # read run by run, and step by step
        text = step * most if "[" not in step else step * (most - 1)
        assert parse(text, limits) == parse_carefully(text, limits)
        with pytest.raises(LimitError, match=f"more than {most:,} steps below the root") as caught:
            parse(text + step + "/a", limits)
        assert caught.value.limit == "max_xpath_steps"
        assert parse_accepted(text) == parse(text, limits)
    with pytest.raises(LimitError):
        parse("/a" * (most + 1), limits)  # also where its beginning is known from other texts


def test_no_limit_lets_through_more_steps_than_an_index_takes():
    text = "/a" * (MOST_STEPS + 1)
    for limits in (Limits(max_xpath_steps=MOST_STEPS + 1), Limits(max_xpath_steps=sys.maxsize)):
        with pytest.raises(LimitError, match=f"more than {MOST_STEPS:,} steps") as caught:
            parse(text, limits)
        assert caught.value.limit == "max_xpath_steps"
        assert "the most that an index takes" in str(caught.value)


HOSTILE = [
    "(" * 50_000 + "a" + ")" * 50_000,
    "not(" * 25_000,
    "a[" * 50_000,
    "a[" * 30_000 + "b" + "]" * 30_000,
    "-" * 100_000,
    "/a" * 50_000,
    "//" * 50_000,
    "'" * 99_999,
    "\"'" * 50_000,
    "[" * 100_000,
    ":" * 100_000,
    "a:" * 50_000,
    "a = 1 or " * 11_000,
    " " * 100_000,
    "a" * 99_999 + "(",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:8])
def test_hostile_texts_are_rejected_quickly(text):
    with without_hanging(), pytest.raises((ParseError, LimitError)):
        parse(text)


def test_a_level_beyond_what_python_follows_is_a_limit():
    for text in ("(" * 50_000 + "a" + ")" * 50_000, "not(" * 20_000 + "a" + ")" * 20_000):
        assert limit_of(text, max_nesting=10**9) == "max_nesting"


def test_the_most_that_the_limits_allow():
    deep = "not((" * 25 + "a[" * 49 + "b" + "]" * 49 + "))" * 25
    assert parse(deep)
    wide = " or ".join(f"/a{number}/b[c = {number}]" for number in range(4_000))
    with without_hanging():
        found = parse(wide)
    assert isinstance(found, Or)
    assert len(found.items) == 4_000
    long = "a = '" + "x" * 100_000 + "'"
    assert parse(long) == equal("x" * 100_000, child("a"))
