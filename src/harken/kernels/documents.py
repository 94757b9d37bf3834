"""XPath subscriptions over XML documents: found through a rare value, decided by a program over lists of nodes.

After Tian et al., SIGMOD 2004. Their *linear paths* lead from the root to what a predicate tests; *tag paths* are those
of a document's nodes. Which linear path fits which tag path (their PathMatch table) is kept in a memo that is filled as
pairs are met, so that neither a new subscription nor a new tag path costs anything by itself.

A subscription is a *program*: a run of instructions over a stack of lists of nodes. A leaf pushes the nodes that are
reached by a linear path and pass a test. UP replaces nodes by their parents, RISE by all ancestors that another linear
path reaches; AND, OR and BUT intersect, unite and subtract two lists. That is the branch check (their BrPred) as a join
on nodes from the leaves up: a tuple of all branches is never made. A required list without nodes ends the program.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import IS_PLAIN, inlined, inner, kernel
from harken.kernels.frozen import Grid, thawing
from harken.kernels.vector import prefetch_read

# Instructions: the lowest four bits of a word. The fifth requires that the list is not empty; above them is a
# linear path or a count. Leaves with a test have a second word: a value, or the place of a number.
REACHED, EQUALS, DIFFERS, IS_NUMBER, IS_NOT_NUMBER, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = 0, 1, 2, 3, 4, 5, 6, 7, 8
UP, RISE, AND, OR, BUT, ROOT = 9, 10, 11, 12, 13, 14
REQUIRED = 16
SHIFT = 5
LAST_LEAF = GREATER_EQUAL

ELEMENT, ATTRIBUTE, TEXT = 1, 2, 3
"""Kinds of nodes; 0 is the root."""
ANY = 0
"""The name of a step that takes any name."""
FIRST_KEY = 4
"""A key is the end of a path: 0 the root, 1 to 3 any element, attribute and text, from here on a kind and a name. The
key of a text has the name of its element."""
HAS_STRINGS, HAS_NUMBERS, IS_LISTED, IS_COMPARED = 1, 2, 4, 8
"""What programs need of a key: equal strings, equal numbers, its nodes one by one, and the numbers of these."""
_MOST_STAMPS = 1 << 30
NUMERIC = 1 << 30
"""Added to the key of a value that is a number, as the eight bytes of a float."""
_NO_VALUE = np.int32(-1)
_STAMP, _HEAD, HITS = 0, 1, 2
"""Columns of `DocumentRoom.values`: stamp, last node, number of documents that had the value."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Vocabulary(NamedTuple):
    """The linear paths of subscriptions, as a tree, and their constants by key, each once."""

    path_parent: NDArray[np.int32]
    path_descends: NDArray[np.uint8]
    """Whether the last step goes to any descendant, not only to a child."""
    path_kind: NDArray[np.uint8]
    path_name: NDArray[np.int32]
    path_key: NDArray[np.int32]
    key_asked: NDArray[np.uint8]
    key_longest: NDArray[np.int32]
    """By key: bytes of the longest constant at it."""
    slots: NDArray[np.int64]
    """A hash table of values: in the upper half of a word the hash, in the lower the place plus 1."""
    values: Grid[np.int64]
    """By value: its key and, in the lower half of that word, its length; and where its bytes begin."""
    texts: NDArray[np.uint8]
    numbers: NDArray[np.float64]


class TagMap(NamedTuple):
    """The tag paths of documents, by the names and keys of a vocabulary."""

    parent: NDArray[np.int32]
    kind: NDArray[np.uint8]
    name: NDArray[np.int32]
    key: NDArray[np.int32]
    asked: NDArray[np.uint8]
    """What programs need of its key and, in the upper four bits, of the key of any name."""
    memo: NDArray[np.uint64]
    """Pairs of a linear path and a tag path that were compared, with the lowest bit set if they fit."""


