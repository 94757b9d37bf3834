"""The text of an XML document that comes as bytes: in the encoding that it tells, as XML defines it."""

from __future__ import annotations

import codecs
import re

from harken.errors import DecodeError

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_STARTS = ((b"<\x00", "utf-16-le"), (b"\x00<", "utf-16-be"))
"""What a document without a mark begins with, by its encoding."""
_NO_ENCODINGS = frozenset({"unicode_escape", "raw_unicode_escape", "unicode-escape", "raw-unicode-escape"})
_NO_ENCODINGS |= {"utf-7", "idna", "punycode", "undefined"}
"""Codecs of Python that are no encodings of documents."""
_DECLARED = re.compile(rb"""<\?xml\s[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")


_WIDE = (b"\xff\xfe", b"\xfe\xff", b"<\x00", b"\x00<")


def text_of(data: bytes) -> str:
    """The text, without a byte order mark. Raises DecodeError."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], encoding)
    for start, encoding in _STARTS:
        if data.startswith(start):
            return _decoded(data, encoding)
    return _decoded(data, declared(data) or "utf-8")


def declared(data: bytes) -> str | None:
    """The encoding that the XML declaration names, if there is one that does."""
    found = _DECLARED.match(data)
    return None if found is None else found[1].decode()


def is_utf8(data: bytes) -> bool:
    """Whether a document, by what it tells of itself, is UTF-8."""
    return data[:2] not in _WIDE and (declared(data) or "utf-8").lower() in ("utf-8", "us-ascii")


def _decoded(data: bytes, encoding: str) -> str:
    try:
        if codecs.lookup(encoding).name in _NO_ENCODINGS:
            raise LookupError(encoding)
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        raise DecodeError(f"the document is not text in the encoding {encoding}") from None
