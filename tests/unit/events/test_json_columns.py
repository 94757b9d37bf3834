"""JSON in columns: where Arrow reads it, where the exact reader has to, and that nobody can tell which it was."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from harken.events import Decoded, EventBatch, read_events
from harken.events import decode as decoding
from harken.events.json_columns import JsonColumns, JsonEvents
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import BUILT_IN, Schema


def decoded(
    data: bytes,
    fewest: int,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    names: frozenset[str] | None = None,
) -> list[Decoded]:
    """What is read if batches of so few events are tried in columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_FEWEST_IN_COLUMNS", fewest)
        return list(read_events(io.BytesIO(data), schema=schema, limits=limits, names=names))


def plain(parts: list[Decoded]) -> Iterator[Any]:
    for part in parts:
        yield part.batch.positions
        yield [event.attributes for event in part.batch]
        yield [[type(value) for value in event.attributes.values()] for event in part.batch]
        yield [(each.to_dict(), str(each.error)) for each in part.rejected]


def is_in_columns(data: bytes, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether all of it was read in columns; that it says the same is checked on the way."""
    in_columns, by_rows = decoded(data, 1, schema, limits), decoded(data, 10**9, schema, limits)
    assert list(plain(in_columns)) == list(plain(by_rows))
    return all(isinstance(part.batch.views, JsonEvents) for part in in_columns)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": "x"}\n{"a": null}\n{"b": "y"}\n',
        '{"a": 1}\n{"a": 1.5}\n{"a": -0.0}\n{"a": 9007199254740991}\n',
        '{"a": 9223372036854775807}\n{"a": -9223372036854775808}\n{"a": -0}\n',
        '{"a": 0.1}\n{"a": 1e-400}\n{"a": 2.2250738585072011e-308}\n{"a": 123456789.123456789123456789}\n',
        '{"a": "2026-07-01"}\n{"a": "2026-07-01T12:00:00Z"}\n',
        '{"a": {"t": "2026-07-01", "n": 1}, "l": ["2026-07-01", null]}\n{"a": null, "l": []}\n',
        '{"a": [{"t": ["2026-07-01"]}, {"u": 1.5}]}\n{"a": [{"t": []}]}\n',
        r'{"a": "\u00fc\n\"\\\/\ud83d\ude00\u0000"}' + "\n",
        '{"ü": "ü", "": true}\n{"😀": false}\n',
        r'{"a\u0000b": 1}' + "\n",
        "{}\n{}\n",
        '{"a": {}}\n{"a": {"b": {}}}\n{}\n',
        '{"a": [[], [null], [[1, 2.5]]]}\n{"a": [[[]]]}\n',
        '{"a": 1}\r\n{"a": 2}\r\n',
        '\n{"a": 1}\n{"a": 2}',
        '{"a": 1}\n  \n{"a": 2}\n\n',
        '\ufeff{"a": 1}\n',
        '{"a": "}\\n{"}\n{"a": "{", "a ": "}"}\n',
        "".join(f'{{"a": {n}, "b": "{n}"}}\n' for n in range(5_000)),
    ],
)
def test_read_in_columns(text: str) -> None:
    assert is_in_columns(text.encode())


NESTED = 600
TRICKY = [
    '{"a": 9223372036854775808}',
    '{"a": 1}\n{"a": 123456789012345678901234567890}',
    '{"a": 9007199254740993}\n{"a": 0.5}',
    '{"a": 1e20}',
    '{"a": NaN}',
    '{"a": [1.5, -Infinity]}',
    '{"a": Inf}',
    '{"a": 1e999}',
    '{"a": 1, "a": 2}',
    '{"a": {"b": 1, "\\u0062": 2}}',
    '{"a": 1}{"a": 2}\n{"a":\n3}',
    '{"a": 1} {"a": 2}\n{"a": [{}\n{}]}',
    '{"a": 1}{"a": 2}',
    '{"a":\n1}',
    '{"a": 1}\n{"a": "x"}',
    '{"a": 1}\n{"a": [1]}',
    '{"a": 1}\n{"a": {"b": 1}}',
    '{"a": 1}\noops\n{"a": 2}',
    '{"a": 1}\n[1]\n{"a": 2}',
    '{"a": 1}\n5',
    '{"a": 1,}',
    '{"a": 01}',
    '{"a": "x\ty"}',
    '{"a": "\\ud800"}',
    '{"a": "\\udc00"}',
    '{"\\udc00": 1}',
    '{"a": 1} \n{"a": 2}',
    ' {"a": 1}\n{"a": 2}',
    '{"a": 1}\n\0{"a": 2}',
    '{"a": 1}\0\n{"a": 2}',
    '{"a": 1}\n\ufeff{"a": 2}',
    '{"a": 1}\n{"a": 1',
    '{"a": ' + "[" * NESTED + "]" * NESTED + "}",
    '{"a": ' + "[" * 65 + "]" * 65 + "}",
    '{"a": ' * NESTED + "1" + "}" * NESTED,
    '{"a": ' + "9" * 5_000 + "}",
    '{"a": ' + json.dumps([1] * 100_001) + "}\n",
]


@pytest.mark.parametrize("text", TRICKY, ids=lambda text: text[:40])
def test_left_to_the_exact_reader(text: str) -> None:
    assert not is_in_columns(text.encode())
    assert not is_in_columns(b'{"first": 1}\n' + text.encode() + b"\n")


@pytest.mark.parametrize(
    "data", [b'{"a": "\xff"}\n', b'{"\xff": 1}\n', b'{"a": "\xed\xa0\x80"}\n', b'{"a": {"\xff": 1}}\n']
)
def test_bytes_that_are_not_text(data: bytes) -> None:
    assert not is_in_columns(data)


def test_arrow_would_crash_on_what_is_deep() -> None:
    deep = b'{"a": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}\n"
    assert JsonColumns(None, DEFAULT_LIMITS).events([deep]) is None
    boundless = Limits(max_event_depth=sys.maxsize)
    for depth in (100, 200, 300, 400, 490, 600):
        line = b'{"a": ' * depth + b'"2026-07-01"' + b"}" * depth + b"\n"
        assert JsonColumns(None, DEFAULT_LIMITS).events([line]) is None
        events = JsonColumns(None, boundless).events([line])
        assert events is None or events.event(0).values(("a",) * depth) == ["2026-07-01"]


def test_names_that_are_all_different() -> None:
    lines = [json.dumps({f"k{n}_{m}": m for m in range(20)}).encode() + b"\n" for n in range(1_000)]
    assert JsonColumns(None, DEFAULT_LIMITS).events(lines) is None
    assert JsonColumns(None, DEFAULT_LIMITS, frozenset({"k1_1"})).events(lines[:32]) is None
    objects = [{f"k{n}": n} for n in range(5_000)]
    assert JsonColumns(None, DEFAULT_LIMITS).events([json.dumps({"a": objects}).encode()]) is None


def test_many_names_that_lines_have_in_common() -> None:
    lines = [json.dumps({f"k{m}": n for m in range(100)}).encode() + b"\n" for n in range(1_000)]
    events = JsonColumns(None, DEFAULT_LIMITS).events(lines)
    assert events is not None
    assert len(events._tables) > 1
    assert [event.attributes for event in events] == [json.loads(line) for line in lines]
    cells = EventBatch(events, tuple(range(1_000))).cells(("k7",))
    assert [(each.rows.tolist(), each.values.tolist()) for each in cells.cells] == [([*range(1_000)],) * 2]


@pytest.mark.parametrize(
    ("other", "in_columns"),
    [
        ('"2026-07-01"', True),
        ("9007199254740993.0", True),  # what was an integer, and which, is nothing to those who do not ask
        ("18446744073709551616", True),
        ("1e400", False),
        ("NaN", False),
        ('1, "b": 1', False),
        ('"\xff"', False),
        ('{"c": [1, NaN]}', False),
    ],
)
def test_what_is_not_asked_for_is_only_json(other: str, in_columns: bool) -> None:
    """Of another attribute nothing is known but that it is JSON, however it is read."""
    data = f'{{"a": 1, "b": {other}}}\n{{"a": 2, "b": null}}\n'.encode("latin-1")
    both = [decoded(data, fewest, names=frozenset("a")) for fewest in (1, 10**9)]
    assert list(plain(both[0])) == list(plain(both[1]))
    (part,) = both[0]
    assert isinstance(part.batch.views, JsonEvents) is in_columns
    assert [event.attributes for event in part.batch] == ([{"a": 1}] if in_columns else []) + [{"a": 2}]
    assert not part.batch.cells(("b",)).present.any()


def test_limits() -> None:
    data = b'{"a": [1, 2, 3], "b": "x"}\n{"a": [1], "b": "y"}\n'
    assert is_in_columns(data, limits=Limits(max_event_values=5))
    assert not is_in_columns(data, limits=Limits(max_event_values=4))
    assert not is_in_columns(data, limits=Limits(max_event_bytes=20))
    assert not is_in_columns(data, limits=Limits(max_event_depth=1))
    assert is_in_columns(data, limits=Limits(max_event_depth=3))


def test_a_schema() -> None:
    schema = Schema(attributes={("at",): BUILT_IN["timestamp"], ("n",): BUILT_IN["integer"], ("x",): BUILT_IN["float"]})
    assert is_in_columns(b'{"n": 1, "x": 1, "other": "2026-07-01"}\n{"x": 1.5}\n', schema)
    assert not is_in_columns(b'{"n": 1.0}\n{"n": 2}\n', schema)
    assert not is_in_columns(b'{"n": "x"}\n{"n": "y"}\n', schema)
    assert not is_in_columns(b'{"at": "2026-07-01"}\n{"at": "soon"}\n', schema)


def test_columns_whose_type_changes_on_the_way() -> None:
    values = [*range(1_024), *(n / 2 for n in range(1_024)), *map(str, range(1_024))]
    data = "".join(json.dumps({"a": value}) + "\n" for value in values).encode()
    (part,) = decoded(data, 1)
    assert isinstance(part.batch.views, JsonEvents)
    numbers, strings = part.batch.cells(("a",)).cells
    assert numbers.rows.tolist() == list(range(2_048))
    assert numbers.part is not None
    assert [whole + rest for whole, rest in zip(numbers.values.tolist(), numbers.part.tolist(), strict=True)] == values[
        :2_048
    ]
    assert (strings.rows.tolist(), strings.values.to_pylist()) == (list(range(2_048, 3_072)), values[2_048:])
    for start, stop in ((0, 5), (1_000, 1_100), (1_024, 2_048), (500, 3_000), (3_072, 3_072), (2_000, 1_000)):
        some = part.batch[start:stop]
        assert [event.attributes["a"] for event in some] == values[start:stop]
        assert some.positions == tuple(range(3_072))[start:stop]
        assert sum(len(cells.rows) for cells in some.cells(("a",)).cells) == len(some)
        assert all(len(cells.rows) == len(cells.values) for cells in some.cells(("a",)).cells)


def test_few_events_do_without_arrow() -> None:
    (part,) = read_events(io.BytesIO(b'{"a": 1}\n' * 5))
    assert not isinstance(part.batch.views, JsonEvents)
    (part,) = read_events(io.BytesIO(b'{"a": 1}\n' * 500))
    assert isinstance(part.batch.views, JsonEvents)


def test_positions_go_on_from_batch_to_batch() -> None:
    lines = [f'{{"n": {n}}}\n' if n not in (150, 151) else "oops\n" for n in range(400)]
    parts = list(read_events(io.BytesIO("".join(lines).encode()), batch_size=100))
    assert [isinstance(part.batch.views, JsonEvents) for part in parts] == [True, False, True, True]
    assert [position for part in parts for position in part.batch.positions] == [*range(150), *range(152, 400)]
    assert [(each.position, each.to_dict()["line"]) for each in parts[1].rejected] == [(150, 151), (151, 152)]


def test_objects_in_one_array() -> None:
    objects = [{"n": n} for n in range(100)]
    for text in (json.dumps(objects), json.dumps(objects, indent=1)):
        (part,) = read_events(io.BytesIO(text.encode()), "json")
        assert [event.attributes for event in part.batch] == objects


class TestReadOnce:
    """Arrow reads a line once, but for what it cannot know of the first ones, and not where it is of no use."""

    @pytest.fixture
    def read(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """How long the blocks are that Arrow reads, in lines."""
        import pyarrow.json

        own, found = pyarrow.json.read_json, []

        def counted(source: Any, *options: Any) -> Any:
            found.append(source.read().count(b"\n"))
            source.seek(0)
            return own(source, *options)

        monkeypatch.setattr(pyarrow.json, "read_json", counted)
        return found

    def batches(self, events: list[Any], size: int) -> list[Decoded]:
        data = "".join(json.dumps(event) + "\n" for event in events).encode()
        parts = list(read_events(io.BytesIO(data), batch_size=size))
        assert [event.attributes for part in parts for event in part.batch] == events
        return parts

    def test_times(self, read: list[int]) -> None:
        day = "2026-07-01"
        first = [{"at": day, "s": {"t": day, "n": n}, "l": [{"t": day}], "n": 1} for n in range(100)]
        later = [{"at": "soon", "s": {"t": day, "u": day, "n": 0.5}, "l": [{"q": n}], "m": "x"} for n in range(100)]
        last = [{"s": {"u": "later"}, "l": [{"t": "x"}], "at": day} for _ in range(100)]
        parts = self.batches([*first, *later, *last], 50)
        assert all(isinstance(part.batch.views, JsonEvents) for part in parts)
        assert read == [50] * 8, "twice the first of all, and the first that have another time"

    def test_what_is_no_text_any_more(self, read: list[int]) -> None:
        events = [{"at": "2026-07-01"}] * 50 + [{"at": 1}] * 50 + [{"at": {"x": 1}}] * 50 + [{"at": "2026-07-01"}] * 50
        parts = self.batches(events, 50)
        assert all(isinstance(part.batch.views, JsonEvents) for part in parts)
        assert [len(part.batch.cells(("at",)).cells) for part in parts] == [1, 1, 0, 1]

    def test_what_is_for_the_exact_reader_is_tried_ever_less_often(self, read: list[int]) -> None:
        events = [{"a": n if n % 2 else str(n)} for n in range(2_000)]
        self.batches(events, 50)
        assert 3 <= len(read) <= 6
        read.clear()
        parts = self.batches([*events[:50], *({"a": n} for n in range(200)), *events[:50]], 50)
        assert [part.batch.is_lazy for part in parts] == [False, True, True, True, True, False]