class Postings(NamedTuple):
    """Programs of subscriptions, and the tables by which documents find them."""

    base: int
    """The number of programs in the indexes before this one."""
    alive: NDArray[np.bool_]
    starts: NDArray[np.int64]
    code: NDArray[np.uint32]
    slots: Grid[np.int32]
    """A hash table of values and, below zero, of keys, by which documents find programs: which it is, and where its
    programs begin and end. An empty slot ends at 0."""
    program: NDArray[np.int32]
    second: NDArray[np.int32]
    """Another value that the document has to have; -1 if there is none."""
    always: NDArray[np.int32]
    """Programs that every document runs."""


class DocumentRoom(NamedTuple):
    """Working arrays of one thread. An entry with the stamp of a document belongs to that document."""

    stamp: NDArray[np.int32]
    values: Grid[np.int32]
    """By value: the stamp, the last node with it, and the number of documents that had it."""
    key_stamp: NDArray[np.int32]
    key_head: NDArray[np.int32]
    key_hits: NDArray[np.int64]
    met_values: NDArray[np.int32]
    met_keys: NDArray[np.int32]


class NodeRoom(NamedTuple):
    """Working arrays of one thread, as large as the largest document of a batch."""

    chain: Grid[np.int32]
    """The next node with the same key or value: for its own key and that of any name, each by key, string, number."""
    probes: Grid[np.int64]
    """Values to look up: the node and its chain, key and length as in `Vocabulary.values`, the hash, the place."""
    mark: NDArray[np.int32]
    stack: NDArray[np.int32]
    ends: NDArray[np.int64]
    """Where each list on the stack ends."""


class Nodes(NamedTuple):
    """The nodes of all documents of a batch."""

    first: NDArray[np.int64]
    path: NDArray[np.int32]
    parent: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    text: NDArray[np.uint8]
    number: NDArray[np.float64]


_vocabulary, _tags, _postings = thawing(Vocabulary), thawing(TagMap), thawing(Postings)
_room, _nodes, _space = thawing(DocumentRoom), thawing(Nodes), thawing(NodeRoom)


def _times_plain(left, right):
    """The lower 64 bits of a product, without a warning that there were more."""
    return np.uint64(int(left) * int(right) & 0xFFFFFFFFFFFFFFFF)


@inlined
def _times(left, right):
    return left * right


if IS_PLAIN:
    _times = _times_plain


@inlined
def _word(text, at):
    """Eight bytes. LLVM makes one load of them."""
    return (
        np.uint64(text[at])
        | np.uint64(text[at + 1]) << np.uint64(8)
        | np.uint64(text[at + 2]) << np.uint64(16)
        | np.uint64(text[at + 3]) << np.uint64(24)
        | np.uint64(text[at + 4]) << np.uint64(32)
        | np.uint64(text[at + 5]) << np.uint64(40)
        | np.uint64(text[at + 6]) << np.uint64(48)
        | np.uint64(text[at + 7]) << np.uint64(56)
    )


@inlined
def _same(left, at, right, other, length):
    step = 0
    while step + 8 <= length and _word(left, at + step) == _word(right, other + step):
        step += 8
    while step < length and left[at + step] == right[other + step]:
        step += 1
    return step == length


@inlined
def hash_bytes(text, begin, end, key):
    """32 bits of some bytes at a key."""
    mixed = _times(np.uint64(key), _MIX) ^ np.uint64(end - begin)
    at = begin
    while at + 8 <= end:
        word = _word(text, at)
        mixed = _times(mixed ^ word, _MIX)
        mixed ^= mixed >> np.uint64(29)
        at += 8
    word = np.uint64(0)
    while at < end:
        word = word << np.uint64(8) | np.uint64(text[at])
        at += 1
    mixed = _times(mixed ^ word, _MIX)
    mixed ^= mixed >> np.uint64(32)
    mixed = _times(mixed, _MIX)
    return np.uint32(mixed >> np.uint64(32))


@inlined
def _is_value(words, place, wanted, text, begin, length):
    """Whether the value at a place is these bytes at this key.

    The table of slots may lead to values that were added after the snapshot: these are beyond its other arrays.
    """
    is_value = False
    if place < len(words.values) and words.values[place, 0] == wanted:
        start = words.values[place, 1]
        is_value = start + length <= len(words.texts) and _same(words.texts, start, text, begin, length)
    return is_value


