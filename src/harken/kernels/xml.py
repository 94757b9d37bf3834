"""From the bytes of XML documents to arrays: a strict tokenizer for usual XML.

It takes UTF-8 whose validity was checked before, with line ends that are LF already. What it accepts is well-formed.
What may be malformed, or is only rare (a DOCTYPE, names outside ASCII, another encoding, odd uses of the prefix `xml`),
it leaves to a full parser.

All text of a document lies in one run. Text is written from the front of a buffer, attribute values from its back: as
no character takes more bytes than what spells it, a buffer as long as the documents has room for both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inlined, inner, kernel
from harken.kernels.frozen import thawing
from harken.kernels.scanning import HAS_CONTROL, HAS_HIGH, HAS_RETURN, WIDTH, copy_bytes, finder, same_bytes, tally

ELEMENT, ATTRIBUTE, TEXT = 1, 2, 3
"""Kinds of nodes, and of tag paths."""
DONE, UNSURE, UNKNOWN, FULL = 0, 1, 2, 3
"""Status of a document: it was read; another parser decides; it has an unknown tag path; it has one without room."""
NODES, FRONT, BACK, DOCUMENT, PATHS, NAMES, UNREAD = 0, 1, 2, 3, 4, 5, 6
"""Places in `ParseBuffers.cursor`: the next node, the ends of both parts of the text, the next document, the number of
known tag paths, the bytes of their names, and the number of documents not read."""
MAX_NAME = 4_096
"""Bytes of the longest expanded name that the tokenizer looks up."""
MOST_ATTRIBUTES = 64
"""Most attributes of an element, declarations of namespaces not counted."""
MOST_BINDINGS = 64
"""Most bindings of prefixes in scope."""
MOST_LEVELS = 4_096
"""Most elements inside one another."""
MOST_DIGITS = 15
"""Most digits of a number: binary64 holds them as an integer, and MOST_DECIMALS as a power of ten to divide by."""
MOST_DECIMALS = 22


class TagPathTable(NamedTuple):
    """Tag paths by number, and a hash table that finds them by parent, kind and expanded name."""

    parent: NDArray[np.int32]
    kind: NDArray[np.uint8]
    name_at: NDArray[np.int64]
    """Where the name of each begins in `names`, and ends for the one before it."""
    names: NDArray[np.uint8]
    """Names behind each other, and WIDTH bytes behind the last."""
    text_of: NDArray[np.int32]
    """The tag path of the texts below each; 0 if there is none."""
    opening: NDArray[np.int32]
    following: NDArray[np.int32]
    """The element last seen first inside each, and next behind each: a guess with which a look-up begins. Threads write
    these without a lock, so every guess is compared."""
    slots: NDArray[np.int32]
    """Tag paths by hash, with open addressing; 0 is an empty slot, because the root is not looked up."""
    seed: int


class ParseBuffers(NamedTuple):
    """Working arrays of one thread."""

    cursor: NDArray[np.int64]
    node: NDArray[np.int32]
    """By level: the element that is open."""
    name: NDArray[np.int64]
    length: NDArray[np.int64]
    """Where its name begins in the data, and its bytes."""
    attribute: NDArray[np.int64]
    attribute_end: NDArray[np.int64]
    colon: NDArray[np.int64]
    """Of each attribute: where its name begins and ends, and the colon in it, or -1."""
    hashed: NDArray[np.int64]
    value: NDArray[np.int64]
    value_end: NDArray[np.int64]
    prefix: NDArray[np.int64]
    prefix_length: NDArray[np.int64]
    """Of each binding: its prefix in the data; 0 bytes for the default namespace."""
    uri: NDArray[np.int64]
    uri_length: NDArray[np.int64]
    level: NDArray[np.int64]
    expanded: NDArray[np.uint8]
    """An expanded name that is being looked up."""


class Job(NamedTuple):
    """Documents, and the arrays that they are written to."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    status: NDArray[np.uint8]
    """By document. Documents that are not DONE beforehand are skipped."""
    first: NDArray[np.int64]
    path: NDArray[np.int32]
    parent: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    text: NDArray[np.uint8]


_thawed_table, _thawed_room, _thawed_job = thawing(TagPathTable), thawing(ParseBuffers), thawing(Job)

_LT, _GT, _AMP, _BRACKET, _DASH, _QUERY, _SLASH, _BANG = 60, 62, 38, 93, 45, 63, 47, 33
_EQUALS, _COLON, _SEMICOLON, _HASH, _QUOTE, _APOSTROPHE = 61, 58, 59, 35, 34, 39
_PART, _START, _COLON_CLASS = 1, 3, 4


