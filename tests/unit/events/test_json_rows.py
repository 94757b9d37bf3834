"""JSON, in lines and in one array: what is rejected, with which reason and place, and that the rest goes on."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import DecodeError, InvalidValueError, LimitError, Place
from harken.events import Row, read_events, read_rows
from harken.events.json_array import array_elements
from harken.limits import DEFAULT_LIMITS, Limits


def rows(text: str | bytes, format: str = "jsonl", limits: Limits = DEFAULT_LIMITS) -> list[Row]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_rows(io.BytesIO(data), format, limits))


def error_of(text: str | bytes, limits: Limits = DEFAULT_LIMITS) -> Any:
    (row,) = rows(text, limits=limits)
    assert row.content is None
    return row.error


class TestLines:
    def test_an_object_a_line(self) -> None:
        assert rows('{"a": 1}\n{"b": [true, null]}\n') == [
            Row(0, 1, {"a": 1}, None, '{"a": 1}'),
            Row(1, 2, {"b": [True, None]}, None, '{"b": [true, null]}'),
        ]

    @pytest.mark.parametrize("text", ['{"a": 1}', '{"a": 1}\r\n', '\ufeff{"a": 1}\n', '  {"a": 1}  \n'])
    def test_ends_of_lines_and_marks_of_byte_order(self, text: str) -> None:
        assert [row.content for row in rows(text)] == [{"a": 1}]

    def test_blank_lines_are_skipped_and_counted(self) -> None:
        found = rows('\n  \n{"a": 1}\n\r\n\t\n{"a": 2}\n\n')
        assert [(row.position, row.line) for row in found] == [(0, 3), (1, 6)]

    @pytest.mark.parametrize("text", ["", "\n", "\ufeff", " \n\n"])
    def test_nothing(self, text: str) -> None:
        assert rows(text) == []
        assert rows(text, "json") == []

    @pytest.mark.parametrize("format", ["jsonl", "json"])
    def test_a_first_line_that_is_longer_than_what_is_looked_at(self, format: str) -> None:
        long = {"a": "x" * 200_000}
        assert [row.content for row in rows(json.dumps(long) + '\n{"a": 1}\n', format)] == [long, {"a": 1}]
        assert [row.content for row in rows(json.dumps([long, {"a": 1}]), "json")] == [long, {"a": 1}]

    def test_one_bad_line_in_the_middle(self) -> None:
        text = "".join(f'{{"n": {n}}}\n' if n != 500 else '{"n": oops}\n' for n in range(1_000))
        found = rows(text)
        assert [row.position for row in found] == list(range(1_000))
        assert [row.line for row in found] == list(range(1, 1_001))
        assert [row.content for row in found if row.error is None] == [{"n": n} for n in range(1_000) if n != 500]
        assert found[500].raw == '{"n": oops}'


class TestReasons:
    @pytest.mark.parametrize("end", ["", "\n", " \r\n"])
    def test_an_error_at_the_end_is_on_its_line(self, end: str) -> None:
        assert error_of('{"a": 1,' + end).place == Place(1, 9, "stream")

    def test_the_place_and_a_caret(self) -> None:
        error = rows('{"a": 1}\n{"a": 1, "b" 2}\n')[1].error
        assert isinstance(error, DecodeError)
        assert error.message == "this is not JSON: expecting ':' delimiter"
        assert error.place == Place(2, 14, "stream")
        assert error.excerpt == '{"a": 1, "b" 2}\n             ^'

    @pytest.mark.parametrize(
        "text", ["{", "{]", '{"a"}', "{'a': 1}", '{"a": 1,}', '{"a": 1} {"b": 2}', "{\x00}", "nul"]
    )
    def test_not_json(self, text: str) -> None:
        error = error_of(text)
        assert type(error) is DecodeError
        assert "not JSON" in error.message
        assert error.place.column is not None

    @pytest.mark.parametrize(("token", "column"), [("NaN", 21), ("Infinity", 21), ("-Infinity", 21)])
    def test_words_that_python_would_take_for_numbers(self, token: str, column: int) -> None:
        error = error_of(f'{{"NaN": "NaN", "b": {token}}}')
        assert type(error) is DecodeError
        assert f"{token} is not JSON" in error.message
        assert error.place.column == column

    @pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + "0" * 400 + ".5"])
    def test_numbers_beyond_binary64(self, number: str) -> None:
        error = error_of(f'{{"a": {number}}}')
        assert type(error) is DecodeError
        assert "too large" in error.message
        assert error.place.column == 7

    @pytest.mark.parametrize("text", ['{"a": 1, "b": 2, "a": 3}', '{"x": [{"a": 1, "\\u0061": 1}]}'])
    def test_a_key_twice(self, text: str) -> None:
        error = error_of(text)
        assert type(error) is DecodeError
        assert "the key 'a' comes twice" in error.message

    def test_integers_of_thousands_of_digits(self) -> None:
        error = error_of('{"a": -' + "9" * 5_000 + "}")
        assert type(error) is DecodeError
        assert error.place.column == 7

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("[1]", "an array"),
            ('"x"', "a string"),
            ("1", "a number"),
            ("1.5", "a number"),
            ("true", "a boolean"),
            ("null", "null"),
        ],
    )
    def test_what_is_not_an_object(self, text: str, what: str) -> None:
        assert error_of(text).message == f"expected a JSON object, got {what}"

    def test_not_utf8(self) -> None:
        error = error_of(b'{"a": "\xc3\xa9\xff"}')
        assert type(error) is DecodeError
        assert "0xff" in error.message
        assert error.place.column == 9

    def test_an_object_over_several_lines_gets_a_hint(self) -> None:
        first = rows('{\n"a": 1\n}\n', "json")[0].error
        assert first is not None
        assert first.hint is not None
        assert "a whole object on every line" in first.hint

    def test_excerpts_are_short(self) -> None:
        (row,) = rows('{"a": "' + "x" * 100_000 + '" oops}')
        assert row.raw is not None
        assert len(row.raw) == 200
        assert row.error is not None
        assert row.error.excerpt is not None
        assert len(row.error.excerpt) < 300


class TestLimits:
    def test_a_long_line_is_rejected_and_the_rest_goes_on(self) -> None:
        limits = Limits(max_event_bytes=20)
        found = rows('{"a": 1}\n{"a": "' + "x" * 100 + '"}\n{"a": "34567890123"}\n{"a": 3}', limits=limits)
        assert [row.content for row in found] == [{"a": 1}, None, {"a": "34567890123"}, {"a": 3}]
        assert isinstance(found[1].error, LimitError)
        assert found[1].error.limit == "max_event_bytes"
        assert found[1].error.place == Place(2, None, "stream")
        assert [row.line for row in found] == [1, 2, 3, 4]

    def test_a_long_line_is_never_held_whole(self) -> None:
        read = Counted(b'{"a": "' + b"x" * 3_000_000 + b'"}\n{"a": 1}\n')
        found = list(read_rows(read, limits=Limits(max_event_bytes=1_000)))
        assert [row.error is None for row in found] == [False, True]
        assert read.largest <= 65_536

    @pytest.mark.parametrize("depth", [65, 500, 1_500, 200_000])
    @pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
    def test_deep_nesting(self, depth: int, opening: str, closing: str) -> None:
        error = error_of('{"a":' + opening * (depth - 1) + "1" + closing * (depth - 1) + "}")
        assert isinstance(error, LimitError)
        assert error.limit == "max_event_depth"

    def test_nesting_that_is_allowed(self) -> None:
        text = '{"a":' + "[" * 63 + "1" + "]" * 63 + "}"
        assert rows(text)[0].error is None
        wide = '{"a":[' + ",".join(["[]"] * 1_000) + "]}"
        assert rows(wide)[0].error is None


class TestNumbers:
    @pytest.mark.parametrize("number", [0, -1, 2**53 + 1, 2**63 - 1, -(2**63), 0.1, 1e308, 5e-324, 1e-999])
    def test_they_are_exact_or_the_nearest(self, number: float) -> None:
        (row,) = rows(json.dumps({"a": number}))
        assert row.content == {"a": number}
        assert type(row.content["a"]) is type(number)

    def test_integers_beyond_64_bits_are_rejected_as_events(self) -> None:
        (decoded,) = read_events(io.BytesIO(b'{"a": 1}\n{"a": 9223372036854775808}\n'))
        assert decoded.batch.positions == (0,)
        (rejected,) = decoded.rejected
        assert isinstance(rejected.error, InvalidValueError)
        assert rejected.error.place == Place(2, None, "stream")
        assert rejected.raw == '{"a": 9223372036854775808}'


class TestArrays:
    def test_an_array_of_objects(self) -> None:
        found = rows(' \n [ {"a": 1},\n  {"b": [{"c": "],}"}]} ,{}\n]\n', "json")
        assert [row.content for row in found] == [{"a": 1}, {"b": [{"c": "],}"}]}, {}]
        assert [(row.position, row.line) for row in found] == [(0, 2), (1, 3), (2, 3)]

    @pytest.mark.parametrize("text", ["[]", "[ ]", "[\n]\n"])
    def test_an_empty_array(self, text: str) -> None:
        assert rows(text, "json") == []

    def test_one_bad_element_in_the_middle(self) -> None:
        found = rows('[{"a": 1},\n {"ü": 1, "a": NaN},\n {"a": 3}, 7, {"a": 5}]', "json")
        assert [row.content for row in found] == [{"a": 1}, None, {"a": 3}, None, {"a": 5}]
        assert found[1].error is not None
        assert found[1].error.place == Place(2, 16, "stream")
        assert found[3].error is not None
        assert found[3].error.message == "expected a JSON object, got a number"

    def test_places_count_characters(self) -> None:
        found = rows('[{"ü": 1}, {"a": NaN}]', "json")
        assert found[1].error is not None
        assert found[1].error.place == Place(1, 18, "stream")

    @pytest.mark.parametrize(
        ("text", "good", "reason"),
        [
            ('[{"a": 1}', 0, "the file ends inside the array"),
            ('[{"a": 1},', 1, "the file ends inside the array"),
            ('[{"a": 1}, {"a": "', 1, "the file ends inside the array"),
            ('[{"a": 1}, {"a": "\\', 1, "the file ends inside the array"),
            ("[", 0, "the file ends inside the array"),
            ('[{"a": 1}] {"a": 2}', 1, "text after the end of the array"),
            ('[{"a": 1},]', 1, "this is not JSON"),
            ('[{"a": 1},, {"a": 2}]', 2, "this is not JSON"),
            ("[,]", 0, "this is not JSON"),
        ],
    )
    def test_broken_arrays(self, text: str, good: int, reason: str) -> None:
        found = rows(text, "json")
        assert sum(row.error is None for row in found) == good
        assert any(row.error is not None and reason in row.error.message for row in found)

    def test_a_long_element_is_rejected_and_the_rest_goes_on(self) -> None:
        long = json.dumps({"a": "x" * 1_000})
        found = rows(f'[{{"a": 1}}, {long}, {{"a": 3}}]', "json", Limits(max_event_bytes=100))
        assert [row.content for row in found] == [{"a": 1}, None, {"a": 3}]
        assert isinstance(found[1].error, LimitError)

    def test_it_may_be_larger_than_memory(self) -> None:
        read = Counted(b"[" + b",".join([b'{"a": "xxxxxxxxxxxxxxxxxxxx"}'] * 10_000) + b"]")
        assert sum(1 for row in read_rows(read, "json") if row.error is None) == 10_000
        assert read.largest <= 65_536

    @given(st.data())
    def test_any_cut_into_chunks_gives_the_same_elements(self, data: st.DataObject) -> None:
        text = data.draw(st.text(st.sampled_from('[]{},:"\\ \na1ü'), max_size=40))
        whole = b"[" + text.encode()
        size = data.draw(st.integers(1, 5))
        chunks = [whole[start : start + size] for start in range(0, len(whole), size)]
        pieces = [(piece.data, piece.line) for piece in array_elements([whole], DEFAULT_LIMITS)]
        assert [(piece.data, piece.line) for piece in array_elements(chunks, DEFAULT_LIMITS)] == pieces


class Counted(io.BytesIO):
    """Remembers how much was asked for at once."""

    largest = 0

    def readinto(self, buffer: Any) -> int:
        self.largest = max(self.largest, len(buffer))
        return super().readinto(buffer)

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.largest = max(self.largest, len(data))
        return data
