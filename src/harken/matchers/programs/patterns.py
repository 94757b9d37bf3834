"""Patterns as globs of bytes, and the table by which a kernel finds the patterns that match a text."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harken.kernels.text_patterns import ANY, CONTAINS, ENDS, GLOB, ONE, STARTS, Patterns, hash_grams, place_grams
from harken.language.ast import DEFAULT_ESCAPE, like_pieces

REGEX, XPATH = 4, 5
"""Kinds of patterns that other modules decide: regular expressions and XPath. Their glob is their text."""
_FILTER_BITS_EACH = 16
"""Filter bits per gram. About one position of a text in this many is looked up in vain."""
_LEAST_BITS = 12


@dataclass(frozen=True, slots=True)
class PatternTable:
    """Distinct patterns, each on a text column."""

    column: NDArray[np.int32]
    kind: NDArray[np.uint8]
    globs: NDArray[np.int16]
    """The globs, concatenated: bytes, `ANY` for any characters and `ONE` for any one."""
    glob_at: NDArray[np.int64]
    needle: NDArray[np.int32]
    """The start of the needle in each glob."""
    needle_length: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.column)

    def glob(self, place: int) -> NDArray[np.int16]:
        return self.globs[self.glob_at[place] : self.glob_at[place + 1]]

    def text(self, place: int) -> str:
        """The text of a regular expression or an XPath."""
        return self.glob(place).astype(np.uint8).tobytes().decode()

    def taken(self, places: NDArray[np.int64]) -> PatternTable:
        """The patterns at these places."""
        lengths = np.diff(self.glob_at)[places]
        at = np.zeros(len(places) + 1, np.int64)
        np.cumsum(lengths, out=at[1:])
        source = np.repeat(self.glob_at[places] - at[:-1], lengths) + np.arange(at[-1])
        needle, length = self.needle[places], self.needle_length[places]
        return PatternTable(self.column[places], self.kind[places], self.globs[source], at, needle, length)

    def on_columns(self, columns: NDArray[np.int32]) -> PatternTable:
        """The same patterns with columns renumbered."""
        return replace(self, column=columns[self.column])

    def distinct(self) -> tuple[PatternTable, NDArray[np.int32]]:
        """Each distinct pattern once, and for every pattern its place among these."""
        place_of: dict[tuple[int, int, bytes], int] = {}
        places = np.empty(len(self), np.int32)
        kept: list[int] = []
        data, at = self.globs.tobytes(), (2 * self.glob_at).tolist()
        kind = np.where(self.kind >= REGEX, self.kind, 0).tolist()
        for place, column in enumerate(self.column.tolist()):
            key = column, kind[place], data[at[place] : at[place + 1]]
            places[place] = place_of.setdefault(key, len(kept))
            if places[place] == len(kept):
                kept.append(place)
        return (self if len(kept) == len(self) else self.taken(np.array(kept, np.int64))), places


def joined(tables: list[PatternTable]) -> PatternTable:
    """Concatenate tables of patterns."""
    lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(table.glob_at) for table in tables)])
    return PatternTable(
        np.concatenate([table.column for table in tables]),
        np.concatenate([table.kind for table in tables]),
        np.concatenate([table.globs for table in tables]),
        np.cumsum(lengths),
        np.concatenate([table.needle for table in tables]),
        np.concatenate([table.needle_length for table in tables]),
    )


_PLAIN = re.compile(r"(%?)((?:[^%_\\]|\\.)*)(%?)", re.DOTALL)
"""A pattern with the default escape, and `%` only at its ends."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PLAIN_KINDS = {("%", "%"): CONTAINS, ("", "%"): STARTS, ("%", ""): ENDS}


class GatheredPatterns:
    """Collects patterns, each once."""

    def __init__(self) -> None:
        self._place_of: dict[tuple[int, str, str], int] = {}
        self._column: list[int] = []
        self._kind: list[int] = []
        self._bodies: list[bytes] = []
        """The bytes of each pattern without the `%` at its ends; empty for patterns in `_globs`."""
        self._globs: dict[int, list[int]] = {}
        """By place, the globs of patterns that are more than a body."""

    def like(self, column: int, pattern: str, escape: str) -> int:
        """The place of a pattern of LIKE."""
        key = column, escape, pattern
        place = self._place_of.get(key)
        if place is None:
            plain = _PLAIN.fullmatch(pattern) if escape == DEFAULT_ESCAPE else None
            kind = None if plain is None else _PLAIN_KINDS.get((plain[1], plain[3]))
            body = "" if plain is None else plain[2]
            if kind is None or not body:
                place = self._add(column, GLOB, b"")
                self._globs[place] = _glob_of(pattern, escape)
            else:
                place = self._add(column, kind, (_ESCAPED.sub(_escaped, body) if "\\" in body else body).encode())
            self._place_of[key] = place
        return place

    def prefix(self, column: int, text: str) -> int:
        """The place of the pattern of texts that begin with `text`."""
        key = column, "", text
        place = self._place_of.get(key)
        if place is None:
            place = self._place_of[key] = self._add(column, STARTS, text.encode())
        return place

    def regex(self, column: int, pattern: str) -> int:
        """The place of a regular expression."""
        key = column, "regex", pattern
        place = self._place_of.get(key)
        if place is None:
            place = self._place_of[key] = self._add(column, REGEX, pattern.encode())
        return place

    def xpath(self, column: int, text: str) -> int:
        """The place of an XPath."""
        key = column, "xpath", text
        place = self._place_of.get(key)
        if place is None:
            place = self._place_of[key] = self._add(column, XPATH, text.encode())
        return place

    def table(self) -> PatternTable:
        """The collected patterns."""
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


def _escaped(match: re.Match[str]) -> str:
    return match[1]


def _glob_of(pattern: str, escape: str) -> list[int]:
    glob: list[int] = []
    for piece in like_pieces(pattern, escape):
        if piece is not None:
            glob += piece.encode() or (ONE,)
        elif not glob or glob[-1] != ANY:  # adjacent % are one
            glob.append(ANY)
    return glob


def _longest_run(glob: list[int]) -> tuple[int, int]:
    """The start and the length of the longest run of bytes."""
    longest, length, start = 0, 0, 0
    for place, each in enumerate([*glob, ANY]):
        if each >= ANY:
            if place - start > length:
                longest, length = start, place - start
            start = place + 1
    return longest, length


def search_table(table: PatternTable, columns: int) -> Patterns:
    """The arrays by which a kernel finds patterns in texts. Regular expressions and XPath are left out."""
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
    by_gram = np.flatnonzero(size)
    present = np.zeros(1 << bits - 6, np.uint64)
    filtered = hashes[by_gram]
    np.bitwise_or.at(present, filtered >> np.uint32(6), np.uint64(1) << (filtered & np.uint32(63)).astype(np.uint64))
    bucket_bits = bits - 4
    bucket = (filtered >> np.uint32(bits - bucket_bits)).astype(np.int64)
    order = np.argsort(bucket, kind="stable")
    bucket_at = np.zeros((1 << bucket_bits) + 1, np.int64)
    np.cumsum(np.bincount(bucket, minlength=1 << bucket_bits), out=bucket_at[1:])
    sizes = np.zeros(columns, np.uint8)
    np.bitwise_or.at(sizes, table.column[by_gram], np.uint8(1) << (size[by_gram] - 1))
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
        buckets=by_gram[order].astype(np.int32),
        bucket_bits=bucket_bits,
        sizes=sizes,
        loose_at=loose_at,
        loose=loose,
    )
