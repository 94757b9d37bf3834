"""Errors: what they say, where they point, and that the tree in the docstring is the tree that there is."""

from __future__ import annotations

import json
import pickle
import re
import sys
from copy import copy

import pytest

from harken import errors
from harken.errors import (
    HarkenError,
    LimitError,
    MissingExtraError,
    ParseError,
    Place,
    caret_excerpt,
    did_you_mean,
    missing_extra,
    needing_extra,
    reason_of,
    require_extra,
)

CLASSES = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, HarkenError)]


def made(kind: type[HarkenError]) -> HarkenError:
    more = {"limit": "max_values"} if kind is LimitError else {}
    return kind("it is wrong", place=Place(2, 3, "a.txt"), excerpt="a b\n  ^", hint="write it right", **more)


# The tree


def drawn_tree() -> dict[str, str | None]:
    """Every class that the docstring draws, with the one that it hangs from."""
    tree: dict[str, str | None] = {}
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"[ │├└─]*(\w+Error)\b", line)
        if found is None:
            continue
        indent = found.start(1)
        above = [each for each in above if each[0] < indent]
        tree[found[1]] = above[-1][1] if above else None
        above.append((indent, found[1]))
    return tree


def test_docstring_draws_the_tree_that_there_is() -> None:
    actual = {each.__name__: None if each is HarkenError else each.__bases__[0].__name__ for each in CLASSES}
    assert drawn_tree() == actual


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_says_what_it_is_for(kind: type[HarkenError]) -> None:
    assert kind.__doc__


# Text


def test_text_of_a_bare_error_is_its_message() -> None:
    assert str(HarkenError("it is wrong")) == "it is wrong"


def test_text_has_place_excerpt_and_hint() -> None:
    assert str(made(ParseError)) == "it is wrong (a.txt, line 2, column 3)\n  a b\n    ^\nhint: write it right"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place(7), "line 7"),
        (Place(7, 2), "line 7, column 2"),
        (Place(7, None, "a.csv"), "a.csv, line 7"),
        (Place(7, 2, "a.csv"), "a.csv, line 7, column 2"),
    ],
)
def test_place(place: Place, text: str) -> None:
    assert str(place) == text


def test_at_gives_the_error_its_place_and_the_line_with_a_caret() -> None:
    error = ParseError("it is wrong")
    assert error.at(Place(2, 3), "first\na b\nlast") is error
    assert error.place == Place(2, 3)
    assert error.excerpt == "a b\n  ^"


def test_at_without_a_column_draws_no_caret() -> None:
    assert ParseError("it is wrong").at(Place(2), "first\nsecond").excerpt is None


def test_at_without_the_text_keeps_the_excerpt() -> None:
    assert ParseError("it is wrong", excerpt="a b").at(Place(1, 1)).excerpt == "a b"


# Excerpts


def test_excerpt_shows_the_line_with_a_caret_below_the_column() -> None:
    assert caret_excerpt("price < 5 ADN sold", 1, 11) == "price < 5 ADN sold\n          ^"


@pytest.mark.parametrize(("line", "shown"), [(1, "one"), (2, ""), (3, "three")])
def test_excerpt_of_several_lines_shows_one(line: int, shown: str) -> None:
    assert caret_excerpt("one\n\nthree", line, 1) == f"{shown}\n^"


def test_excerpt_points_behind_the_end() -> None:
    assert caret_excerpt("a =", 1, 4) == "a =\n   ^"


def test_excerpt_of_a_line_that_is_not_there_is_empty() -> None:
    assert caret_excerpt("one", 5, 1) == "\n^"


@pytest.mark.parametrize("column", [1, 2, 60, 61, 62, 500, 999, 1000])
def test_excerpt_of_a_long_line_keeps_the_column_in_sight(column: int) -> None:
    line = "." * (column - 1) + "!" + "." * (1000 - column)
    shown, caret = caret_excerpt(line, 1, column).split("\n")
    assert len(shown) <= 120
    assert shown[caret.index("^")] == "!"


def test_excerpt_of_a_long_line_has_the_column_in_its_middle() -> None:
    shown, caret = caret_excerpt("." * 1000, 1, 500).split("\n")
    assert (len(shown), len(caret)) == (120, 61)


@pytest.mark.parametrize("blank", ["\t", "\r", "\x00", "\x1b", "\u200b", "\u202e"])
def test_excerpt_shows_a_space_for_what_cannot_be_printed(blank: str) -> None:
    """So that the caret stays below its column, and no terminal is told to do anything."""
    assert caret_excerpt(f"{blank}a{blank}= §", 1, 5) == " a = §\n    ^"


