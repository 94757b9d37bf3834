"""Documents out of containers: which elements, with which namespaces, in bounded memory, and what ends it early."""

from __future__ import annotations

import codecs
import io
import tracemalloc
from collections.abc import Iterator

import pytest

from harken.errors import DecodeError, LimitError
from harken.events.pieces import Piece
from harken.events.xml import read_document
from harken.events.xml.splitting import documents_of, split
from harken.limits import Limits


def pieces(data: str | bytes, tag: str = "r", **limits: int) -> list[Piece]:
    stream = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return list(split(stream, tag, Limits(**limits)))


def records(data: str | bytes, tag: str = "r") -> list[str]:
    found = pieces(data, tag)
    assert not any(piece.error for piece in found)
    return [piece.data.decode() for piece in found]


def test_records_and_their_places() -> None:
    found = pieces("<c>\n <r>1</r>\n\n  <r a='2'/><d><r>3</r\n></d></c>")
    assert [(piece.data, piece.line, piece.column) for piece in found] == [
        (b"<r>1</r>", 2, 2),
        (b"<r a='2'/>", 4, 3),
        (b"<r>3</r\n>", 4, 16),
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("<c><r><r>1</r></r><r/></c>", ["<r><r>1</r></r>", "<r/>"]),
        ("<c><!-- <r>1</r> --><![CDATA[<r>2</r>]]><?p <r>?><r>3</r></c>", ["<r>3</r>"]),
        ("<c x='<r' y='>'><r>1</r></c>".replace("<r'", "&lt;r'"), ["<r>1</r>"]),
        ("<c><r x='/>'><![CDATA[</r>]]><!-- </r> --></r></c>", ["<r x='/>'><![CDATA[</r>]]><!-- </r> --></r>"]),
        ("<c><r x='>'/></c>", ["<r x='>'/>"]),
        ("<c><r>/></r></c>", ["<r>/></r>"]),
        ('<c><r x="a>\'b" /></c>', ['<r x="a>\'b" />']),
        ("<r>all</r>", ["<r>all</r>"]),
        ("<c><rr/><ar/></c>", []),
    ],
)
def test_which_elements(data: str, expected: list[str]) -> None:
    assert records(data) == expected


def test_namespaces_in_scope_are_added() -> None:
    data = (
        "<c xmlns='u' xmlns:p='v&amp;&quot;' xmlns:q='w'><d xmlns:p='x' xmlns=''><r q:a='1'/></d><r xmlns:q='y' /></c>"
    )
    first, second = records(data)
    assert first == '<r xmlns:p="x" xmlns:q="w" q:a=\'1\'/>'
    assert second == '<r xmlns="u" xmlns:p="v&amp;&quot;" xmlns:q=\'y\' />'
    read = read_document(second.encode())
    assert read.paths.name(int(read.path[1])) == b"{u}r"


def test_a_prefix_as_it_is_written() -> None:
    data = "<c xmlns:p='u' xmlns:q='v'><p:r/><q:r/><r/></c>"
    assert len(records(data)) == 3
    assert records(data, "p:r") == ['<p:r xmlns:p="u" xmlns:q="v"/>']


def test_an_external_doctype_is_skipped_and_another_rejected() -> None:
    assert records("<!DOCTYPE c SYSTEM 'http://nowhere.invalid/c.dtd'><c><r/></c>") == ["<r/>"]
    assert records("<!DOCTYPE c PUBLIC '-//x' 'c.dtd'><c><r/></c>") == ["<r/>"]
    laughs = (
        "<!DOCTYPE c [<!ENTITY a 'ha'>" + "".join(f"<!ENTITY a{n} '&a;&a;'>" for n in range(9)) + "]><c><r>&a;</r></c>"
    )
    (piece,) = pieces(laughs)
    assert isinstance(piece.error, DecodeError)
    assert "DOCTYPE" in str(piece.error)
    (piece,) = pieces("<!DOCTYPE c SYSTEM 'c.dtd'><c><r>&a;</r></c>")
    ((_, error),) = read_document(piece.data).errors
    assert "entity" in str(error), "what the DTD may define is not guessed"


@pytest.mark.parametrize(
    ("data", "count", "message"),
    [
        ("<c><r>1</r><r>2</r><r>3", 2, "begins in line 1 is not complete"),
        ("<c><r>1</r>\n</d>", 1, "an end tag does not fit"),
        ("<c><r>1</r></c><c/>", 1, "something after the root"),
        ("<c><r>1</r>", 1, "cannot be read"),
        ("", 0, "the file is empty"),
        ("nothing", 0, "cannot be read"),
        (
            b"<?xml version='1.0' encoding='klingon'?><c/>",
            0,
            "the file cannot be read: its encoding `klingon` is not known",
        ),
        (b"<?xml version='1.0' encoding='us-ascii'?><c><r>\xe9</r></c>", 0, "not in its declared encoding `ascii`"),
        (b"<c><r>1</r><r>\xe9</r></c>", 1, "not allow here"),
    ],
)
def test_malformed_input_ends_with_an_error(data: str | bytes, count: int, message: str) -> None:
    *good, last = pieces(data)
    assert [piece.error for piece in good] == [None] * count
    assert last.error is not None
    assert message in str(last.error)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "cp1252"])
