"""The text of documents that come as bytes."""

from __future__ import annotations

import pytest

from harken.errors import DecodeError
from harken.events.encodings import is_utf8, text_of

TEXT = "<?xml version='1.0'?><ä>é</ä>"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (TEXT.encode(), TEXT),
        (b"\xef\xbb\xbf" + TEXT.encode(), TEXT),
        (b"\xff\xfe" + TEXT.encode("utf-16-le"), TEXT),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), TEXT),
        (TEXT.encode("utf-16-le"), TEXT),
        (TEXT.encode("utf-16-be"), TEXT),
        ("<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>".encode("latin-1"), None),
        ('<?xml version="1.0" encoding="windows-1252"?><a>€</a>'.encode("cp1252"), None),
    ],
)
def test_the_encoding_is_the_one_that_the_document_tells(data: bytes, expected: str | None) -> None:
    found = text_of(data)
    assert found == expected if expected is not None else found.endswith(("<a>é</a>", "<a>€</a>"))


@pytest.mark.parametrize("encoding", ["unicode_escape", "UTF-7", "rot13", "base64", "klingon", "utf-8"])
def test_what_is_no_text_in_it_is_refused(encoding: str) -> None:
    with pytest.raises(DecodeError, match="is not text in the encoding"):
        text_of(f"<?xml version='1.0' encoding='{encoding}'?><a>".encode() + b"\xff</a>")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"<a/>", True),
        (b"<?xml version='1.0' encoding='utf-8'?><a/>", True),
        (b"<?xml version='1.0' encoding='latin-1'?><a/>", False),
        ("<a/>".encode("utf-16"), False),
        ("<a/>".encode("utf-16-le"), False),
    ],
)
def test_whether_it_is_utf8(data: bytes, expected: bool) -> None:
    assert is_utf8(data) is expected