def _classes(special: bytes) -> NDArray[np.uint8]:
    """1 for the bytes named, and for control characters but tab and line feed."""
    table = np.zeros(256, np.uint8)
    table[:32] = 1
    table[[9, 10]] = 0
    table[list(special)] = 1
    return table


def _name_classes() -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    table[list(b"0123456789.-")] = _PART
    table[list(b"_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")] = _START
    table[_COLON] = _COLON_CLASS
    return table


def _spaces() -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    table[[9, 10, 32]] = 1
    return table


def _word(text: str) -> NDArray[np.uint8]:
    return np.array(list(text.encode()), np.uint8)


_IN_TEXT = _classes(b"<&]")
_IN_VALUE = _classes(b"\"'<&\t\n")
_IN_COMMENT = _classes(b"-")
_IN_INSTRUCTION = _classes(b"?")
_IN_CDATA = _classes(b"]")
_NAME = _name_classes()
_SPACE = _spaces()
_ENDS_NAME = _spaces()
_ENDS_NAME[[_GT, _SLASH]] = 1
_before_markup = finder(b"<&]")
_before_odd = finder(b"\"'<&\t\n")
_XML_URI = _word("http://www.w3.org/XML/1998/namespace")
_RESERVED = _word("http://www.w3.org/XML/1998/")
_ALSO_RESERVED = _word("http://www.w3.org/2000/xmlns/")
_OPENING, _XMLNS, _CDATA = _word("<?xml"), _word("xmlns"), _word("<![CDATA[")
_VERSION, _ENCODING, _STANDALONE = _word("version"), _word("encoding"), _word("standalone")
_ONE, _UTF_8, _YES, _NO = _word("1.0"), _word("utf-8"), _word("yes"), _word("no")
_AMP_WORD, _LT_WORD, _GT_WORD = _word("amp;"), _word("lt;"), _word("gt;")
_QUOTE_WORD, _APOSTROPHE_WORD = _word("quot;"), _word("apos;")
_POWERS = np.array([10.0**power for power in range(MOST_DECIMALS + 1)])


@inlined
def _is_at(data, at, stop, word):
    """Whether the data go on with this word."""
    is_same = at + len(word) <= stop
    place = 0
    while is_same and place < len(word):
        is_same = data[at + place] == word[place]
        place += 1
    return is_same


@inlined
def _is_at_in_any_case(data, at, stop, word):
    is_same = at + len(word) <= stop
    place = 0
    while is_same and place < len(word):
        byte = np.int64(data[at + place])
        is_same = (byte + 32 if 65 <= byte <= 90 else byte) == word[place]
        place += 1
    return is_same


