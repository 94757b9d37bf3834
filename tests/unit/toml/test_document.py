"""A TOML document: faults point at their lines, come in the order of the lines, and name the key that was meant."""

from __future__ import annotations

import pytest

from harken.errors import SchemaError
from harken.toml.document import Document
from harken.toml.positions import Keys


def document(text: str, source_name: str | None = None) -> Document[SchemaError]:
    return Document(text, SchemaError, "schema", source_name)


def pointed(text: str, keys: Keys) -> tuple[int, int | None]:
    place = document(text, "x.toml").point(SchemaError("wrong"), keys).place
    assert place is not None
    assert place.source == "x.toml"
    return place.line, place.column


def test_points_at_the_key_or_at_what_is_around_it() -> None:
    text = "[a]\n  b = [1,\n 2]\n"
    assert pointed(text, ("a", "b")) == (2, 3)
    assert pointed(text, ("a", "b", 1)) == (3, 2)
    assert pointed(text, ("a", "b", 7)) == (2, 3)
    assert pointed(text, ("a", "c")) == (1, 1)
    assert document(text).point(SchemaError("wrong"), ("c",)).place is None


@pytest.mark.parametrize(
    ("text", "value", "where"),
    [
        ('a = "x DUBLE"', "x DUBLE", (1, 8)),
        ("a = 'x DUBLE'", "x DUBLE", (1, 8)),
        ('a = """\nx DUBLE"""', "x DUBLE", (2, 3)),
        ("a = '''x\nDUBLE'''", "x\nDUBLE", (2, 1)),
        (r'a = "\u0078 DUBLE"', "x DUBLE", (1, 5)),
        ("a = 5", "x DUBLE", (1, 1)),
    ],
)
def test_points_into_a_string(text: str, value: str, where: tuple[int, int]) -> None:
    fault = document(text).point_into(SchemaError("wrong"), ("a",), value, 2)
    assert fault.place is not None
    assert (fault.place.line, fault.place.column) == where
    assert fault.excerpt is not None
    line, caret = fault.excerpt.split("\n")
    assert (line, caret.index("^") + 1) == (text.split("\n")[where[0] - 1], where[1])


def test_faults_come_in_the_order_of_their_lines() -> None:
    found = document("[a]\nx = 1\n[b]\ny = 2\n")
    found.fault(("b", "y"), "second")
    found.fault(("a", "x"), "first", "a hint")
    assert [(str(each.place), each.message, each.hint) for each in found.faults] == [
        ("line 2, column 1", "first", "a hint"),
        ("line 4, column 1", "second", None),
    ]


def test_an_unknown_key_is_told_with_the_one_that_was_meant() -> None:
    found = document("[source]\nformt = 1\ncolour = 2\npath = 3\n")
    known = ("format", "path")
    assert found.reject_unknown(found.content["source"], known, "[source]", ("source",), lists_known=True) == [
        "formt",
        "colour",
    ]
    assert [(each.message, each.hint) for each in found.faults] == [
        ("[source]: unknown key `formt`", "did you mean `format`?"),
        ("[source]: unknown key `colour`", "it has format, path"),
    ]


def test_a_text_that_is_not_toml_has_one_fault_and_no_content() -> None:
    found = document("a = 1\nb = \n", "x.toml")
    assert found.content == {}
    (fault,) = found.faults
    assert fault.message.startswith("the schema is not TOML")
    assert str(fault.place) == "x.toml, line 2, column 5"