@inlined
def _find_value(words, text, begin, end, key):
    """The value that some bytes are at a key, or -1."""
    hashed = hash_bytes(text, begin, end, key)
    mask = np.int64(len(words.slots) - 1)
    slot = np.int64(hashed) & mask
    wanted = np.int64(key) << 32 | (end - begin)
    value = _NO_VALUE
    word = words.slots[slot]
    while word != 0:
        if word >> 32 & 0xFFFFFFFF == np.int64(hashed):
            place = (word & 0xFFFFFFFF) - 1
            if _is_value(words, place, wanted, text, begin, end - begin):
                value = np.int32(place)
                break
        slot = (slot + 1) & mask
        word = words.slots[slot]
    return value


@kernel
def intern_values(vocabulary, count, used, text, at, keys, values):
    """Enter values, each once, and write their places. Returns the number of values, and of bytes used.

    There has to be room for all: in the table at least as many empty slots as full ones.
    """
    words = vocabulary
    mask = np.int64(len(words.slots) - 1)
    for each in range(len(keys)):
        begin, end, key = at[each], at[each + 1], keys[each]
        place = _find_value(words, text, begin, end, key)
        if place < 0:
            hashed = hash_bytes(text, begin, end, key)
            place = np.int32(count)
            words.values[place, 0] = np.int64(key) << 32 | (end - begin)
            words.values[place, 1] = used
            for step in range(end - begin):
                words.texts[used + step] = text[begin + step]
            used += end - begin
            slot = np.int64(hashed) & mask
            while words.slots[slot] != 0:
                slot = (slot + 1) & mask
            words.slots[slot] = np.int64(hashed) << 32 | np.int64(place + 1)  # last: others may be looking
            count += 1
        values[each] = place
    return count, used


@kernel
def enter_values(slots, before):
    """Fill an empty table with the values of another."""
    mask = np.int64(len(slots) - 1)
    for place in range(len(before)):
        word = before[place]
        if word != 0:
            slot = (word >> 32) & mask
            while slots[slot] != 0:
                slot = (slot + 1) & mask
            slots[slot] = word


@inlined
def _fits_step(words, tags, path, tag):
    name = words.path_name[path]
    return words.path_kind[path] == tags.kind[tag] and (name == ANY or name == tags.name[tag])


@inlined
def _fits(words, tags, path, tag):
    """Whether a linear path fits a tag path: from the end up, with one retreat at a time, as globs are compared."""
    tried, from_tag = np.int32(-1), np.int32(0)
    result = 2
    while result == 2:
        if path == 0 and tag == 0:
            result = 1
        elif path != 0 and tag != 0 and _fits_step(words, tags, path, tag):
            above = tags.parent[tag]
            if words.path_descends[path]:
                tried, from_tag = words.path_parent[path], above
            path, tag = words.path_parent[path], above
        elif tried < 0 or from_tag == 0:
            result = 0
        else:
            from_tag = tags.parent[from_tag]
            path, tag = tried, from_tag
    return result == 1


@inlined
def _reaches(words, tags, path, tag):
    """`_fits`, memoised."""
    pair = np.uint64(path) << np.uint64(32) | np.uint64(tag) << np.uint64(1)
    slot = np.int64(_times(pair, _MIX) >> np.uint64(40)) & np.int64(len(tags.memo) - 1)
    remembered = tags.memo[slot]
    if remembered | np.uint64(1) == pair | np.uint64(1) and remembered != 0:
        fits = remembered & np.uint64(1) != 0
    else:
        fits = _fits(words, tags, path, tag)
        tags.memo[slot] = pair | np.uint64(fits)
    return fits


@inlined
def _passes(words, nodes, operation, operand, node):
    """Whether a node passes the test of a leaf, other than a test for a value that is looked up."""
    if operation == REACHED:
        passes = True
    elif operation == DIFFERS:
        begin, length = nodes.begin[node], nodes.end[node] - nodes.begin[node]
        wanted = words.values[operand, 0] & 0xFFFFFFFF
        passes = not (length == wanted and _same(words.texts, words.values[operand, 1], nodes.text, begin, length))
    else:
        number, other = nodes.number[node], words.numbers[operand]
        if operation == IS_NOT_NUMBER:
            passes = number != other
        elif operation == LESS:
            passes = number < other
        elif operation == LESS_EQUAL:
            passes = number <= other
        elif operation == GREATER:
            passes = number > other
        else:
            passes = number >= other
    return passes


