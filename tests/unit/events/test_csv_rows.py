"""CSV: types told by the cells or by a schema, quoting, and rows that are rejected while the rest goes on."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import DecodeError, InvalidValueError, LimitError, Place, SourceError
from harken.events import Row, read_events, read_rows
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import BUILT_IN, Schema

Write = Callable[[str, bytes | str], Path]


def rows(text: str | bytes, format: str = "csv", types: bool = True, limits: Limits = DEFAULT_LIMITS) -> list[Row]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_rows(io.BytesIO(data), format, limits, types))


def contents(text: str | bytes, format: str = "csv", types: bool = True) -> list[Any]:
    return [row.content for row in rows(text, format, types)]


def column(*cells: str) -> list[Any]:
    """What the cells of one column become; None where there is nothing."""
    return [(row or {}).get("a") for row in contents("a,b\n" + "".join(f"{cell},x\n" for cell in cells))]


class TestTypes:
    @pytest.mark.parametrize(
        ("cells", "expected"),
        [
            (("1", "-2", "0"), [1, -2, 0]),
            (("1", "", "3"), [1, None, 3]),
            (("1", "2.5", "1e3"), [1, 2.5, 1000.0]),
            (("9007199254740993", "0.5"), [9007199254740993, 0.5]),
            (("true", "False", "TRUE"), [True, False, True]),
            (("1", "true"), ["1", "true"]),
            (("true", "1"), ["true", "1"]),
            (("1", "x", "2"), ["1", "x", "2"]),
            (("01234", "5"), ["01234", "5"]),
            (("+1", "5"), ["+1", "5"]),
            (("1.", ".5"), ["1.", ".5"]),
            (("٣", "5"), ["٣", "5"]),
            (("NaN", "1.5"), ["NaN", "1.5"]),
            ((" 1", "2"), [" 1", "2"]),
            (('"1"', "2"), [1, 2]),
            (('""', "2"), ["", "2"]),
            (("", ""), [None, None]),
        ],
    )
    def test_a_column_is_what_all_its_cells_are(self, cells: tuple[str, ...], expected: list[Any]) -> None:
        found = column(*cells)
        assert found == expected
        assert [type(value) for value in found] == [type(value) for value in expected]

    def test_types_can_be_left_alone(self) -> None:
        assert contents("a,b\n1,true\n", types=False) == [{"a": "1", "b": "true"}]

    def test_a_bad_row_has_no_say_in_the_types(self) -> None:
        assert contents("a,b\n1,2\nx,2,3\n3,4\n") == [{"a": 1, "b": 2}, None, {"a": 3, "b": 4}]

    @pytest.mark.parametrize("number", ["1e999", "9" * 30, "9" * 5_000])
    def test_numbers_that_have_no_place_reject_their_row(self, number: str) -> None:
        found = rows(f"a\n1\n{number}\n3\n")
        assert [row.content for row in found] == [{"a": 1}, None, {"a": 3}]
        assert isinstance(found[1].error, InvalidValueError)
        assert found[1].error.place == Place(3, None, "stream")
        assert "attribute `a`" in found[1].error.message

    def test_files_are_read_twice(self, write: Write) -> None:
        assert [row.content for row in read_rows(write("x.csv", "a\n1\n2\n"))] == [{"a": 1}, {"a": 2}]

    def test_columns_that_are_not_named_are_left_out(self) -> None:
        text = f"a.x,b,a.y\n1,{1 << 65},2\n3,x,4\n"
        (decoded,) = read_events(io.BytesIO(text.encode()), "csv", names=frozenset("a"))
        assert [event.attributes for event in decoded.batch] == [{"a": {"x": 1, "y": 2}}, {"a": {"x": 3, "y": 4}}]
        assert not decoded.rejected


class TestCells:
    def test_the_header_names_attributes_as_the_language_does(self) -> None:
        assert contents('a.b,a.c,`d.e`, f,"g,h"\n1,2,3,4,5\n,,,,6') == [
            {"a": {"b": 1, "c": 2}, "d.e": 3, " f": 4, "g,h": 5},
            {"g,h": 6},
        ]

    def test_without_types_a_header_is_a_key_as_it_stands(self) -> None:
        assert [row.content for row in read_rows(io.BytesIO(b"a.b\n1\n"), "csv", types=False)] == [{"a.b": "1"}]

    @pytest.mark.parametrize("text", ["a,b\r\n1,2\r\n", "a,b\n1,2", "\ufeffa,b\n1,2\n", "\n\na,b\n\n1,2\n\n"])
    def test_ends_of_lines_marks_and_blank_lines(self, text: str) -> None:
        assert contents(text) == [{"a": 1, "b": 2}]

    def test_quotes(self) -> None:
        text = 'a,b\n"x, ""y""",""\n"two\nlines\n\nmore",z\n'
        assert contents(text) == [{"a": 'x, "y"', "b": ""}, {"a": "two\nlines\n\nmore", "b": "z"}]
        assert [row.line for row in rows(text)] == [2, 3]

    def test_tabs(self) -> None:
        assert contents('a\tb\n1\t"x\ty"\n\t\n', "tsv") == [{"a": 1, "b": "x\ty"}, {}]

    @pytest.mark.parametrize("text", ["", "\n\n", "a,b\n", "a,b"])
    def test_no_rows(self, text: str) -> None:
        assert rows(text) == []


