"""The text of an XML document that comes as bytes: in the encoding that it tells, as XML defines it.

Whoever reads documents asks here what they say, so that all accept the same ones: UTF-8, UTF-16, and encodings of one
byte a character that have ASCII where it is. A document whose bytes are not in the encoding that it tells is refused,
and so is one that tells two.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

from harken.errors import DecodeError, LimitError
from harken.limits import Limits

UTF_8, UTF_16_LE, UTF_16_BE = "utf-8", "utf-16-le", "utf-16-be"
_MARKS = ((codecs.BOM_UTF8, UTF_8), (codecs.BOM_UTF16_LE, UTF_16_LE), (codecs.BOM_UTF16_BE, UTF_16_BE))
_OF_UTF_16 = {UTF_16_LE: ("utf-16", "utf-16le"), UTF_16_BE: ("utf-16", "utf-16be")}
"""What a document in UTF-16 may declare."""
_DECLARED = re.compile(r"""<\?xml\s[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
_HEAD = 1_024
"""Bytes of UTF-16 in which the XML declaration is looked for; in other encodings it may be anywhere."""


def text_of(data: bytes) -> str:
    """The text, without a byte order mark. Raises DecodeError."""
    encoding, size = encoding_of(data)
    try:
        return data[size:].decode(encoding)
    except UnicodeDecodeError as error:
        raise DecodeError(f"the document is not text in the encoding {encoding}") from error


def text_within(data: bytes, limits: Limits) -> str:
    """The same, of a document that is not too long, neither as it came nor in UTF-8. Raises LimitError too."""
    _check_size(len(data), limits)
    text = text_of(data)
    if 3 * len(text) > limits.max_event_bytes:
        _check_size(len(text.encode()), limits)
    return text


def _check_size(size: int, limits: Limits) -> None:
    most = limits.max_event_bytes
    if size > most:
        message = f"the document has more than {most:,} bytes, the most there may be"
        raise LimitError(message, limit="max_event_bytes")


def encoding_of(data: bytes) -> tuple[str, int]:
    """The codec of a document that begins like this, and the bytes of its byte order mark. Raises DecodeError."""
    told, size = _told_by_bytes(data)
    name = _declared_name(data, told, size)
    if name is None:
        return told or UTF_8, size
    if told in _OF_UTF_16:
        if name.lower() not in _OF_UTF_16[told]:
            raise _not_as_declared(name)
        return told, size
    codec = _codec(name)
    if name.lower().startswith("utf-16") or (told == UTF_8 and codec not in (UTF_8, None)):
        raise _not_as_declared(name)
    if codec is None:
        raise DecodeError(f"the document cannot be read: its encoding `{name}` is not known")
    return codec, size


def is_utf8(data: bytes) -> bool:
    """Whether a document that begins like this, by what it tells of itself, is UTF-8 without a byte order mark."""
    try:
        return encoding_of(data) == (UTF_8, 0)
    except DecodeError:
        return False


def _told_by_bytes(data: bytes) -> tuple[str | None, int]:
    """The encoding that the first bytes tell, whatever is declared, and the size of their mark."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding, len(mark)
    if len(data) > 1 and 0 in data[:2]:  # a document begins with ASCII
        return (UTF_16_BE if data[0] == 0 else UTF_16_LE), 0
    return None, 0


def _declared_name(data: bytes, told: str | None, size: int) -> str | None:
    """The encoding that the XML declaration names, if there is one that does."""
    if told in _OF_UTF_16:
        head = data[size : size + _HEAD].decode(told, "replace")
    elif data.startswith(b"<?xml", size):
        head = data[size : data.find(b">", size) + 1].decode("latin-1")
    else:
        return None
    found = _DECLARED.match(head)
    return None if found is None else found[1]


@lru_cache(maxsize=256)
def _codec(name: str) -> str | None:
    """Python's name of an encoding that documents may declare; None if they may not, or if there is none."""
    try:
        b"a".decode(name)  # raises LookupError for what is no encoding of text
        codec = codecs.lookup(name)
        if codec.name == UTF_8:
            return UTF_8
        # A decoder of several bytes a character, or of escapes, waits for more behind some of them.
        decoded = [codecs.getincrementaldecoder(name)("replace").decode(bytes([byte])) for byte in range(256)]
    except (LookupError, ValueError):
        return None
    has_ascii = "".join(decoded[:128]) == bytes(range(128)).decode("ascii")
    return codec.name if has_ascii and all(len(each) == 1 for each in decoded) else None


def _not_as_declared(name: str) -> DecodeError:
    return DecodeError(f"the document cannot be read: its encoding is not the one that it declares `{name}`")
