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


@pytest.mark.parametrize("encoding", ["utf-8", "us-ascii", "windows-1253"])
def test_what_is_no_text_in_it_is_rejected(encoding: str) -> None:
    with pytest.raises(DecodeError, match="is not text in the encoding"):
        text_of(f"<?xml version='1.0' encoding='{encoding}'?><a>".encode() + b"\xff</a>")


@pytest.mark.parametrize(
    "encoding",
    [
        *("unicode_escape", "raw_unicode_escape", "UTF-7", "rot13", "base64", "zlib", "klingon", "utf-32", "utf-8-sig"),
        *("idna", "punycode", "undefined", "shift_jis", "gb18030", "big5", "euc_kr", "hz", "iso2022_jp", "cp037"),
    ],
)
def test_encodings_of_several_bytes_and_what_is_none_are_not_known(encoding: str) -> None:
    with pytest.raises(DecodeError, match=f"its encoding `{encoding}` is not known"):
        text_of(f"<?xml version='1.0' encoding='{encoding}'?><a>x</a>".encode())


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        (b"<?xml version='1.0' encoding='UTF-16'?><a/>", "UTF-16"),
        (b"\xef\xbb\xbf<?xml version='1.0' encoding='latin-1'?><a/>", "latin-1"),
        ("<?xml version='1.0' encoding='UTF-8'?><a/>".encode("utf-16"), "UTF-8"),
        ("<?xml version='1.0' encoding='UTF-16BE'?><a/>".encode("utf-16-le"), "UTF-16BE"),
    ],
)
def test_what_tells_two_encodings_is_rejected(data: bytes, declared: str) -> None:
    with pytest.raises(DecodeError, match=f"its encoding is not the one that it declares `{declared}`"):
        text_of(data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"<a/>", True),
        (b"<?xml version='1.0' encoding='utf-8'?><a/>", True),
        (b"<?xml version='1.0' encoding='latin-1'?><a/>", False),
        (b"<?xml version='1.0' encoding='us-ascii'?><a/>", False),
        (b"<?xml version='1.0' encoding='klingon'?><a/>", False),
        (b"\xef\xbb\xbf<a/>", False),
        (" <a/>".encode("utf-16-le"), False),
        ("<a/>".encode("utf-16"), False),
        ("<a/>".encode("utf-16-le"), False),
    ],
)
def test_whether_it_is_utf8(data: bytes, expected: bool) -> None:
    assert is_utf8(data) is expected
