"""Predicates that hold are counted for the subscriptions on their lists (ToPSS, section 4.1; Le Subscribe, 4.2).

It is the baseline of the literature, made as quick as its idea allows: each distinct predicate stands once, its list is
an array, and counters are bytes where no row asks for more than 254 predicates. Additions go to a small index of their
own, which joins the large one when it has grown; a removal makes the count that a row needs one that is never reached.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from harken.events import EventBatch
from harken.kernels.counting import AT_LEAST, AT_MOST, EQUAL, GROUPS, OTHER, Lists, Several, Space, match_counting
from harken.kernels.vector import ROWS
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Capability, Entry, FormOf, MatchResult
from harken.matchers.candidates import Candidates, join, settle
from harken.segments.conjunctions import CodedPredicates, Conjunctions, code
from harken.segments.encode import EncodedBatch, encode
from harken.segments.flatten import flatten

# Additions that are kept apart before all is built anew: so many, or this share of what there is.
_FEW = 4_096
_SHARE = 4

_NONE = Several(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.uint32))


class CountingIndex:
    """Lists of rows by predicate, built once from conjunctions."""

    def __init__(self, conjunctions: Conjunctions, block: int | None = None) -> None:
        self.conjunctions = conjunctions
        every = max(1, -(-len(conjunctions) // ROWS)) * ROWS
        self._lists = _lists(conjunctions, every if block is None else block)
        self._numbers = _padded(conjunctions.numbers)
        self.repeats = len(np.unique(conjunctions.numbers)) < len(conjunctions)
        """Whether some subscription has several rows."""

    @property
    def nbytes(self) -> int:
        """The memory that matching needs, besides dictionaries."""
        return sum(each.nbytes for each in (*self._lists[:-1], self._numbers))

    @property
    def predicates(self) -> int:
        """The different predicates, each counted once for every block that it is in."""
        return len(self._lists.keys)

    def match_codes(
        self,
        codes: NDArray[np.uint32],
        out_numbers: NDArray[np.int32],
        out_offsets: NDArray[np.int64],
        first: int = 0,
    ) -> int:
        """Write the numbers of the rows that are true of events with one code a column, and where each event's end.

        `out_offsets` has one element more than there are events; those up to `first` are there already. Returns the
        number of events that found room in `out_numbers`: where a block of rows might not, it stops.
        """
        return self._match(self._numbers, codes, _NONE, first, out_numbers, out_offsets)

    def candidates(self, encoded: EncodedBatch) -> Candidates:
        """All pairs that the counts let through; in doubt where the codes of the row or of the event do not say all."""
        several = Several(encoded.several, encoded.starts, encoded.values)
        offsets = np.zeros(encoded.codes.shape[1] + 1, np.int64)
        labels = _padded(np.arange(len(self.conjunctions), dtype=np.int32))
        out = np.empty(self._lists.block + len(self._lists.always), np.int32)
        first = 0
        while True:
            first = self._match(labels, encoded.codes, several, first, out, offsets)
            if first == encoded.codes.shape[1]:
                break
            out = np.concatenate([out, np.empty_like(out)])
        rows = out[: offsets[-1]]
        return Candidates(offsets, self.conjunctions.numbers[rows], self._doubtful(rows, offsets, encoded.several))

    def remove(self, numbers: Iterable[int]) -> None:
        """Let no row of these subscriptions be true any more."""
        rows = np.flatnonzero(np.isin(self.conjunctions.numbers, list(numbers)))
        needed = self._lists.needed
        needed[rows] = np.iinfo(needed.dtype).max
        self._lists = self._lists._replace(always=np.setdiff1d(self._lists.always, rows).astype(np.int32))

    def _match(
        self,
        labels: NDArray[np.int32],
        codes: NDArray[np.uint32],
        several: Several,
        first: int,
        out: NDArray[np.int32],
        offsets: NDArray[np.int64],
    ) -> int:
        lists = self._lists
        most = max(np.diff(several.starts[:: len(codes) or 1]), default=0)
        space = Space(
            np.zeros(lists.block + ROWS, lists.needed.dtype),
            np.empty(2 * (GROUPS + 1) * len(codes) + 2 * int(most), np.int64),
        )
        done: int = match_counting(lists, labels, codes, several, space, first, out, offsets)
        return done

    def _doubtful(
        self, rows: NDArray[np.int32], offsets: NDArray[np.int64], several: NDArray[np.int32]
    ) -> NDArray[np.bool_] | None:
        if not len(several) and not self.conjunctions.inexact.any():
            return None
        doubtful: NDArray[np.bool_] = self.conjunctions.inexact[rows]
        for event in several.tolist():
            doubtful[offsets[event] : offsets[event + 1]] = True
        return doubtful


def _lists(conjunctions: Conjunctions, block: int) -> Lists:
    """Sort all predicates by block, column, operator and code, and put the rows of each distinct one on a list."""
    size, columns = len(conjunctions), len(conjunctions.predicates)
    needed = np.zeros(size, np.int64)
    entries = np.zeros(size, np.int64)
    keys: list[NDArray[np.int64]] = []
    rows: list[NDArray[np.int32]] = []
    for column, predicates in enumerate(conjunctions.predicates):
        needed[predicates.rows] += 1
        for kind, chosen, codes in _by_operator(predicates):
            held = predicates.rows[chosen]
            keys.append(((held // block * columns + column) * GROUPS + kind).astype(np.int64) << 32 | codes[chosen])
            rows.append(held)
            entries[held] += 1
        needed[predicates.rows] += _is_two_sided(predicates)
    joined = np.concatenate([np.empty(0, np.int64), *keys])
    # Stable: rows of equal predicates stay ascending.
    order = np.argsort(joined, kind="stable")
    joined, places = joined[order], np.concatenate([np.empty(0, np.int32), *rows])[order] % block
    is_new = np.ones(len(joined), np.bool_)
    is_new[1:] = joined[1:] != joined[:-1]
    firsts = np.flatnonzero(is_new)
    groups = -(-size // block) * columns * GROUPS
    counter = np.min_scalar_type(int(entries.max(initial=0)) + 1)
    never = np.iinfo(counter).max
    asked = np.full(size + ROWS, never, counter)
    asked[:size] = np.where(needed > 0, needed, never)
    return Lists(
        bounds=np.searchsorted(joined[firsts] >> 32, np.arange(groups + 1)).astype(np.int64),
        keys=(joined[firsts] & 0xFFFFFFFF).astype(np.uint32),
        starts=np.append(firsts, len(joined)).astype(np.int64),
        rows=places.astype(np.uint16 if block <= 1 << 16 else np.uint32),
        needed=asked,
        always=np.flatnonzero(needed == 0).astype(np.int32),
        block=block,
    )


def _by_operator(predicates: CodedPredicates) -> list[tuple[int, NDArray[np.bool_], NDArray[np.uint32]]]:
    """Which predicates are in which group, and the codes that they compare with.

    An interval with two ends is two predicates, as the literature has it. One that is wrapped is >= or <=, never both.
    """
    low, high = predicates.low, predicates.high
    equal = low == high
    wrapped = low > high
    other = wrapped & (low - high == 2)
    at_least = ~equal & ((wrapped & ~other) | (~wrapped & ((low > 1) | (high == predicates.top))))
    at_most = ~equal & ((wrapped & ~other) | (~wrapped & (high < predicates.top)))
    return [
        (EQUAL, equal, low),
        (AT_LEAST, at_least, low),
        (AT_MOST, at_most, high),
        (OTHER, other, high + np.uint32(1)),
    ]


def _is_two_sided(predicates: CodedPredicates) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (
        (predicates.low > 1) & (predicates.high < predicates.top) & (predicates.low < predicates.high)
    )
    return found


def _padded(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """As the kernel reads them: 64 at a time."""
    return np.concatenate([labels, np.zeros(ROWS, np.int32)])


class CountingLists:
    """The matcher: a large index, a small one for what came since, and what is to be verified.

    All rows are counted in one go, as the literature has it. With `block` they are counted so many at a time: that is
    quicker where the counters of all do not fit into the cache.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)

    def __init__(self, limits: Limits = DEFAULT_LIMITS, block: int | None = None) -> None:
        if block is not None and (block <= 0 or block % ROWS):
            raise TypeError(f"a block is a multiple of {ROWS} rows, which {block!r} is not")
        self._limits = limits
        self._block = block
        self._lock = threading.Lock()
        self._indexed: set[int] = set()
        self._recent: set[int] = set()
        self._removed: list[int] = []
        self._large: CountingIndex | None = None
        self._small: CountingIndex | None = None
        self._rebuilds = 0

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        numbers = [entry.number for entry in entries]
        with self._lock:
            self._recent.update(numbers)
            self._small = None
            self._remove(replaced)

    def remove(self, numbers: Iterable[int]) -> None:
        with self._lock:
            self._remove(numbers)

    def _remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self._recent:
                self._recent.remove(number)
                self._small = None
            else:
                self._indexed.remove(number)
                self._removed.append(number)

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        with self._lock:
            indexes = self._current(form_of)
        found = []
        for index in indexes:
            conjunctions = index.conjunctions
            found.append(index.candidates(encode(batch, conjunctions.columns, conjunctions.dictionaries)))
        if not found:
            nothing = np.zeros(len(batch), np.int64)
            return MatchResult(np.zeros(len(batch) + 1, np.int64), np.empty(0, np.int32), nothing)
        repeats = any(index.repeats for index in indexes)
        return settle(join(found), batch, form_of, self._limits, repeats=repeats)

    def stats(self) -> dict[str, Any]:
        with self._lock:
            indexes = [index for index in (self._large, self._small) if index is not None]
            return {
                "subscriptions": len(self._indexed) + len(self._recent),
                "recent": len(self._recent),
                "rows": sum(len(index.conjunctions) for index in indexes),
                "predicates": sum(index.predicates for index in indexes),
                "bytes": sum(index.nbytes for index in indexes),
                "rebuilds": self._rebuilds,
            }

    def _current(self, form_of: FormOf) -> list[CountingIndex]:
        """The indexes with all changes in them."""
        if len(self._recent) + len(self._removed) > max(_FEW, len(self._indexed) // _SHARE):
            self._indexed |= self._recent
            self._recent.clear()
            self._removed.clear()
            self._large, self._small = self._built(self._indexed, form_of), None
            self._rebuilds += 1
        if self._removed and self._large is not None:
            self._large.remove(self._removed)
        self._removed.clear()
        if self._small is None and self._recent:
            self._small = self._built(self._recent, form_of)
        return [index for index in (self._large, self._small) if index is not None]

    def _built(self, numbers: set[int], form_of: FormOf) -> CountingIndex:
        entries = ((number, form_of(number)) for number in sorted(numbers))
        return CountingIndex(code(*flatten(entries)), self._block)
