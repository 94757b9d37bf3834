"""The registry: algorithms by name, their options, and who can do what another cannot."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from harken.errors import CapabilityError
from harken.limits import Limits
from harken.matchers import ALGORITHMS, Capability, algorithm_capabilities, create_matcher, roles
from harken.matchers.algorithm_registry import (
    DEFAULT_ALGORITHM,
    algorithm_options,
    algorithm_summary,
    load_matcher,
    reject_incapable,
    takes_option,
)
from harken.matchers.naive import Naive

ALL = frozenset(Capability)
EQUALITY, RANGE, PATTERN = Capability.EQUALITY, Capability.RANGE, Capability.PATTERN


class Limited(Naive):
    """Takes equality and ranges."""

    capabilities = frozenset({EQUALITY, RANGE})

    def __init__(self, limits: Limits, depth: int = 1) -> None:
        super().__init__(limits)
        self.limits = limits
        self.depth = depth


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test adds or takes away is not so for others."""
    monkeypatch.setattr(ALGORITHMS, "_values", dict(ALGORITHMS._values))
    monkeypatch.setattr(ALGORITHMS, "_entries", dict(ALGORITHMS._announced()))


@pytest.fixture
def _limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """An algorithm `limited`, beside the others."""
    module = ModuleType("limited_matcher", "Matches little (seed 000).\n\nAnd says more.")
    module.__dict__["Limited"] = Limited
    monkeypatch.setitem(sys.modules, "limited_matcher", module)
    monkeypatch.setitem(ALGORITHMS, "limited", "limited_matcher:Limited")


@pytest.fixture
def _only_limited(_limited: None) -> None:
    for name in ALGORITHMS.keys() - {"limited"}:
        del ALGORITHMS[name]


# Making one


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_every_algorithm_can_be_made(algorithm: str) -> None:
    assert create_matcher(algorithm).capabilities == algorithm_capabilities(algorithm)


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_every_algorithm_says_what_it_is(algorithm: str) -> None:
    summary = algorithm_summary(algorithm)
    assert summary.endswith(".")
    assert "\n" not in summary


def test_the_default_is_one_of_them_and_can_do_all() -> None:
    assert algorithm_capabilities(DEFAULT_ALGORITHM) == ALL


def test_every_matcher_is_new() -> None:
    assert create_matcher("naive") is not create_matcher("naive")


@pytest.mark.usefixtures("_limited")
def test_limits_and_options_reach_the_matcher() -> None:
    matcher: Any = create_matcher("limited", Limits(max_bindings=5), depth=3)
    assert (matcher.limits.max_bindings, matcher.depth) == (5, 3)


@pytest.mark.usefixtures("_limited")
def test_an_option_that_there_is_not_is_named() -> None:
    with pytest.raises(CapabilityError, match=r"`limited` does not take the option `colour`") as caught:
        create_matcher("limited", colour=3)
    assert caught.value.hint == "it takes: depth"
    with pytest.raises(CapabilityError) as caught:
        create_matcher("limited", dept=3)
    assert caught.value.hint == "did you mean `depth`?"


@pytest.mark.usefixtures("_limited")
def test_a_mistake_inside_a_matcher_is_not_told_as_a_wrong_option(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, limits: Limits, depth: int = 1) -> None:
        raise TypeError("unsupported operand")

    monkeypatch.setattr(Limited, "__init__", fail)
    with pytest.raises(TypeError, match="unsupported operand"):
        create_matcher("limited", depth=2)


def test_the_options_are_those_of_the_constructor() -> None:
    assert algorithm_options("columnar") == ("layouts", "recent_rows", "background", "small_rows", "settings")
    assert algorithm_options("naive") == ()
    assert (takes_option("columnar", "settings"), takes_option("naive", "settings")) == (True, False)


def test_what_is_saved_is_loaded() -> None:
    assert isinstance(create_matcher("columnar"), roles.Persists)
    assert isinstance(create_matcher("columnar"), roles.Loads)
    assert load_matcher("naive", {}, Limits(), {}) is None


def test_the_laboratory_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ALGORITHMS, "_entries", {})
    with pytest.raises(CapabilityError, match="there is no algorithm `hanson`") as caught:
        create_matcher("hanson")
    assert caught.value.hint == "it is in the laboratory: pip install harken-lab"


@pytest.mark.parametrize("make", [create_matcher, algorithm_capabilities])
def test_a_name_that_is_near_is_guessed(make: Any) -> None:
    with pytest.raises(CapabilityError, match="there is no algorithm `naiv`") as caught:
        make("naiv")
    assert caught.value.hint == "did you mean `naive`?"


def test_where_no_name_is_near_all_are_listed() -> None:
    with pytest.raises(CapabilityError) as caught:
        create_matcher("zzz")
    assert caught.value.hint == f"there are: {', '.join(ALGORITHMS)}"


@pytest.mark.usefixtures("_limited")
def test_the_summary_is_the_first_line() -> None:
    assert algorithm_summary("limited") == "Matches little (seed 000)."


def test_a_module_is_imported_only_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALGORITHMS, "missing", "harken.matchers.there_is_no_such_module:Missing")
    create_matcher("naive")
    with pytest.raises(ModuleNotFoundError):
        create_matcher("missing")


# Rejecting


@pytest.mark.usefixtures("_limited")
@pytest.mark.parametrize("required", [set(), {EQUALITY}, {EQUALITY, RANGE}])
def test_what_it_can_do_is_not_rejected(required: set[Capability]) -> None:
    reject_incapable("limited", frozenset(required))


@pytest.mark.usefixtures("_limited")
def test_what_it_cannot_do_is_named_with_those_that_can() -> None:
    with pytest.raises(CapabilityError) as caught:
        reject_incapable("limited", frozenset({EQUALITY, PATTERN, Capability.CONTAINS}))
    assert caught.value.message == "the algorithm `limited` cannot do: contains, like"
    able = [name for name in ALGORITHMS if {EQUALITY, PATTERN, Capability.CONTAINS} <= algorithm_capabilities(name)]
    assert caught.value.hint == f"algorithms that can: {', '.join(able)}"
    assert "naive" in able
    assert "limited" not in able


@pytest.mark.usefixtures("_limited")
def test_one_that_can_do_just_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fitting(Naive):
        capabilities = frozenset({PATTERN})

    monkeypatch.setitem(sys.modules["limited_matcher"].__dict__, "Fitting", Fitting)
    monkeypatch.setitem(ALGORITHMS, "fitting", "limited_matcher:Fitting")
    with pytest.raises(CapabilityError) as caught:
        reject_incapable("limited", frozenset({PATTERN}))
    assert ", fitting" in (caught.value.hint or "")


@pytest.mark.usefixtures("_only_limited")
def test_where_none_can_there_is_no_hint() -> None:
    with pytest.raises(CapabilityError) as caught:
        reject_incapable("limited", frozenset({PATTERN}))
    assert caught.value.hint is None