def test_excerpt_of_windows_lines_has_no_carriage_return() -> None:
    assert caret_excerpt("one\r\ntwo\r\n", 2, 2) == "two \n ^"


# Plain data


def test_to_dict_of_a_bare_error() -> None:
    assert ParseError("it is wrong").to_dict() == {"error": "ParseError", "message": "it is wrong"}


def test_to_dict_has_all_that_the_error_knows() -> None:
    assert made(ParseError).to_dict() == {
        "error": "ParseError",
        "message": "it is wrong",
        "source": "a.txt",
        "line": 2,
        "column": 3,
        "excerpt": "a b\n  ^",
        "hint": "write it right",
    }


def test_to_dict_of_a_place_without_column_and_source() -> None:
    assert ParseError("x", place=Place(4)).to_dict() == {"error": "ParseError", "message": "x", "line": 4}


def test_the_text_of_a_limit_names_it() -> None:
    assert str(LimitError("too much", limit="max_values")) == "too much; the limit is `max_values`"


def test_the_text_of_a_limit_names_it_once() -> None:
    message = "a matrix of 7 bytes, more than `max_matrix_bytes`"
    assert str(LimitError(message, limit="max_matrix_bytes")) == message


def test_to_dict_of_a_limit_names_it() -> None:
    assert LimitError("too much", limit="max_values").to_dict()["limit"] == "max_values"


@pytest.mark.parametrize("kind", CLASSES)
def test_to_dict_is_json(kind: type[HarkenError]) -> None:
    assert json.loads(json.dumps(made(kind).to_dict()))["error"] == kind.__name__


@pytest.mark.parametrize("kind", CLASSES)
def test_errors_pass_from_process_to_process(kind: type[HarkenError]) -> None:
    error = made(kind)
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is kind
    assert arrived.to_dict() == error.to_dict()
    assert str(arrived) == str(error)


def test_errors_can_be_copied() -> None:
    error = made(LimitError)
    copied = copy(error)
    copied.hint = "another"
    assert copied.to_dict() == error.to_dict() | {"hint": "another"}
    assert error.hint == "write it right"


# Hints


def test_did_you_mean_one() -> None:
    assert did_you_mean("prise", ["price", "title"]) == "did you mean `price`?"


def test_did_you_mean_names_the_nearest_first() -> None:
    assert did_you_mean("prices", ["prices_eur", "price"]) == "did you mean `price` or `prices_eur`?"


def test_did_you_mean_names_three_at_most() -> None:
    hint = did_you_mean("price", ["price1", "price2", "price3", "price4"])
    assert hint is not None
    assert hint.count("`price") == 3


def test_did_you_mean_a_name_that_has_backticks() -> None:
    assert did_you_mean("user_agent", ["`user-agent`"]) == "did you mean `user-agent`?"


def test_did_you_mean_nothing_that_is_far() -> None:
    assert did_you_mean("price", ["colour", "title"]) is None


def test_did_you_mean_of_nothing_known() -> None:
    assert did_you_mean("price", []) is None


def test_did_you_mean_minds_the_case() -> None:
    assert did_you_mean("and", ["AND"]) is None


def test_did_you_mean_in_any_case_spells_it_as_known() -> None:
    assert did_you_mean("adn", ["AND"], case_sensitive=False) == "did you mean `AND`?"


# Extras


@pytest.mark.parametrize(("extra", "library"), [("spark", "pyspark"), ("spark", "pandas"), ("client", "httpx")])
def test_a_missing_extra_says_what_to_install(extra: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_extra(extra)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=f"this needs {library}, which is not installed") as caught:
        require_extra(extra)
    assert caught.value.hint == f"pip install 'harken[{extra}]'"
    assert isinstance(caught.value, ImportError)


def test_an_import_that_fails_is_told_by_the_extra_that_brings_it() -> None:
    found = missing_extra(ModuleNotFoundError("No module named 'pyspark.sql'", name="pyspark.sql"))
    assert found is not None
    assert found.hint == "pip install 'harken[spark]'"
    assert missing_extra(ModuleNotFoundError("No module named 'nonsense'", name="nonsense")) is None
    assert missing_extra(ModuleNotFoundError("import of nothing")) is None
    assert missing_extra(ValueError("pyspark")) is None


@pytest.mark.parametrize(("library", "error"), [("psycopg", MissingExtraError), ("of_ours", ModuleNotFoundError)])
def test_an_import_that_needs_an_extra(library: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=library), needing_extra():
        raise ModuleNotFoundError(f"No module named {library!r}", name=library)


def test_a_reason_is_one_line() -> None:
    assert reason_of(ValueError("\nfirst\nsecond")) == "first"
    assert reason_of(ValueError()) == "ValueError"