class TestRejectedRows:
    @pytest.mark.parametrize(
        ("line", "reason", "column"),
        [
            ("1", "the row has 1 cells where the header has 2", None),
            ("1,2,3", "the row has 3 cells where the header has 2", None),
            ("1,2\0", "NUL", 4),
            ('1,2" pipe', "must be quoted as a whole", 4),
            ('1,"2"x', "text after a closing quote", 6),
            ('"1" ,2', "text after a closing quote", 4),
            ('1,"never closed', "a quoted cell starts here", None),
        ],
    )
    def test_the_rest_goes_on(self, line: str, reason: str, column: int | None) -> None:
        found = rows(f'a,b\n0,0\n{line}\n"5",6\n7,8\n')
        assert [row.content for row in found] == [{"a": 0, "b": 0}, None, {"a": 5, "b": 6}, {"a": 7, "b": 8}]
        error = found[1].error
        assert isinstance(error, DecodeError)
        assert reason in error.message
        assert error.place == Place(3, column, "stream")
        assert [row.line for row in found] == [2, 3, 4, 5]

    def test_not_utf8(self) -> None:
        found = rows(b"a,b\n1,x\n2,\xff\n3,y\n")
        assert [row.content for row in found] == [{"a": 1, "b": "x"}, None, {"a": 3, "b": "y"}]
        assert found[1].error is not None
        assert "0xff" in found[1].error.message

    def test_a_quote_that_is_never_closed_loses_one_line(self) -> None:
        text = 'a,b\n1,"open\n' + "".join(f"{n},x\n" for n in range(100))
        found = rows(text)
        assert sum(row.error is not None for row in found) == 1
        assert len(found) == 101

    def test_a_long_row(self) -> None:
        found = rows("a\nx\n" + "y" * 100 + '\n"' + "z\n" * 100 + '"\nw\n', limits=Limits(max_event_bytes=50))
        assert [row.content for row in found[:2]] == [{"a": "x"}, None]
        assert isinstance(found[1].error, LimitError)
        assert isinstance(found[2].error, LimitError)
        assert found[2].line == 4
        assert found[-1].content == {"a": "w"}

    def test_many_lines_in_quotes_take_no_longer_than_others(self) -> None:
        text = 'a\n"' + "\n" * 100_000 + '"\n' + '"open\n' * 1_000
        assert len(rows(text)[0].content or {}) == 1


class TestRejectedHeaders:
    @pytest.mark.parametrize(
        ("header", "reason"),
        [
            ("a,b,a", "the column 'a' comes twice"),
            ("a.b,c,a", "the column `a.b` lies inside another column"),
            ("a,,b", "column 2 has no name"),
            ('a,"",b', "column 2 has no name"),
            ("a,b,", "column 3 has no name"),
            ("a,\0", "NUL"),
            ('a,"b', "a quoted cell starts here"),
            (b"a,\xff", "0xff"),
        ],
    )
    def test_nothing_can_be_read_below_it(self, header: str | bytes, reason: str) -> None:
        data = header.encode() if isinstance(header, str) else header
        with pytest.raises(SourceError, match=reason) as caught:
            rows(b"\n" + data + b"\n1,2,3\n")
        assert caught.value.place == Place(2, None, "stream")


class TestWithASchema:
    SCHEMA = Schema(
        attributes={("at",): BUILT_IN["timestamp"], ("code",): BUILT_IN["string"], ("a", "b"): BUILT_IN["integer"]}
    )

    def test_declared_columns_are_read_by_their_domains(self) -> None:
        text = b"at,code,a.b,n\n2026-07-01,007,1,5\nsoon,008,2,6\n,,x,7\n"
        (decoded,) = read_events(io.BytesIO(text), "csv", self.SCHEMA)
        at = datetime(2026, 7, 1, tzinfo=UTC)
        assert [event.attributes for event in decoded.batch] == [{"at": at, "code": "007", "a": {"b": 1}, "n": 5}]
        assert [rejected.position for rejected in decoded.rejected] == [1, 2]
        assert [rejected.error.place for rejected in decoded.rejected] == [
            Place(3, None, "stream"),
            Place(4, None, "stream"),
        ]
        assert "attribute `at`" in decoded.rejected[0].error.message


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=6)


@given(st.lists(st.tuples(cells, cells), max_size=5), st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
def test_what_python_writes_is_read_back(table: list[tuple[str, str]], quoting: Any) -> None:
    text = io.StringIO()
    writer = csv.writer(text, quoting=quoting, lineterminator="\n")
    writer.writerow(["a", "b"])
    writer.writerows(table)
    read = contents(text.getvalue(), types=False)
    assert [((row or {}).get("a", ""), (row or {}).get("b", "")) for row in read] == table