@kernel
def _run(context, code, begin, end, first):
    """Whether a program accepts the document whose nodes begin at `first`. -1 if the stack is too small."""
    words, tags, nodes = _vocabulary(context[0]), _tags(context[1]), _nodes(context[2])
    room, space = _room(context[3]), _space(context[4])
    stamp, stack, mark, ends = room.stamp[0], space.stack, space.mark, space.ends
    lists, top = 0, np.int64(0)
    limit = len(stack)
    at = begin
    token = room.stamp[1]
    result = -2
    while at < end and result == -2:
        word = code[at]
        at += 1
        operation = np.int64(word & np.uint32(15))
        path = np.int32(word >> np.uint32(SHIFT))
        if operation <= LAST_LEAF:
            operand = np.int64(0)
            if operation != REACHED:
                operand = np.int64(code[at])
                at += 1
            by_value = operation in (EQUALS, IS_NUMBER)
            key = words.path_key[path]
            link = 3 if 0 < key < FIRST_KEY else 0
            head = np.int32(-1)
            if by_value:
                link += 1 if operation == EQUALS else 2
                if operand < len(room.values) and room.values[operand, _STAMP] == stamp:
                    head = room.values[operand, _HEAD]
            elif room.key_stamp[key] == stamp:
                head = room.key_head[key]
            # Most leaves are joined at once with the list below: then only nodes of that list are candidates.
            is_joined = False
            if lists > 0 and at + 1 < end:
                is_joined = code[at] & np.uint32(15) == UP and code[at + 1] & np.uint32(15) == AND
            if is_joined:
                climb = np.int64(code[at] >> np.uint32(SHIFT))
                word = code[at + 1]
                at += 2
                token += 2  # one for candidates, one for those that pass
                low = ends[lists - 2] if lists > 1 else np.int64(0)
                kept = low
                for place in range(low, top):
                    mark[stack[place]] = token - 1
                while head >= 0 and kept < top:
                    node, left = np.int64(head), climb
                    while left > 0 and node > 0:  # one that the path does not reach may be too near the root
                        node = np.int64(nodes.parent[first + node] - first)
                        left -= 1
                    if (
                        left == 0
                        and mark[node] == token - 1
                        and _reaches(words, tags, path, nodes.path[first + head])
                        and (by_value or _passes(words, nodes, operation, operand, first + head))
                    ):
                        mark[node] = token
                        kept += 1
                    head = space.chain[link, head]
                kept = low
                for place in range(low, top):
                    node = np.int64(stack[place])
                    if mark[node] == token:
                        stack[kept] = node
                        kept += 1
                top = kept
                ends[lists - 1] = top
            else:
                while head >= 0:
                    node = first + head
                    if _reaches(words, tags, path, nodes.path[node]) and (
                        by_value or _passes(words, nodes, operation, operand, node)
                    ):
                        if top == limit:
                            result = -1
                            break
                        stack[top] = head
                        top += 1
                    head = space.chain[link, head]
                ends[lists] = top
                lists += 1
        elif operation == UP:
            token += 1
            low = ends[lists - 2] if lists > 1 else np.int64(0)
            kept = low
            for place in range(low, top):
                node = stack[place]
                for _ in range(path):
                    node = np.int32(nodes.parent[first + node] - first)
                if mark[node] != token:
                    mark[node] = token
                    stack[kept] = node
                    kept += 1
            top = kept
            ends[lists - 1] = top
        elif operation == RISE:
            token += 1
            low = ends[lists - 2] if lists > 1 else np.int64(0)
            count = top - low
            # The ancestors are gathered behind the list, and then moved to its place.
            for place in range(low, low + count):
                node = nodes.parent[first + stack[place]]
                while node >= 0 and mark[node - first] != token:
                    mark[node - first] = token
                    if _reaches(words, tags, path, nodes.path[node]):
                        if top == limit:
                            result = -1
                            break
                        stack[top] = np.int32(node - first)
                        top += 1
                    node = nodes.parent[node]
            for place in range(low + count, top):
                stack[place - count] = stack[place]
            top -= count
            ends[lists - 1] = top
        elif operation == ROOT:
            low = ends[lists - 2] if lists > 1 else np.int64(0)
            if top > low:
                stack[low] = 0
                top = low + 1
            ends[lists - 1] = top
        else:
            token += 1
            middle = ends[lists - 2]
            low = ends[lists - 3] if lists > 2 else np.int64(0)
            kept = low
            if operation == OR:
                for place in range(low, top):
                    node = stack[place]
                    if mark[node] != token:
                        mark[node] = token
                        stack[kept] = node
                        kept += 1
            else:
                for place in range(middle, top):
                    mark[stack[place]] = token
                is_wanted = operation == AND
                for place in range(low, middle):
                    node = stack[place]
                    if (mark[node] == token) == is_wanted:
                        stack[kept] = node
                        kept += 1
            top = kept
            lists -= 1
            ends[lists - 1] = top
        if word & np.uint32(REQUIRED) and result == -2 and top == (ends[lists - 2] if lists > 1 else 0):
            result = 0
    room.stamp[1] = token
    if result == -2:
        result = 1 if top > 0 else 0
    return result


