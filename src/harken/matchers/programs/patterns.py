"""Patterns as globs of bytes, and the table by which a kernel finds those that a text fits."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harken.kernels.text_patterns import ANY, CONTAINS, ENDS, GLOB, ONE, STARTS, Patterns, hash_grams, place_grams
from harken.language.ast import DEFAULT_ESCAPE, like_pieces

REGEX, XPATH = 4, 5
"""A pattern that is a regular expression or an XPath, which is decided elsewhere. Its glob is its text."""
_FILTER_BITS_EACH = 16
"""Bits of the filter for every gram: one place of a text in so many is looked at in vain."""
_LEAST_BITS = 12


@dataclass(frozen=True, slots=True)
class PatternTable:
    """Different patterns, each on a column of texts."""

    column: NDArray[np.int32]
    kind: NDArray[np.uint8]
    globs: NDArray[np.int16]
    """Bytes, and `ANY` and `ONE` for what is open."""
    glob_at: NDArray[np.int64]
    needle: NDArray[np.int32]
    """Where in its glob the longest run of bytes begins, and how long that is."""
    needle_length: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.column)

    def glob(self, place: int) -> NDArray[np.int16]:
        return self.globs[self.glob_at[place] : self.glob_at[place + 1]]

    def text(self, place: int) -> str:
        """The text of a regular expression or an XPath."""
        return self.glob(place).astype(np.uint8).tobytes().decode()

    def taken(self, places: NDArray[np.int64]) -> PatternTable:
        """Those at these places."""
        lengths = np.diff(self.glob_at)[places]
        at = np.zeros(len(places) + 1, np.int64)
        np.cumsum(lengths, out=at[1:])
        source = np.repeat(self.glob_at[places] - at[:-1], lengths) + np.arange(at[-1])
        needle, length = self.needle[places], self.needle_length[places]
        return PatternTable(self.column[places], self.kind[places], self.globs[source], at, needle, length)

    def on_columns(self, columns: NDArray[np.int32]) -> PatternTable:
        """The same with their columns renamed."""
        return replace(self, column=columns[self.column])

    def distinct(self) -> tuple[PatternTable, NDArray[np.int32]]:
        """Each pattern once, and the place of each that there was among them."""
        known: dict[tuple[int, int, bytes], int] = {}
        places = np.empty(len(self), np.int32)
        kept: list[int] = []
        data, at = self.globs.tobytes(), (2 * self.glob_at).tolist()
        kind = np.where(self.kind >= REGEX, self.kind, 0).tolist()
        for place, column in enumerate(self.column.tolist()):
            key = column, kind[place], data[at[place] : at[place + 1]]
            found = known.setdefault(key, len(kept))
            if found == len(kept):
                kept.append(place)
            places[place] = found
        return (self if len(kept) == len(self) else self.taken(np.array(kept, np.int64))), places


def joined(tables: list[PatternTable]) -> PatternTable:
    """Patterns behind each other."""
    lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(each.glob_at) for each in tables)])
    return PatternTable(
        np.concatenate([each.column for each in tables]),
        np.concatenate([each.kind for each in tables]),
        np.concatenate([each.globs for each in tables]),
        np.cumsum(lengths),
        np.concatenate([each.needle for each in tables]),
        np.concatenate([each.needle_length for each in tables]),
    )


_PLAIN = re.compile(r"(%?)((?:[^%_\\]|\\.)*)(%?)", re.DOTALL)
"""A pattern, escaped by default, with `%` at its ends only."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PLAIN_KINDS = {("%", "%"): CONTAINS, ("", "%"): STARTS, ("%", ""): ENDS}


