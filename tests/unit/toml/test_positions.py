"""Where keys and values of a TOML text stand: by example, and for any document against the parser itself."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from harken.toml.positions import Keys, Positions, find_positions


def keys_by_line(text: str) -> dict[Keys, tuple[int, int]]:
    return {keys: line_and_column(text, offset) for keys, offset in find_positions(text).keys.items()}


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def test_quoted_dotted_and_indented_keys() -> None:
    text = 'top = 1\n[a."b c"]\n  "x=y" = [\n  1]\n\'q\'.r = 2\n[ a . d ]\nx = 3\n'
    assert keys_by_line(text) == {
        ("top",): (1, 1),
        ("a", "b c"): (2, 1),
        ("a", "b c", "x=y"): (3, 3),
        ("a", "b c", "q"): (5, 1),
        ("a", "b c", "q", "r"): (5, 1),
        ("a", "d"): (6, 1),
        ("a", "d", "x"): (7, 1),
    }


def test_lists_of_tables_are_counted() -> None:
    text = (
        "[[sink]]\na = 1\n[sink.options]\nb = 1\n[[sink]]\na = 2\n[[sink.more]]\n[[sink.more]]\nc = 1\n[x]\n[[ 'y' ]]"
    )
    assert keys_by_line(text) == {
        ("sink",): (1, 1),
        ("sink", 0): (1, 1),
        ("sink", 0, "a"): (2, 1),
        ("sink", 0, "options"): (3, 1),
        ("sink", 0, "options", "b"): (4, 1),
        ("sink", 1): (5, 1),
        ("sink", 1, "a"): (6, 1),
        ("sink", 1, "more"): (7, 1),
        ("sink", 1, "more", 0): (7, 1),
        ("sink", 1, "more", 1): (8, 1),
        ("sink", 1, "more", 1, "c"): (9, 1),
        ("x",): (10, 1),
        ("y",): (11, 1),
        ("y", 0): (11, 1),
    }


def test_tables_in_a_line() -> None:
    text = "sink = [\n  { a = 1, b.c = '}' },  # { d = 1 }\n  { a = [2, 3] },\n]\n"
    assert keys_by_line(text) == {
        ("sink",): (1, 1),
        ("sink", 0, "a"): (2, 5),
        ("sink", 0, "b"): (2, 12),
        ("sink", 0, "b", "c"): (2, 12),
        ("sink", 1, "a"): (3, 5),
    }
    values = find_positions(text).values
    assert {keys: text[slice(*span)] for keys, span in values.items() if keys[-1] != "sink"} == {
        ("sink", 0): "{ a = 1, b.c = '}' }",
        ("sink", 0, "a"): "1",
        ("sink", 0, "b", "c"): "'}'",
        ("sink", 1): "{ a = [2, 3] }",
        ("sink", 1, "a"): "[2, 3]",
        ("sink", 1, "a", 0): "2",
        ("sink", 1, "a", 1): "3",
    }


def test_what_looks_like_a_key_inside_a_string_is_none() -> None:
    text = 'a = """\nb = 1\n[c]\n\\""""\nd = \'\'\'\ne = 1\'\'\'\nb = 2 # f = 3\n'
    assert keys_by_line(text) == {("a",): (1, 1), ("d",): (5, 1), ("b",): (7, 1)}


SCALARS = ("1979-05-27 07:32:00Z", "1979-05-27", "07:32:00", "-1_000", "+inf", "0x_f", "1e5", "true", "[]", "{}")
STRINGS = ('""', "''", '""""a"""""', "''''a'''''", r'"\"]"', '"""\\\n  \n  x\\""""', "[ 1, # ]\n [2,\n], ]")


@pytest.mark.parametrize("value", SCALARS + STRINGS)
def test_the_end_of_a_value(value: str) -> None:
    start, end = find_positions(f"a = {value} # x\nb = 1").values[("a",)]
    assert (start, end) == (4, 4 + len(value))


def test_what_is_not_toml_has_the_positions_before_its_fault() -> None:
    assert keys_by_line("a = 1\nb = [1 2]\nc = 3") == {("a",): (1, 1), ("b",): (2, 1)}
    assert keys_by_line("a = ") == {("a",): (1, 1)}
    assert keys_by_line("a = " + "[" * 100_000) == {("a",): (1, 1)}


# Against the parser


def leaves(value: object, keys: Keys = ()) -> Iterator[tuple[Keys, object]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*keys, key))
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from leaves(inner, (*keys, place))
    else:
        yield keys, value


def judge(text: str) -> None:
    document = tomllib.loads(text)
    found: Positions = find_positions(text)
    for keys, value in leaves(document):
        if not keys:
            continue
        if value != {} or keys in found.values:
            start, end = found.values[keys]
            assert repr(tomllib.loads(f"v = {text[start:end]}")["v"]) == repr(value)
        names = [key for key in keys if isinstance(key, str)]
        way = (
            keys
            if isinstance(keys[-1], str)
            else keys[: max(place for place, key in enumerate(keys) if key in names) + 1]
        )
        assert way in found.keys


WORDS = st.text(max_size=4) | st.sampled_from(["a", "b", "a.b", '"', "'", "\\", "#", "]", "\n", "a = 1"])
TREES = st.recursive(
    st.booleans() | st.integers() | st.dates() | st.datetimes() | st.times() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(WORDS, TREES, max_size=5), st.booleans())
def test_any_document(document: dict[str, object], multiline: bool) -> None:
    judge(tomli_w.dumps(document, multiline_strings=multiline))


PIECES = st.sampled_from(
    [
        "[",
        "]",
        "[[a]]\n",
        "[a]\n",
        "a = ",
        "b.c = ",
        "{",
        "}",
        ",",
        "1",
        '"',
        "'",
        "'''",
        '"""',
        "\\",
        "\n",
        " ",
        "#",
        "x",
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_text_ends(text: str) -> None:
    try:
        tomllib.loads(text)
    except ValueError:
        find_positions(text)
    else:
        judge(text)


# Pointing