@inlined
def _note_value(room, space, met, value, link, node):
    """Put a node into the chain of its value."""
    if room.values[value, _STAMP] != room.stamp[0]:
        room.values[value, _STAMP] = room.stamp[0]
        room.values[value, HITS] += 1
        space.chain[link, node] = -1
        room.met_values[met] = value
        met += 1
    else:
        space.chain[link, node] = room.values[value, _HEAD]
    room.values[value, _HEAD] = node
    return met


@inlined
def _note_key(room, space, met, key, link, node):
    """Put a node into the chain of its key."""
    if room.key_stamp[key] != room.stamp[0]:
        room.key_stamp[key] = room.stamp[0]
        room.key_hits[key] += 1
        space.chain[link, node] = -1
        room.met_keys[met] = key
        met += 1
    else:
        space.chain[link, node] = room.key_head[key]
    room.key_head[key] = node
    return met


@inlined
def _look_up(words, nodes, room, space, count, first):
    """Chain nodes by the values in `space.probes`. Returns the number of known values that the document has.

    The tables are larger than the caches, so each step prefetches for all probes what the next step reads.
    """
    mask = np.int64(len(words.slots) - 1)
    for probe in range(count):
        hashed = space.probes[probe, 2]
        slot = hashed & mask
        word = words.slots[slot]
        while word != 0 and word >> 32 & 0xFFFFFFFF != hashed:
            slot = (slot + 1) & mask
            word = words.slots[slot]
        place = (word & 0xFFFFFFFF) - 1
        if place >= len(room.values) or place >= len(words.values):
            place = np.int64(-1)
        space.probes[probe, 3] = place
        if place >= 0:
            prefetch_read(words.values, 2 * place)
            prefetch_read(room.values, 4 * place)
    for probe in range(count):
        place = space.probes[probe, 3]
        if place >= 0:
            prefetch_read(words.texts, words.values[place, 1])
    met = 0
    for probe in range(count):
        place = space.probes[probe, 3]
        if place < 0:
            continue
        node, link, wanted = space.probes[probe, 0] >> 3, space.probes[probe, 0] & 7, space.probes[probe, 1]
        begin, end = nodes.begin[first + node], nodes.end[first + node]
        value = np.int32(place)
        if not _is_value(words, place, wanted, nodes.text, begin, end - begin):
            value = _find_value(words, nodes.text, begin, end, np.int32(wanted >> 32))  # another of the same hash
        if value >= 0 and value < len(room.values):
            met = _note_value(room, space, met, value, link, np.int32(node))
    return met