@inlined
def _mixed(hashed, parent, kind):
    mixed = (hashed + parent * 0x9E3779B1 + kind * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    return mixed ^ (mixed >> 13)


@inlined
def _hash_on(hashed, byte):
    return ((hashed ^ np.int64(byte)) * 16_777_619) & 0xFFFFFFFF


@inlined
def _find_path(table, known, source, begin, length, hashed, parent, kind):
    """The tag path of this parent, kind and name among the first `known`, or -1."""
    mask = len(table.slots) - 1
    slot = _mixed(hashed, parent, kind) & mask
    answer = np.int64(-1)
    while True:  # more than half of the slots are empty
        path = np.int64(table.slots[slot])
        if path == 0:
            break
        if path < known and table.parent[path] == parent and table.kind[path] == kind:
            name = table.name_at[path]
            if table.name_at[path + 1] - name == length:
                same = np.int64(0)
                while same < length and table.names[name + same] == source[begin + same]:
                    same += 1
                if same == length:
                    answer = path
                    break
        slot = (slot + 1) & mask
    return answer


@kernel
def _add_path(table, cursor, source, begin, length, hashed, parent, kind):
    """Add a tag path. Returns it, or -2 if there is no room."""
    path, used = cursor[PATHS], cursor[NAMES]
    if path >= len(table.parent) or used + length + WIDTH > len(table.names):
        return np.int64(-2)
    mask = len(table.slots) - 1
    slot = _mixed(hashed, parent, kind) & mask
    while table.slots[slot] != 0:
        slot = (slot + 1) & mask
    table.parent[path], table.kind[path] = parent, kind
    for place in range(length):
        table.names[used + place] = source[begin + place]
    table.name_at[path + 1] = used + length
    table.text_of[path] = table.opening[path] = table.following[path] = 0
    if kind == TEXT:
        table.text_of[parent] = path
    else:
        table.slots[slot] = path
    cursor[PATHS], cursor[NAMES] = path + 1, used + length
    return path


@inlined
def _look_up(table, cursor, source, begin, length, hashed, parent, kind, may_add):
    """The tag path of this parent, kind and name; -1 if it is unknown, -2 if there is no room to add it."""
    path = _find_path(table, cursor[PATHS], source, begin, length, hashed, parent, kind)
    if path < 0 and may_add:
        path = _add_path(table, cursor, source, begin, length, hashed, parent, kind)
    return path


@inlined
def _text_path(table, cursor, parent, may_add):
    path = np.int64(table.text_of[parent])
    if path == 0 or path >= cursor[PATHS]:
        path = np.int64(-1)
        if may_add:
            path = _add_path(table, cursor, table.names, 0, 0, 0, parent, TEXT)
    return path


@inlined
def _failure(path):
    """The status of a document with a tag path whose look-up failed."""
    return UNKNOWN if path == -1 else FULL if path == -2 else UNSURE


@kernel
def find_or_add(table, room, source, parent, kind, may_add):
    """The tag path of the name `source`, as `_look_up` returns it."""
    table, room = _thawed_table(table), _thawed_room(room)
    if kind == TEXT:
        return _text_path(table, room.cursor, parent, may_add)
    hashed = np.int64(table.seed)
    for place in range(len(source)):
        hashed = _hash_on(hashed, source[place])
    return _look_up(table, room.cursor, source, 0, len(source), hashed, parent, kind, may_add)


@kernel
def place_paths(table, count):
    """Fill the slots of a table that has grown."""
    table = _thawed_table(table)
    mask = len(table.slots) - 1
    for path in range(1, count):
        if table.kind[path] != TEXT:
            hashed = np.int64(table.seed)
            for place in range(table.name_at[path], table.name_at[path + 1]):
                hashed = _hash_on(hashed, table.names[place])
            slot = _mixed(hashed, np.int64(table.parent[path]), np.int64(table.kind[path])) & mask
            while table.slots[slot] != 0:
                slot = (slot + 1) & mask
            table.slots[slot] = path


@kernel
def survey(data, offsets, max_bytes, status, is_ascii):
    """Mark documents that are too long or have control characters as UNSURE, and note which are ASCII.

    Returns an upper bound on the number of nodes, or -1 if the offsets are wrong, and the HAS_ bits of all documents.
    """
    if offsets[0] < 0 or offsets[-1] > len(data):
        return np.int64(-1), 0
    most, everything = np.int64(len(offsets)), 0
    for document in range(len(offsets) - 1):
        at, stop = offsets[document], offsets[document + 1]
        if stop < at:
            return np.int64(-1), 0
        bits = 0
        while at + WIDTH <= stop:
            some = tally(data, at)
            most += 2 * (some & 255) + (some >> 8 & 255)
            bits |= some
            at += WIDTH
        while at < stop:
            byte = data[at]
            if byte == _LT:
                most += 2
            elif byte == _EQUALS:
                most += 1
            elif byte == 13:
                bits |= HAS_RETURN
            elif byte >= 128:
                bits |= HAS_HIGH
            elif byte < 32 and byte not in (9, 10):
                bits |= HAS_CONTROL
            at += 1
        is_odd = bits & HAS_CONTROL or stop - offsets[document] > max_bytes
        status[document] = UNSURE if is_odd else DONE
        is_ascii[document] = bits & HAS_HIGH == 0
        everything |= bits
    return most, everything & (HAS_RETURN | HAS_HIGH | HAS_CONTROL)


@kernel
def end_lines(data, offsets, to, to_offsets):
    """Copy documents with LF for each CR LF and each CR, as XML asks for."""
    at = 0
    to_offsets[0] = 0
    for document in range(len(offsets) - 1):
        stop = offsets[document + 1]
        for place in range(offsets[document], stop):
            byte = data[place]
            if byte != 13:
                to[at] = byte
                at += 1
            elif place + 1 == stop or data[place + 1] != 10:
                to[at] = 10
                at += 1
        to_offsets[document + 1] = at


@inlined
def _encoded(code, text, to):
    """Write a character in UTF-8. Returns where it ends."""
    if code < 0x80:
        text[to] = code
        to += 1
    elif code < 0x800:
        text[to] = 0xC0 | code >> 6
        text[to + 1] = 0x80 | code & 63
        to += 2
    elif code < 0x10000:
        text[to] = 0xE0 | code >> 12
        text[to + 1] = 0x80 | code >> 6 & 63
        text[to + 2] = 0x80 | code & 63
        to += 3
    else:
        text[to] = 0xF0 | code >> 18
        text[to + 1] = 0x80 | code >> 12 & 63
        text[to + 2] = 0x80 | code >> 6 & 63
        text[to + 3] = 0x80 | code & 63
        to += 4
    return to


@inlined
def _is_character(code):
    """Whether XML 1.0 has this character."""
    return code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF


@kernel
def _reference(data, at, stop, text, to):
    """Write the character that an `&` refers to. Returns where the reference ends, or -1, and where the text ends."""
    at += 1
    if at >= stop:
        return np.int64(-1), to
    if data[at] == _HASH:
        at += 1
        is_hexadecimal = at < stop and data[at] == 120
        if is_hexadecimal:
            at += 1
        code, digits = np.int64(0), 0
        while at < stop and digits <= 10:
            byte = np.int64(data[at])
            if 48 <= byte <= 57:
                digit = byte - 48
            elif is_hexadecimal and 97 <= (byte | 32) <= 102:
                digit = (byte | 32) - 87
            else:
                break
            code = code * 16 + digit if is_hexadecimal else code * 10 + digit
            digits += 1
            at += 1
        is_sound = 0 < digits <= 10 and at < stop and data[at] == _SEMICOLON and _is_character(code)
        return (at + 1, _encoded(code, text, to)) if is_sound else (np.int64(-1), to)
    byte = 0
    if _is_at(data, at, stop, _AMP_WORD):
        at, byte = at + 4, _AMP
    elif _is_at(data, at, stop, _LT_WORD):
        at, byte = at + 3, _LT
    elif _is_at(data, at, stop, _GT_WORD):
        at, byte = at + 3, _GT
    elif _is_at(data, at, stop, _QUOTE_WORD):
        at, byte = at + 5, _QUOTE
    elif _is_at(data, at, stop, _APOSTROPHE_WORD):
        at, byte = at + 5, _APOSTROPHE
    else:
        return np.int64(-1), to
    text[to] = byte
    return at, to + 1


@inner
def _after_declaration(data, at, stop):
    """Where an XML declaration ends whose `<?xml` ends here, or -1: version 1.0, in UTF-8."""
    stage = 0
    while True:
        start = at
        while at < stop and _SPACE[data[at]]:
            at += 1
        if at + 1 < stop and data[at] == _QUERY:
            return at + 2 if data[at + 1] == _GT and stage > 0 else np.int64(-1)
        if at == start:
            return np.int64(-1)
        if stage == 0 and _is_at(data, at, stop, _VERSION):
            at, stage = at + 7, 1
        elif stage == 1 and _is_at(data, at, stop, _ENCODING):
            at, stage = at + 8, 2
        elif 0 < stage < 3 and _is_at(data, at, stop, _STANDALONE):
            at, stage = at + 10, 3
        else:
            return np.int64(-1)
        while at < stop and _SPACE[data[at]]:
            at += 1
        if at >= stop or data[at] != _EQUALS:
            return np.int64(-1)
        at += 1
        while at < stop and _SPACE[data[at]]:
            at += 1
        if at >= stop or (data[at] != _QUOTE and data[at] != _APOSTROPHE):
            return np.int64(-1)
        quote = data[at]
        at += 1
        if stage == 1 and _is_at(data, at, stop, _ONE):
            at += 3
        elif stage == 2 and _is_at_in_any_case(data, at, stop, _UTF_8):
            at += 5
        elif stage == 3 and _is_at(data, at, stop, _YES):
            at += 3
        elif stage == 3 and _is_at(data, at, stop, _NO):
            at += 2
        else:
            return np.int64(-1)
        if at >= stop or data[at] != quote:
            return np.int64(-1)
        at += 1


@inner
def _after_comment(data, at, stop):
    """Where a comment ends whose `<!` ends here, or -1."""
    if at + 1 >= stop or data[at] != _DASH or data[at + 1] != _DASH:
        return np.int64(-1)
    at += 2
    while True:
        while at < stop and not _IN_COMMENT[data[at]]:
            at += 1
        if at + 2 >= stop or data[at] != _DASH:
            return np.int64(-1)
        if data[at + 1] == _DASH:
            return at + 3 if data[at + 2] == _GT else np.int64(-1)
        at += 1


@inner
def _after_instruction(data, at, stop):
    """Where a processing instruction ends whose `<?` ends here, or -1."""
    start = at
    if at >= stop or _NAME[data[at]] != _START:
        return np.int64(-1)
    while at < stop and _NAME[data[at]] & _PART:
        at += 1
    is_xml = at == start + 3 and data[start] | 32 == 120 and data[start + 1] | 32 == 109 and data[start + 2] | 32 == 108
    if at >= stop or is_xml or not (_SPACE[data[at]] or data[at] == _QUERY):
        return np.int64(-1)
    is_bare = data[at] == _QUERY
    while True:
        while at < stop and not _IN_INSTRUCTION[data[at]]:
            at += 1
        if at + 1 >= stop or data[at] != _QUERY:
            return np.int64(-1)
        if data[at + 1] == _GT:
            return at + 2
        if is_bare:
            return np.int64(-1)
        at += 1


@inner
def _end_of_cdata(data, at, stop):
    """Where the `]]>` of a CDATA section stands, or -1."""
    while True:
        while at < stop and not _IN_CDATA[data[at]]:
            at += 1
        if at + 2 >= stop or data[at] != _BRACKET:
            return np.int64(-1)
        if data[at + 1] == _BRACKET and data[at + 2] == _GT:
            return at
        at += 1


@inner
def _normalised(data, at, stop, text, to):
    """Write the value of an attribute with references or white space to replace. Returns where it ends, or -1."""
    while at < stop:
        byte = data[at]
        if byte == _AMP:
            at, to = _reference(data, at, stop, text, to)
            if at < 0:
                return np.int64(-1)
        else:
            text[to] = 32 if byte in (9, 10) else byte
            to += 1
            at += 1
    return to


@inner
def _bind(room, data, text, bound, level, attribute, value, value_end):
    """Add the binding of a namespace declaration. Returns the number of bindings, or -1."""
    start, end = room.attribute[attribute], room.attribute_end[attribute]
    if bound >= len(room.prefix):
        return np.int64(-1)
    prefix, length = (start + 6, end - start - 6) if end - start > 5 else (start, np.int64(0))
    if length >= 3 and data[prefix] == 120 and data[prefix + 1] == 109 and data[prefix + 2] == 108:
        return np.int64(-1)
    if length > 0 and value == value_end:
        return np.int64(-1)
    if _is_at(text, value, value_end, _RESERVED) or _is_at(text, value, value_end, _ALSO_RESERVED):
        return np.int64(-1)
    other = bound - 1
    while other >= 0 and room.level[other] == level:
        if room.prefix_length[other] == length:
            same = np.int64(0)
            while same < length and data[room.prefix[other] + same] == data[prefix + same]:
                same += 1
            if same == length:
                return np.int64(-1)
        other -= 1
    room.prefix[bound], room.prefix_length[bound] = prefix, length
    room.uri[bound], room.uri_length[bound] = value, value_end - value
    room.level[bound] = level
    return bound + 1


@inlined
def _default_binding(room, bound):
    """The binding of names without a prefix, or -1."""
    binding = bound - 1
    while binding >= 0 and room.prefix_length[binding] != 0:
        binding -= 1
    return binding if binding >= 0 and room.uri_length[binding] > 0 else np.int64(-1)


@kernel
def _expanded(room, data, text, bound, start, end, colon):
    """Write an expanded name. Returns its length, or -1. Without a colon it is of the default namespace."""
    to = room.expanded
    if colon < 0:
        binding = _default_binding(room, bound)
    else:
        length = colon - start
        binding = bound - 1
        while binding >= 0:
            if room.prefix_length[binding] == length:
                same = np.int64(0)
                while same < length and data[room.prefix[binding] + same] == data[start + same]:
                    same += 1
                if same == length:
                    break
            binding -= 1
        is_xml = length == 3 and data[start] == 120 and data[start + 1] == 109 and data[start + 2] == 108
        if binding < 0 and not is_xml:
            return np.int64(-1)
        start = colon + 1
    size = room.uri_length[binding] if binding >= 0 else len(_XML_URI)
    if size + 2 + end - start > MAX_NAME:
        return np.int64(-1)
    to[0] = 123
    if binding >= 0:
        uri = room.uri[binding]
        for place in range(size):
            to[1 + place] = text[uri + place]
    else:
        for place in range(size):
            to[1 + place] = _XML_URI[place]
    to[1 + size] = 125
    for place in range(end - start):
        to[2 + size + place] = data[start + place]
    return size + 2 + end - start


@inner
def _expanded_path(table, room, data, text, bound, start, end, colon, parent, kind, may_add):
    """The tag path of a name in a namespace, as `_look_up` returns it; -3 if the prefix is not declared."""
    length = _expanded(room, data, text, bound, start, end, colon)
    if length < 0:
        return np.int64(-3)
    hashed = np.int64(table.seed)
    for place in range(length):
        hashed = _hash_on(hashed, room.expanded[place])
    return _look_up(table, room.cursor, room.expanded, np.int64(0), length, hashed, parent, kind, may_add)


@kernel
def _read_one(table, room, job, document, may_add, max_nodes, max_levels):
    """Read one document. The cursor moves on only if it is DONE."""
    data, text, cursor = job.data, job.text, room.cursor
    path, parent, begin, end = job.path, job.parent, job.begin, job.end
    at, stop = job.offsets[document], job.offsets[document + 1]
    front, back, node = cursor[FRONT], cursor[BACK], cursor[NODES]
    last = min(node + 1 + max_nodes, len(path))
    if node >= last:
        return UNSURE
    if at + 2 < stop and data[at] == 0xEF and data[at + 1] == 0xBB and data[at + 2] == 0xBF:
        at += 3
    if _is_at(data, at, stop, _OPENING) and at + 5 < stop and _SPACE[data[at + 5]]:
        at = _after_declaration(data, at + 5, stop)
        if at < 0:
            return UNSURE
    near = job.offsets[-1] - WIDTH  # up to here bytes may be read as vectors, those of the next document too
    root = node
    path[root], parent[root], begin[root] = 0, -1, front
    node += 1
    seed = np.int64(table.seed)
    level, bound, default = np.int64(0), np.int64(0), np.int64(-1)
    top, top_path, open_text = root, np.int64(0), np.int64(-1)
    sibling = np.int64(0)
    has_root = False
    while True:
        if level == 0:
            while at < stop and _SPACE[data[at]]:
                at += 1
            if at >= stop:
                break
            if data[at] != _LT:
                return UNSURE
        elif at < stop and data[at] != _LT:
            if open_text < 0:
                if node >= last:
                    return UNSURE
                child = _text_path(table, cursor, top_path, may_add)
                if child < 0:
                    return _failure(child)
                path[node], parent[node], begin[node] = child, top, front
                open_text = node
                node += 1
            while True:
                if at <= near:
                    plain = _before_markup(data, at)
                    copy_bytes(data, at, text, front)
                    at += plain
                    front += plain
                    if plain == WIDTH and at < stop:
                        continue
                else:
                    while at < stop and not _IN_TEXT[data[at]]:
                        text[front] = data[at]
                        front += 1
                        at += 1
                if at >= stop:
                    return UNSURE
                byte = data[at]
                if byte == _LT:
                    break
                if byte == _BRACKET:
                    if at + 2 < stop and data[at + 1] == _BRACKET and data[at + 2] == _GT:
                        return UNSURE
                    text[front] = byte
                    front += 1
                    at += 1
                elif byte == _AMP:
                    at, front = _reference(data, at, stop, text, front)
                    if at < 0:
                        return UNSURE
                else:
                    return UNSURE
            end[open_text] = front
        if at + 1 >= stop:
            return UNSURE
        byte = data[at + 1]
        if _NAME[byte] == _START:
            open_text = np.int64(-1)
            if level == 0:
                if has_root:
                    return UNSURE
                has_root = True
            start = at + 1
            colon, tag_path, hashed = np.int64(-1), np.int64(-1), seed
            guess = np.int64(table.following[sibling]) if sibling > 0 else np.int64(table.opening[top_path])
            if 0 < guess < cursor[PATHS] and start < near and table.parent[guess] == top_path:
                name = table.name_at[guess]
                length = table.name_at[guess + 1] - name
                if (
                    length <= WIDTH
                    and same_bytes(data, start, table.names, name) >= length
                    and _ENDS_NAME[data[start + length]]
                ):
                    tag_path = guess
                    at = start + length
            if tag_path < 0:
                at = start
                while at < stop:
                    byte = data[at]
                    kind = _NAME[byte]
                    if kind == 0:
                        break
                    if kind == _COLON_CLASS:
                        if colon >= 0 or at + 1 >= stop or _NAME[data[at + 1]] != _START:
                            return UNSURE
                        colon = at
                    hashed = _hash_on(hashed, byte)
                    at += 1
            length = at - start
            if at >= stop or length > MAX_NAME or level >= max_levels:
                return UNSURE
            attributes = 0
            is_empty = False
            if data[at] == _GT:
                at += 1
            else:
                while True:
                    space = at
                    while at < stop and _SPACE[data[at]]:
                        at += 1
                    if at + 1 >= stop:
                        return UNSURE
                    byte = data[at]
                    if byte == _GT:
                        at += 1
                        break
                    if byte == _SLASH:
                        if data[at + 1] != _GT:
                            return UNSURE
                        at += 2
                        is_empty = True
                        break
                    if at == space or _NAME[byte] != _START or attributes >= MOST_ATTRIBUTES:
                        return UNSURE
                    name_at, name_colon, name_hash = at, np.int64(-1), seed
                    while at < stop:
                        byte = data[at]
                        kind = _NAME[byte]
                        if kind == 0:
                            break
                        if kind == _COLON_CLASS:
                            if name_colon >= 0 or at + 1 >= stop or _NAME[data[at + 1]] != _START:
                                return UNSURE
                            name_colon = at
                        name_hash = _hash_on(name_hash, byte)
                        at += 1
                    name_end = at
                    if name_end - name_at > MAX_NAME:
                        return UNSURE
                    while at < stop and _SPACE[data[at]]:
                        at += 1
                    if at >= stop or data[at] != _EQUALS:
                        return UNSURE
                    at += 1
                    while at < stop and _SPACE[data[at]]:
                        at += 1
                    if at >= stop or (data[at] != _QUOTE and data[at] != _APOSTROPHE):
                        return UNSURE
                    quote = data[at]
                    at += 1
                    raw = at
                    is_plain = True
                    while True:
                        if at <= near:
                            plain = _before_odd(data, at)
                            at += plain
                            if plain == WIDTH and at < stop:
                                continue
                        else:
                            while at < stop and not _IN_VALUE[data[at]]:
                                at += 1
                        if at >= stop:
                            return UNSURE
                        byte = data[at]
                        if byte == quote:
                            break
                        if byte in (_AMP, 9, 10):
                            is_plain = False
                        elif byte not in (_QUOTE, _APOSTROPHE):
                            return UNSURE
                        at += 1
                    back -= at - raw
                    value_end = back + at - raw
                    if is_plain:
                        for place in range(at - raw):
                            text[back + place] = data[raw + place]
                    else:
                        value_end = _normalised(data, raw, at, text, back)
                        if value_end < 0:
                            return UNSURE
                    at += 1
                    room.attribute[attributes], room.attribute_end[attributes] = name_at, name_end
                    if _is_at(data, name_at, name_end, _XMLNS) and (
                        name_end == name_at + 5 or name_colon == name_at + 5
                    ):
                        bound = _bind(room, data, text, bound, level + 1, attributes, back, value_end)
                        if bound < 0:
                            return UNSURE
                        default = _default_binding(room, bound)
                    else:
                        room.colon[attributes], room.hashed[attributes] = name_colon, name_hash
                        room.value[attributes], room.value_end[attributes] = back, value_end
                        attributes += 1
            if node + 1 + attributes > last:
                return UNSURE
            if colon < 0 and default < 0:
                if tag_path < 0:
                    tag_path = _look_up(table, cursor, data, start, length, hashed, top_path, ELEMENT, may_add)
            else:
                tag_path = _expanded_path(
                    table, room, data, text, bound, start, start + length, colon, top_path, ELEMENT, may_add
                )
            if tag_path < 0:
                return _failure(tag_path)
            if guess != tag_path:
                if sibling > 0:
                    table.following[sibling] = tag_path
                else:
                    table.opening[top_path] = tag_path
            element = node
            path[element], parent[element], begin[element] = tag_path, top, front
            node += 1
            for place in range(attributes):
                name_at, name_end = room.attribute[place], room.attribute_end[place]
                name_colon, name_hash = room.colon[place], room.hashed[place]
                if name_colon < 0:
                    child = _look_up(
                        table, cursor, data, name_at, name_end - name_at, name_hash, tag_path, ATTRIBUTE, may_add
                    )
                else:
                    child = _expanded_path(
                        table, room, data, text, bound, name_at, name_end, name_colon, tag_path, ATTRIBUTE, may_add
                    )
                if child < 0:
                    return _failure(child)
                for other in range(element + 1, node):
                    if path[other] == child:
                        return UNSURE
                path[node], parent[node] = child, element
                begin[node], end[node] = room.value[place], room.value_end[place]
                node += 1
            if is_empty:
                end[element] = front
                sibling = tag_path
                if bound > 0 and room.level[bound - 1] > level:
                    while bound > 0 and room.level[bound - 1] > level:
                        bound -= 1
                    default = _default_binding(room, bound)
            else:
                level += 1
                room.node[level], room.name[level], room.length[level] = element, start, length
                top, top_path, sibling = element, tag_path, np.int64(0)
        elif byte == _SLASH:
            if level == 0:
                return UNSURE
            open_text = np.int64(-1)
            start, length = room.name[level], room.length[level]
            at += 2
            if at + length >= stop:
                return UNSURE
            if length <= WIDTH and at <= near:
                if same_bytes(data, at, data, start) < length:
                    return UNSURE
            else:
                for place in range(length):
                    if data[at + place] != data[start + place]:
                        return UNSURE
            at += length
            if data[at] != _GT:
                while at < stop and _SPACE[data[at]]:
                    at += 1
                if at >= stop or data[at] != _GT:
                    return UNSURE
            at += 1
            end[top] = front
            sibling = top_path
            level -= 1
            if bound > 0 and room.level[bound - 1] > level:
                while bound > 0 and room.level[bound - 1] > level:
                    bound -= 1
                default = _default_binding(room, bound)
            top = np.int64(room.node[level]) if level > 0 else root
            top_path = np.int64(path[top])
        elif byte == _BANG:
            if _is_at(data, at, stop, _CDATA):
                if level == 0:
                    return UNSURE
                start = at + 9
                at = _end_of_cdata(data, start, stop)
                if at < 0:
                    return UNSURE
                if at > start:
                    if open_text < 0:
                        if node >= last:
                            return UNSURE
                        child = _text_path(table, cursor, top_path, may_add)
                        if child < 0:
                            return _failure(child)
                        path[node], parent[node], begin[node] = child, top, front
                        open_text = node
                        node += 1
                    for place in range(at - start):
                        text[front + place] = data[start + place]
                    front += at - start
                    end[open_text] = front
                at += 3
            else:
                open_text = np.int64(-1)
                at = _after_comment(data, at + 2, stop)
                if at < 0:
                    return UNSURE
        elif byte == _QUERY:
            open_text = np.int64(-1)
            at = _after_instruction(data, at + 2, stop)
            if at < 0:
                return UNSURE
        else:
            return UNSURE
    if not has_root:
        return UNSURE
    end[root] = front
    cursor[NODES], cursor[FRONT], cursor[BACK] = node, front, back
    return DONE


@kernel
def read(table, room, job, stop, may_add, max_nodes, max_levels):
    """Read documents from the cursor on, and leave the cursor at `stop`, or at a document with a tag path that is
    unknown or finds no room. Returns DONE, UNKNOWN or FULL."""
    table, room, job = _thawed_table(table), _thawed_room(room), _thawed_job(job)
    document = room.cursor[DOCUMENT]
    answer = DONE
    while document < stop:
        job.first[document] = room.cursor[NODES]
        if job.status[document] == DONE:
            status = _read_one(table, room, job, document, may_add, max_nodes, max_levels)
            if status >= UNKNOWN:
                answer = status
                break
            job.status[document] = status
        if job.status[document] != DONE:
            room.cursor[UNREAD] += 1
        document += 1
    room.cursor[DOCUMENT] = document
    if document == len(job.status):
        job.first[document] = room.cursor[NODES]
    return answer


@kernel
def close_gap(begin, end, front, gap):
    """Move the values that lie behind a gap in the text, which is removed."""
    for node in range(len(begin)):
        if begin[node] >= front + gap:
            begin[node] -= gap
            end[node] -= gap


@kernel
def read_numbers(path, begin, end, text, wanted, values):
    """Write number(string-value) of nodes whose tag path is wanted, and NaN for the others.

    Returns the number of nodes with more digits than are exact here; their values are infinite.
    """
    left = 0
    for node in range(len(path)):
        values[node] = np.nan
        if not wanted[path[node]]:
            continue
        at, stop = begin[node], end[node]
        while at < stop and (text[at] == 32 or 9 <= text[at] <= 10 or text[at] == 13):
            at += 1
        is_negative = at < stop and text[at] == _DASH
        if is_negative:
            at += 1
        mantissa, digits, all_digits, decimals, points = np.int64(0), 0, 0, 0, 0
        while at < stop:
            byte = np.int64(text[at])
            if 48 <= byte <= 57:
                all_digits += 1
                decimals += points
                if digits > 0 or byte > 48:
                    digits += 1
                if digits <= MOST_DIGITS:
                    mantissa = mantissa * 10 + byte - 48
            elif byte == 46 and points == 0:
                points = 1
            else:
                break
            at += 1
        while at < stop and (text[at] == 32 or 9 <= text[at] <= 10 or text[at] == 13):
            at += 1
        if at < stop or all_digits == 0:
            continue
        if digits > MOST_DIGITS or decimals > MOST_DECIMALS:
            values[node] = np.inf
            left += 1
        else:
            value = mantissa / _POWERS[decimals]
            values[node] = -value if is_negative else value
    return left
