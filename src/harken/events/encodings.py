"""Decode XML documents from bytes, in the encoding that each document states, as XML defines it.

All readers of documents decode them here, so that all accept the same encodings: UTF-8, UTF-16, and encodings of one
byte per character that extend ASCII. A document is rejected if its bytes are not in the encoding that it states, or if
its first bytes imply another one.
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
"""The encodings that a document in UTF-16 may declare."""
_DECLARED = re.compile(r"""<\?xml\s[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
_HEAD = 1_024
"""Number of leading bytes of UTF-16 to search for the XML declaration. In other encodings it may have any length."""


def text_of(data: bytes) -> str:
    """The text of a document, without its byte order mark. Raises DecodeError."""
    encoding, size = encoding_of(data)
    try:
        return data[size:].decode(encoding)
    except UnicodeDecodeError as error:
        raise DecodeError(f"the document is not text in the encoding {encoding}") from error


def text_within(data: bytes, limits: Limits) -> str:
    """`text_of` with a limit on the bytes of the document, as it came and in UTF-8. Raises LimitError too."""
    _check_size(len(data), limits)
    text = text_of(data)
    if 3 * len(text) > limits.max_event_bytes:
        _check_size(len(text.encode()), limits)
    return text


def _check_size(size: int, limits: Limits) -> None:
    longest = limits.max_event_bytes
    if size > longest:
        message = f"the document has more than {longest:,} bytes"
        raise LimitError(message, limit="max_event_bytes")


def encoding_of(data: bytes) -> tuple[str, int]:
    """The codec of a document that begins with `data`, and the size of its byte order mark. Raises DecodeError."""
    detected, size = _detected_encoding(data)
    name = _declared_name(data, detected, size)
    if name is None:
        return detected or UTF_8, size
    if detected in _OF_UTF_16:
        if name.lower() not in _OF_UTF_16[detected]:
            raise _not_as_declared(name)
        return detected, size
    codec = _codec(name)
    if name.lower().startswith("utf-16") or (detected == UTF_8 and codec not in (UTF_8, None)):
        raise _not_as_declared(name)
    if codec is None:
        raise DecodeError(f"the document cannot be read: its encoding `{name}` is not known")
    return codec, size


def is_utf8(data: bytes) -> bool:
    """Whether a document that begins with `data` states that it is UTF-8, and has no byte order mark."""
    try:
        return encoding_of(data) == (UTF_8, 0)
    except DecodeError:
        return False


def _detected_encoding(data: bytes) -> tuple[str | None, int]:
    """The encoding that the first bytes imply, None if they do not, and the size of the byte order mark."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding, len(mark)
    if len(data) > 1 and 0 in data[:2]:  # a document begins with ASCII
        return (UTF_16_BE if data[0] == 0 else UTF_16_LE), 0
    return None, 0


def _declared_name(data: bytes, detected: str | None, size: int) -> str | None:
    """The encoding that the XML declaration names, if it names one."""
    if detected in _OF_UTF_16:
        head = data[size : size + _HEAD].decode(detected, "replace")
    elif data.startswith(b"<?xml", size):
        head = data[size : data.find(b">", size) + 1].decode("latin-1")
    else:
        return None
    match = _DECLARED.match(head)
    return None if match is None else match[1]


@lru_cache(maxsize=256)
def _codec(name: str) -> str | None:
    """Python's name of an encoding that documents may declare; None if it is unknown or not supported."""
    try:
        b"a".decode(name)  # raises LookupError for codecs that are not text encodings
        codec = codecs.lookup(name)
        if codec.name == UTF_8:
            return UTF_8
        # Decoders of multi-byte characters or of escapes return nothing for some single bytes.
        decoded = [codecs.getincrementaldecoder(name)("replace").decode(bytes([byte])) for byte in range(256)]
    except (LookupError, ValueError):
        return None
    has_ascii = "".join(decoded[:128]) == bytes(range(128)).decode("ascii")
    return codec.name if has_ascii and all(len(each) == 1 for each in decoded) else None


def _not_as_declared(name: str) -> DecodeError:
    return DecodeError(f"the document cannot be read: its encoding is not the one that it declares `{name}`")