@inner
def _read_nodes(context, first, last):
    """Chain the nodes of a document by their keys and values. Returns how many needed values and keys it has."""
    words, tags, nodes = _vocabulary(context[0]), _tags(context[1]), _nodes(context[2])
    room, space = _room(context[3]), _space(context[4])
    values = len(room.values)
    float_bytes = np.empty(1, np.float64)
    as_bytes = float_bytes.view(np.uint8)
    mask = np.int64(len(words.slots) - 1)
    count, met_keys, has_numbers = 0, 0, False
    for node in range(first, last):
        tag = nodes.path[node]
        both = np.int64(tags.asked[tag])
        if both == 0:
            continue
        begin, length = nodes.begin[node], nodes.end[node] - nodes.begin[node]
        place = np.int32(node - first)
        for turn in range(2):
            needs = both >> 4 if turn else both & 15
            key = np.int32(tags.kind[tag]) if turn else tags.key[tag]
            # Keys that were added after the snapshot are of no use to its programs.
            if needs == 0 or key >= len(room.key_stamp) or key >= len(words.key_longest):
                continue
            if needs & IS_LISTED:
                met_keys = _note_key(room, space, met_keys, key, 3 * turn, place)
            if needs & HAS_STRINGS and length <= words.key_longest[key]:
                hashed = np.int64(hash_bytes(nodes.text, begin, begin + length, key))
                prefetch_read(words.slots, hashed & mask)
                space.probes[count, 0] = np.int64(place) << 3 | (3 * turn + 1)
                space.probes[count, 1] = np.int64(key) << 32 | length
                space.probes[count, 2] = hashed
                count += 1
            has_numbers = has_numbers or needs & HAS_NUMBERS != 0
    met = _look_up(words, nodes, room, space, count, first)
    if has_numbers:
        for node in range(first, last):
            tag = nodes.path[node]
            for turn in range(2):
                needs = np.int64(tags.asked[tag]) >> 4 if turn else np.int64(tags.asked[tag]) & 15
                key = np.int32(tags.kind[tag]) if turn else tags.key[tag]
                is_known = key < len(room.key_stamp) and key < len(words.key_longest)
                if needs & HAS_NUMBERS and is_known and nodes.number[node] == nodes.number[node]:
                    float_bytes[0] = nodes.number[node] + 0.0  # of -0.0 it makes 0.0
                    value = _find_value(words, as_bytes, 0, 8, np.int32(key | NUMERIC))
                    if value >= 0 and value < values:
                        met = _note_value(room, space, met, value, 3 * turn + 2, np.int32(node - first))
    return met, met_keys


@inlined
def _first_slot(rows, key):
    return np.int64(_times(np.uint64(np.int64(key)), _MIX) >> np.uint64(32)) & np.int64(len(rows.slots) - 1)


@inlined
def _slot_of(rows, key):
    """The slot of a value, or of a key below zero; -1 if no program is listed under it."""
    mask = np.int64(len(rows.slots) - 1)
    slot = _first_slot(rows, key)
    match = np.int64(-1)
    while rows.slots[slot, 2] != 0:
        if rows.slots[slot, 0] == key:
            match = slot
            break
        slot = (slot + 1) & mask
    return match


@inlined
def _find_postings(rows, room, space, values, keys):
    """Write to `space.probes` where the postings of each value and key lie. Each step prefetches for the next."""
    for turn in range(values):
        prefetch_read(rows.slots, 4 * _first_slot(rows, room.met_values[turn]))
    for turn in range(values + keys):
        wanted = room.met_values[turn] if turn < values else np.int32(-1 - room.met_keys[turn - values])
        slot = _slot_of(rows, wanted)
        low, high = np.int64(0), np.int64(0)
        if slot >= 0:
            low, high = np.int64(rows.slots[slot, 1]), np.int64(rows.slots[slot, 2])
            prefetch_read(rows.second, low)
            prefetch_read(rows.program, low)
        space.probes[turn, 0], space.probes[turn, 1] = low, high
    for turn in range(values + keys):
        if space.probes[turn, 1] > space.probes[turn, 0]:
            second = np.int64(rows.second[space.probes[turn, 0]])
            if second >= 0:
                prefetch_read(room.values, 4 * second)


