"""Server-sent events: the standard's own rules, however the bytes are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.client.server_sent import Frame, FrameParser


def frames(*pieces: bytes) -> list[Frame]:
    parser = FrameParser()
    return [frame for piece in pieces for frame in parser.feed(piece)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data: a\n\n", [Frame("message", "a", "")]),
        ("id: 7\nevent: digest\ndata: a\n\n", [Frame("digest", "a", "7")]),
        ("data: a\ndata:b\ndata:  c\n\n", [Frame("message", "a\nb\n c", "")]),
        ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", [Frame("message", each, "") for each in "abc"]),
        (": ping\n\n: ping\n\ndata: a\n\n", [Frame("message", "a", "")]),
        ("id: 1\ndata: a\n\ndata: b\n\n", [Frame("message", "a", "1"), Frame("message", "b", "1")]),
        ("event: x\n\ndata: a\n\n", [Frame("message", "a", "")]),
        ("data: a", []),
        ("data: a\n", []),
        ("data\n\n", [Frame("message", "", "")]),
        ("nonsense: a\nid: 1\x002\ndata: b\n\n", [Frame("message", "b", "")]),
        ("\ufeffdata: é\u2028✓\n\n", [Frame("message", "é\u2028✓", "")]),
    ],
)
def test_frames(text: str, expected: list[Frame]) -> None:
    data = text.encode()
    assert frames(data) == expected
    assert frames(*(data[at : at + 1] for at in range(len(data)))) == expected


def test_an_id_counts_when_its_frame_is_complete() -> None:
    parser = FrameParser("5")
    assert list(parser.feed(b"id: 6\n")) == []
    assert parser.id == "5"
    assert list(parser.feed(b"\n")) == []
    assert parser.id == "6"


@pytest.mark.parametrize(("text", "retry"), [(b"retry: 1500\n", 1.5), (b"retry: 1.5\n", None), (b"retry: -1\n", None)])
def test_retry_is_in_milliseconds(text: bytes, retry: float | None) -> None:
    parser = FrameParser()
    list(parser.feed(text))
    assert parser.retry == retry


LINES = st.sampled_from(["data: a", "data: é✓", "id: 3", "event: digest", ": ping", "", "data", "retry: 5"])


@given(st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n"]))), st.data())
def test_where_the_bytes_are_cut_changes_nothing(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    text = "".join(line + end for line, end in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    pieces = [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert frames(*pieces) == frames(text)
