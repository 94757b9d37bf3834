"""The work for a long text grows with its length, not with the square of it: lines that Python runs are counted."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from harken.language.compiled import Compiler
from harken.limits import Limits
from harken.schema import Schema, parse_schema

pytestmark = pytest.mark.seconds

SHORT, LONG = 200, 400
FEW = Limits(max_conjunctions=0)
"""Few enough that what is not one predicate is a tree."""


def lines_run(compiler: Compiler, text: str) -> int:
    """How many lines of Harken's own modules are run to compile a text."""
    count = 0

    def trace(frame: FrameType, what: str, argument: Any) -> Any:
        nonlocal count
        if not frame.f_globals.get("__name__", "").startswith("harken."):
            return None
        count += what == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        compiler.compile(text)
    finally:
        sys.settrace(before)
    return count


def assert_linear(long: str, short: str, limits: Limits, schema: Schema | None = None) -> None:
    """Twice the text takes about twice the work; a text of another shape was compiled before, so that all is loaded."""
    compilers = [Compiler(schema, limits) for _ in range(3)]
    lines_run(compilers[0], short)
    few, many = lines_run(compilers[1], short), lines_run(compilers[2], long)
    assert few > SHORT
    assert many < 2.5 * few


def any_of(form: str, count: int) -> str:
    return " OR ".join(form.format(n, n + 1, "ab"[n % 2], "<>"[n % 2], -n) for n in range(0, 3 * count, 3))


def all_of(form: str, count: int) -> str:
    return any_of(form, count).replace(" OR ", " AND ")


ALTERNATIVES = {
    "equal": "a = {0}",
    "of two attributes": "{2} = {0}",
    "strings": "s = 'x{0}'",
    "ranges": "a {3} {0}",
    "ranges apart": "a > {4}",
    "all but one": "a <> {0}",
    "between": "a BETWEEN {0} AND {1}",
    "lists": "a IN ({0}, {1})",
    "in brackets": "(a = {0} OR a = {1})",
    "not in brackets": "NOT (a <> {0} AND a <> {1})",
    "of paths": "p.q = {0}",
    "of functions": "lower(s) = 'x{0}'",
    "of kinds": "a = {0} OR a = '{0}'",
    "prefixes": "s LIKE 'x{0}%'",
    "patterns": "s LIKE '%x{0}%'",
    "caseless patterns": "s ILIKE '%x{0}%'",
    "regular expressions": "s RLIKE 'x{0}+'",
    "of sets": "s CONTAINS 'x{0}'",
    "of pairs": "(a = {0} AND b = {0})",
    "of many attributes": "a{0} = {0}",
    "compared": "a < b + {0}",
    "with null": "a = {0} OR a IS NULL",
}
CONJUNCTS = {
    "not equal": "a <> {0}",
    "not equal, negated": "NOT (a = {0})",
    "of two attributes": "{2} <> {0}",
    "not strings": "s <> 'x{0}'",
    "not between": "a NOT BETWEEN {0} AND {1}",
    "not lists": "a NOT IN ({0}, {1})",
    "not of functions": "lower(s) <> 'x{0}'",
    "ranges": "a > {0}",
    "no patterns": "s NOT LIKE '%x{0}%'",
    "no prefixes": "s NOT LIKE 'x{0}%'",
    "of many attributes": "a{0} = {0}",
}


@pytest.mark.parametrize("limits", [Limits(), FEW], ids=["rows", "trees"])
@pytest.mark.parametrize("form", ALTERNATIVES.values(), ids=ALTERNATIVES)
def test_alternatives(form: str, limits: Limits) -> None:
    assert_linear(any_of(form, LONG), any_of(form, SHORT), limits)


@pytest.mark.parametrize("limits", [Limits(), FEW], ids=["rows", "trees"])
@pytest.mark.parametrize("form", CONJUNCTS.values(), ids=CONJUNCTS)
def test_conjuncts(form: str, limits: Limits) -> None:
    assert_linear(all_of(form, LONG), all_of(form, SHORT), limits)


@pytest.mark.parametrize("form", ["a = {0}", "{2} = {0}", "a <> {0}"])
def test_thousands(form: str) -> None:
    """So many that they were too much work for a normal form, before they were joined at once."""
    made = all_of if "<>" in form else any_of
    assert Compiler().compile(made(form, 8_000)).plan.kind == "flat"
    assert_linear(made(form, 8_000), made(form, 4_000), Limits())


def test_alternatives_beside_a_long_list() -> None:
    """What has to hold in any case is looked up for each alternative, not gone through."""

    def text(count: int) -> str:
        excluded = ", ".join(map(str, range(0, 6 * count, 2)))
        return f"a NOT IN ({excluded}) AND ({any_of('a = {0}', count)} OR {any_of('(a = {0} AND b = {0})', count)})"

    assert_linear(text(LONG), text(SHORT), FEW)


@pytest.mark.parametrize("limits", [Limits(), FEW], ids=["rows", "trees"])
@pytest.mark.parametrize(
    "text",
    [
        *("e = 'e{0}'", "e < 'e{0}'", "NOT (e >= 'e{0}')", "n = {0}"),
        *("h = 'h{0}'", "h <= 'h{0}'", "h > 'h{0}'", "NOT (h >= 'h{0}')"),
    ],
)
def test_constants_of_domains(text: str, limits: Limits) -> None:
    """The work for a constant does not grow with the domain, which grows with the text here."""

    def schema(count: int) -> Schema:
        values = ", ".join(f'"e{n}"' for n in range(3 * count))
        children = "\n".join(f"h{n} = [{', '.join(repr(f'h{n + m}') for m in (1, 2))}]" for n in range(0, 3 * count, 3))
        return parse_schema(
            f"version = 1\n[attributes]\ne = 'e'\nh = 'h'\nn = 'integer'\n[domains.e]\ntype = 'enumerated'\n"
            f"values = [{values}]\norder = [[{values}]]\n[domains.h]\ntype = 'hierarchical'\n"
            f"[domains.h.children]\nroot = [{', '.join(repr(f'h{n}') for n in range(0, 3 * count, 3))}]\n{children}\n"
        )

    counts = []
    for count in (SHORT, LONG):
        compiler = Compiler(schema(count), limits)
        compiler.compile("e < 'e0' OR e >= 'e0'")  # the closure of the order is made once
        counts.append(lines_run(compiler, any_of(text, count)))
    assert counts[1] < 2.5 * counts[0]