@inlined
def _forget_hits(room, values, keys):
    """Take back the counts of a document that is read again."""
    for each in range(values):
        room.values[room.met_values[each], HITS] -= 1
    for each in range(keys):
        room.key_hits[room.met_keys[each]] -= 1


@kernel
def match_documents(vocabulary, tag_map, indexes, batch, room_words, space_words, seen, begin_at, out, counts, ran):
    """Write the programs of several indexes that accept each document, from the one at `begin_at` on.

    Returns the document reached: if it is not the last one, `out` or the stack is full. `counts` are offsets, `ran`
    is the number of programs that a document ran. `seen` is by program: the stamp of the last document it accepted.
    """
    context = vocabulary, tag_map, batch, room_words, space_words
    nodes, room, space = _nodes(batch), _room(room_words), _space(space_words)
    written = counts[begin_at]
    document, is_full = begin_at, False
    while document < len(nodes.first) - 1 and not is_full:
        if room.stamp[0] > _MOST_STAMPS or room.stamp[1] > _MOST_STAMPS:
            room.stamp[:] = 0
            room.values[:, _STAMP], room.key_stamp[:], space.mark[:], seen[:] = 0, 0, 0, 0
        room.stamp[0] += 1
        first, last = nodes.first[document], nodes.first[document + 1]
        values, keys = _read_nodes(context, first, last)
        ran[document] = 0
        for each in range(len(indexes)):
            rows = _postings(indexes[each])
            _find_postings(rows, room, space, values, keys)
            for turn in range(values + keys + 1):
                low, high = np.int64(0), np.int64(len(rows.always))
                if turn < values + keys:
                    low, high = space.probes[turn, 0], space.probes[turn, 1]
                for place in range(low, high):
                    if turn == values + keys:
                        program = np.int64(rows.always[place])
                    else:
                        second = rows.second[place]
                        if second >= 0 and room.values[second, _STAMP] != room.stamp[0]:
                            continue
                        program = np.int64(rows.program[place])
                    if not rows.alive[program] or seen[rows.base + program] == room.stamp[0]:
                        continue
                    ran[document] += 1
                    begin, end = rows.starts[program], rows.starts[program + 1]
                    verdict = _run(context, rows.code, begin, end, first)
                    if verdict < 0 or (verdict == 1 and written == len(out)):
                        is_full = True
                        break
                    if verdict == 1:
                        seen[rows.base + program] = room.stamp[0]
                        out[written] = rows.base + program
                        written += 1
                if is_full:
                    break
            if is_full:
                break
        if is_full:
            _forget_hits(room, values, keys)
        else:
            document += 1
            counts[document] = written
    return document