class GatheredPatterns:
    """Patterns as they come, each once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str, str], int] = {}
        self._column: list[int] = []
        self._kind: list[int] = []
        self._bodies: list[bytes] = []
        """What a pattern says between the `%` at its ends, if it has such; of others, nothing."""
        self._globs: dict[int, list[int]] = {}
        """The patterns that are more than a body, by place."""

    def like(self, column: int, pattern: str, escape: str) -> int:
        """The place of a pattern of LIKE."""
        key = column, escape, pattern
        found = self._known.get(key)
        if found is None:
            plain = _PLAIN.fullmatch(pattern) if escape == DEFAULT_ESCAPE else None
            kind = None if plain is None else _PLAIN_KINDS.get((plain[1], plain[3]))
            body = "" if plain is None else plain[2]
            if kind is None or not body:
                found = self._add(column, GLOB, b"")
                self._globs[found] = _glob_of(pattern, escape)
            else:
                found = self._add(column, kind, (_ESCAPED.sub(_escaped, body) if "\\" in body else body).encode())
            self._known[key] = found
        return found

    def prefix(self, column: int, text: str) -> int:
        """The place of the pattern of texts that begin so."""
        key = column, "", text
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._add(column, STARTS, text.encode())
        return found

    def regex(self, column: int, pattern: str) -> int:
        """The place of a regular expression."""
        key = column, "regex", pattern
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._add(column, REGEX, pattern.encode())
        return found

    def xpath(self, column: int, text: str) -> int:
        """The place of an XPath."""
        key = column, "xpath", text
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._add(column, XPATH, text.encode())
        return found

    def table(self) -> PatternTable:
        """All of them."""
        kind = np.array(self._kind, np.uint8)
        begins_open, ends_open = np.isin(kind, (CONTAINS, ENDS)), np.isin(kind, (CONTAINS, STARTS))
        body = np.array([*map(len, self._bodies)], np.int64)
        length = body + begins_open + ends_open
        for place, glob in self._globs.items():
            length[place] = len(glob)
        at = np.zeros(len(kind) + 1, np.int64)
        np.cumsum(length, out=at[1:])
        globs = np.full(at[-1], ANY, np.int16)
        target = np.repeat(at[:-1] + begins_open - np.cumsum(body) + body, body) + np.arange(body.sum())
        globs[target] = np.frombuffer(b"".join(self._bodies), np.uint8)
        needle, needle_length = begins_open.astype(np.int32), np.where(kind >= REGEX, 0, body).astype(np.int32)
        for place, glob in self._globs.items():
            globs[at[place] : at[place + 1]] = glob
            needle[place], needle_length[place] = _longest_run(glob)
        return PatternTable(np.array(self._column, np.int32), kind, globs, at, needle, needle_length)

    def _add(self, column: int, kind: int, body: bytes) -> int:
        self._column.append(column)
        self._kind.append(kind)
        self._bodies.append(body)
        return len(self._kind) - 1


def _escaped(found: re.Match[str]) -> str:
    return found[1]


def _glob_of(pattern: str, escape: str) -> list[int]:
    glob: list[int] = []
    for piece in like_pieces(pattern, escape):
        if piece is not None:
            glob += piece.encode() or (ONE,)
        elif not glob or glob[-1] != ANY:  # several % in a row say no more than one
            glob.append(ANY)
    return glob


def _longest_run(glob: list[int]) -> tuple[int, int]:
    """Where the longest run of bytes begins, and how long it is."""
    found, length, start = 0, 0, 0
    for place, each in enumerate([*glob, ANY]):
        if each >= ANY:
            if place - start > length:
                found, length = start, place - start
            start = place + 1
    return found, length


def search_table(table: PatternTable, columns: int) -> Patterns:
    """What finds the patterns, those that are not decided elsewhere, in texts of so many columns."""
    is_glob = table.kind < REGEX
    length = np.where(is_glob, table.needle_length, 0).astype(np.int64)
    needle_at = np.zeros(len(table) + 1, np.int64)
    np.cumsum(length, out=needle_at[1:])
    source = np.repeat(table.glob_at[:-1] + table.needle - needle_at[:-1], length) + np.arange(needle_at[-1])
    needles = table.globs[source].astype(np.uint8)
    anchor, size = np.zeros(len(table), np.int32), np.zeros(len(table), np.uint8)
    gram, hashes = np.zeros(len(table), np.uint32), np.zeros(len(table), np.uint32)
    bits = max(_LEAST_BITS, (len(table) * _FILTER_BITS_EACH - 1).bit_length() if len(table) else 0)
    use = np.zeros(1 << bits, np.int32)
    place_grams(needles, needle_at, table.column, use, anchor, size, gram)
    hash_grams(table.column, size, gram, hashes)
    hashes &= np.uint32((1 << bits) - 1)
    found = np.flatnonzero(size)
    present = np.zeros(1 << bits - 6, np.uint64)
    own = hashes[found]
    np.bitwise_or.at(present, own >> np.uint32(6), np.uint64(1) << (own & np.uint32(63)).astype(np.uint64))
    bucket_bits = bits - 4
    bucket = (hashes[found] >> np.uint32(bits - bucket_bits)).astype(np.int64)
    order = np.argsort(bucket, kind="stable")
    bucket_at = np.zeros((1 << bucket_bits) + 1, np.int64)
    np.cumsum(np.bincount(bucket, minlength=1 << bucket_bits), out=bucket_at[1:])
    sizes = np.zeros(columns, np.uint8)
    np.bitwise_or.at(sizes, table.column[found], np.uint8(1) << (size[found] - 1))
    without = np.flatnonzero(is_glob & (size == 0))
    loose = without[np.argsort(table.column[without], kind="stable")].astype(np.int32)
    loose_at = np.searchsorted(table.column[loose], np.arange(columns + 1)).astype(np.int64)
    return Patterns(
        kind=table.kind,
        column=table.column,
        needles=needles,
        needle_at=needle_at,
        anchor=anchor,
        size=size,
        gram=gram,
        globs=table.globs,
        glob_at=table.glob_at,
        filter=present,
        filter_bits=bits,
        bucket_at=bucket_at,
        buckets=found[order].astype(np.int32),
        bucket_bits=bucket_bits,
        sizes=sizes,
        loose_at=loose_at,
        loose=loose,
    )