def test_encodings(codec: str) -> None:
    declared = f" encoding='{codec}'" if codec in ("latin-1", "cp1252") else ""
    data = f"<?xml version='1.0'{declared}?><c><r>é</r></c>"
    assert records(data.encode(codec)) == ["<r>é</r>"]
    assert codecs.lookup(codec)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("has_mark", [True, False])
@pytest.mark.parametrize("half", [0xD800, 0xDC00], ids=hex)
def test_what_comes_before_half_of_a_character_is_whole(codec: str, has_mark: bool, half: int) -> None:
    text = "\ufeff" * has_mark + f"<c><r>é</r><r>😀</r><r>{chr(half)}x</r><r>2</r></c>"
    *good, last = pieces(text.encode(codec, "surrogatepass"))
    assert [piece.data.decode() for piece in good] == ["<r>é</r>", "<r>😀</r>"]
    assert str(last.error) == f"the file is not in its declared encoding `{codec}`"


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf<?xml version='1.0' encoding='latin-1'?><c><r>1</r></c>",
        b"<?xml version='1.0' encoding='UTF-16'?><c><r>1</r></c>",
        "<?xml version='1.0' encoding='UTF-8'?><c><r>1</r></c>".encode("utf-16"),
        b"<?xml version='1.0' encoding='shift_jis'?><c><r>1</r></c>",
    ],
)
def test_a_file_that_tells_two_encodings_or_one_of_several_bytes(data: bytes) -> None:
    (last,) = pieces(data)
    ((_, error),) = read_document(data).errors
    assert str(last.error) == str(error).replace("document", "file").partition(" (")[0]


def test_cut_anywhere() -> None:
    data = "<c xmlns:p='u'><!-- <r> --><r x='>'>é<![CDATA[</r>]]></r ><p:r/><d>\n<r>2</r></d></c>".encode()
    expected = pieces(data)
    assert len(expected) == 3

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(1)

    assert list(split(Slow(data), "r", Limits())) == expected


def test_a_record_that_is_too_long() -> None:
    found = pieces(
        "<c><r>1</r><r>" + "x" * 300_000 + "</r><r>" + "y" * 2_000 + "</r><r>4</r></c>", max_event_bytes=1_000
    )
    assert [piece.error is None for piece in found] == [True, False, False, True]
    assert [piece.column for piece in found] == [4, 12, 300_019, 302_026]
    for piece in found[1:3]:
        assert isinstance(piece.error, LimitError)
        assert piece.error.limit == "max_event_bytes"
        assert len(piece.data) <= 1_000


class Endless(io.RawIOBase):
    """A stream that is made while it is read."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    def read(self, size: int = -1) -> bytes:
        return next(self._chunks, b"")


def memory_of(chunks: Iterator[bytes], **limits: int) -> tuple[list[Piece], int]:
    tracemalloc.start()
    try:
        found = list(split(Endless(chunks), "r", Limits(**limits)))  # type: ignore[arg-type]
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_bounded() -> None:
    def long_text() -> Iterator[bytes]:
        yield b"<c><r>"
        for _ in range(300):
            yield b"x" * 65_536
        yield b"</r><r/></c>"

    found, peak = memory_of(long_text(), max_event_bytes=100_000)
    assert [piece.error is None for piece in found] == [False, True]
    assert peak < 2_000_000

    def long_comment() -> Iterator[bytes]:
        yield b"<c><r/><!-- "
        while True:
            yield b"x" * 65_536

    found, peak = memory_of(long_comment(), max_event_bytes=1_000_000)
    assert [piece.error is None for piece in found] == [True, False]
    assert peak < 10_000_000

    def nested() -> Iterator[bytes]:
        while True:
            yield b"<a>" * 1_000

    found, peak = memory_of(nested())
    assert isinstance(found[0].error, LimitError)
    assert peak < 10_000_000


def test_a_raised_depth_holds_for_containers_too() -> None:
    deep = "<c><r>" + "<a>" * 15_000 + "</a>" * 15_000 + "</r></c>"
    assert [type(piece.error) for piece in pieces(deep)] == [LimitError]
    assert [piece.error for piece in pieces(deep, max_event_depth=20_000)] == [None]


def test_whole_files() -> None:
    assert list(documents_of(io.BytesIO(b"<a/>"), Limits())) == [Piece(b"<a/>", 1)]
    (piece,) = documents_of(io.BytesIO(b"<a>xxxx</a>"), Limits(max_event_bytes=5))
    assert isinstance(piece.error, LimitError)


def test_nasa(nasa: list[bytes]) -> None:
    assert len(nasa) == 2_435
    assert sum(map(len, nasa)) == 25_045_400
    assert all(each.startswith(b"<dataset ") and each.endswith(b"</dataset>") for each in nasa)