@kernel
def cover_programs(starts, code, path_key, value_cost, key_cost, most, keys, owners, second, costs, room):
    """Write the values and keys by which each program is looked up: of AND the rarer side, of OR both.

    A program that nothing rare covers has the key `most`. `second` gets a further value that a program requires, if it
    is looked up by one value alone. `room` is space for keys on a stack. Returns the number of keys.
    """
    pairs = 0
    heads = np.empty(4096, np.int64)
    total = np.empty(4096, np.float64)
    for program in range(len(starts) - 1):
        at, end = starts[program], starts[program + 1]
        lists, top = 0, 0
        while at < end:
            word = code[at]
            at += 1
            operation = np.int64(word & np.uint32(15))
            if operation <= LAST_LEAF:
                path = np.int64(word >> np.uint32(SHIFT))
                key = path_key[path]
                cost, cover = 1.0, np.int64(most)
                if operation in (EQUALS, IS_NUMBER):
                    cover = np.int64(code[at])
                    cost = value_cost[cover]
                else:
                    cover = -1 - np.int64(key)
                    cost = key_cost[key]
                if operation != REACHED:
                    at += 1
                room[top] = cover
                heads[lists], total[lists] = top, cost
                top += 1
                lists += 1
            elif operation == OR:
                lists -= 1
                total[lists - 1] += total[lists]
            elif operation == AND:
                lists -= 1
                if total[lists] < total[lists - 1]:
                    low, middle = heads[lists - 1], heads[lists]
                    for place in range(middle, top):
                        room[low + place - middle] = room[place]
                    top = low + top - middle
                    total[lists - 1] = total[lists]
                else:
                    top = heads[lists]
            elif operation == BUT:
                lists -= 1
                top = heads[lists]
        low = heads[0]
        is_open = total[0] >= 1.0
        for place in range(low, top):
            is_open = is_open or room[place] == most
        costs[program] = min(total[0], 1.0)
        if is_open:
            keys[pairs], owners[pairs], second[pairs] = most, program, -1
            pairs += 1
            continue
        other = np.int64(-1)
        if top == low + 1:
            at, least = starts[program], 2.0
            while at < end:
                word = code[at]
                at += 1
                operation = np.int64(word & np.uint32(15))
                if operation > LAST_LEAF or operation == REACHED:
                    continue
                value = np.int64(code[at])
                at += 1
                is_value = operation in (EQUALS, IS_NUMBER)
                if is_value and word & np.uint32(REQUIRED) and value != room[low] and value_cost[value] < least:
                    other, least = value, value_cost[value]
        for place in range(low, top):
            keys[pairs], owners[pairs], second[pairs] = room[place], program, other
            pairs += 1
    return pairs


@kernel
def enter_keys(keys, ends, slots):
    """Fill an empty table with sorted keys, each with the places that it has."""
    mask = np.int64(len(slots) - 1)
    first = 0
    for place in range(len(keys)):
        slot = np.int64(_times(np.uint64(np.int64(keys[place])), _MIX) >> np.uint64(32)) & mask
        while slots[slot, 2] != 0:
            slot = (slot + 1) & mask
        slots[slot, 0], slots[slot, 1], slots[slot, 2] = keys[place], first, ends[place]
        first = ends[place]


@kernel
def copy_programs(starts, code, chosen, new_starts, new_code):
    """Write some of the programs behind each other."""
    end = np.int64(0)
    for place in range(len(chosen)):
        begin = starts[chosen[place]]
        length = starts[chosen[place] + 1] - begin
        new_starts[place] = end
        for step in range(length):
            new_code[end + step] = code[begin + step]
        end += length
    new_starts[len(chosen)] = end


@kernel
def operands(code, paths, values, numbers):
    """Mark the linear paths, values and numbers that programs name."""
    at = 0
    while at < len(code):
        word = code[at]
        at += 1
        operation = np.int64(word & np.uint32(15))
        if operation <= LAST_LEAF or operation == RISE:
            paths[np.int64(word >> np.uint32(SHIFT))] = True
        if operation == REACHED or operation > LAST_LEAF:
            continue
        if operation in (EQUALS, DIFFERS, IS_NUMBER):
            values[np.int64(code[at])] = True
        else:
            numbers[np.int64(code[at])] = True
        at += 1


@kernel
def count_values(code, uses):
    """Count how often programs look for each value."""
    at = 0
    while at < len(code):
        operation = np.int64(code[at] & np.uint32(15))
        at += 1
        if operation in (EQUALS, IS_NUMBER):
            uses[np.int64(code[at])] += 1
        if operation != REACHED and operation <= LAST_LEAF:
            at += 1


@kernel
def translate(code, paths, values, numbers):
    """Renumber the linear paths, values and numbers of programs, in place."""
    at = 0
    while at < len(code):
        word = code[at]
        operation = np.int64(word & np.uint32(15))
        if operation <= LAST_LEAF or operation == RISE:
            path = np.uint32(paths[np.int64(word >> np.uint32(SHIFT))])
            code[at] = word & np.uint32((1 << SHIFT) - 1) | path << np.uint32(SHIFT)
        at += 1
        if operation == REACHED or operation > LAST_LEAF:
            continue
        if operation in (EQUALS, DIFFERS, IS_NUMBER):
            code[at] = values[np.int64(code[at])]
        else:
            code[at] = numbers[np.int64(code[at])]
        at += 1
