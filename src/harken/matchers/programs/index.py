"""The index of programs: trees in codes, compiled to programs, with the keys by which events find them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column, NamedColumns
from harken.codes.conjunctions import Conjunctions, code
from harken.codes.dictionary import Dictionary
from harken.concurrency.caching import cached_property
from harken.kernels.frozen import frozen
from harken.kernels.programs import ASSUMED, CODES, FITS, ProgramIndex, Programs, compile_trees
from harken.matchers.programs.patterns import REGEX, XPATH, search_table
from harken.matchers.programs.program_trees import Trees
from harken.matchers.programs.regexes import Regexes
from harken.matchers.programs.xpath_patterns import XPathPatterns
from harken.schema.paths import Path

_WIDE = 64
"""A predicate that admits over this many codes more than it has intervals is no key: each code would need an entry."""
_NO_KEY = np.inf
_LEAST_LIKELY = 1e-4
_REGEX_LIKELY, _XPATH_LIKELY = 0.01, 0.01


# Costs of an event in nanoseconds, measured in batches of a thousand.
_EVENT_NS, _COLUMN_NS, _TEXT_NS, _BYTE_NS, _PROGRAM_NS, _REGEX_NS = 300.0, 150.0, 350.0, 4.0, 60.0, 4_000.0
_SHARING = 1_700
"""Number of patterns that add a nanosecond to the cost of a byte of text, because more of them share grams."""


@dataclass(frozen=True, slots=True)
class LearntFrequencies:
    """Frequencies of the codes and patterns of one index among events."""

    events: int
    codes: NDArray[np.int64]
    """Number of events by key; a key is a code of a column."""
    hits: NDArray[np.int64]
    """Number of events by pattern."""


@dataclass(frozen=True)
class CoveredIndex:
    """Programs of subscriptions, with covers chosen by learnt frequencies."""

    trees: Trees
    columns: tuple[Column, ...]
    dictionaries: tuple[Dictionary, ...]
    kernel: ProgramIndex
    learnt: LearntFrequencies | None
    expected: float
    """Expected number of programs that an event runs."""
    regexes: Regexes = field(repr=False)
    xpaths: XPathPatterns = field(repr=False)
    looks_beyond: NDArray[np.bool_] = field(repr=False)
    """Flags of the programs whose verification may read further columns."""

    def __len__(self) -> int:
        return len(self.trees)

    @property
    def texts(self) -> tuple[Path, ...]:
        """The paths of the text columns."""
        return self.trees.texts

    @cached_property
    def named(self) -> NamedColumns:
        """The columns by name."""
        return NamedColumns.of(self.columns)

    @cached_property
    def words(self) -> Any:
        """The arrays as words for a kernel."""
        return frozen(self.kernel)

    @cached_property
    def place_of(self) -> dict[int, int]:
        """The program of each subscription."""
        return {number: place for place, number in enumerate(self.trees.numbers.tolist())}

    def expected_ns(self, text: float) -> float:
        """Expected nanoseconds for an event with this many bytes of text."""
        looked_up = _COLUMN_NS * len(self.columns) + _TEXT_NS * len(self.texts)
        regular = _REGEX_NS * len(self.regexes.columns())
        scanned = (_BYTE_NS + len(self.trees.patterns) / _SHARING) * text
        return _EVENT_NS + looked_up + scanned + regular + _PROGRAM_NS * self.expected

    def memory(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for part in self.kernel for array in part if isinstance(array, np.ndarray))


def build(trees: Trees, learnt: LearntFrequencies | None = None) -> CoveredIndex:
    """The index of trees. `learnt` has to be from an index of the same trees."""
    coded = code(np.arange(len(trees.leaf_kind)), trees.columns)
    first_key = np.zeros(len(coded.predicates) + 1, np.int64)
    np.cumsum([predicates.top + 1 for predicates in coded.predicates], out=first_key[1:])
    pieces = _Pieces(coded, len(trees.leaf_kind), first_key)
    leaf_of = np.where(trees.leaf_kind == CODES, pieces.column_of, trees.leaf_of).astype(np.int32)
    cost = _costs(trees, pieces, first_key, learnt)
    count, nodes = len(trees), len(trees.nodes)
    leaves = int((trees.nodes >= 0).sum())
    longest = int(np.diff(trees.starts).max(initial=0))
    test_at = np.empty(count + 1, np.int64)
    tests = [np.empty(leaves, np.int32) for _ in range(3)]
    covers, covered = np.empty(nodes + count, np.int32), np.empty(nodes + count, np.int32)
    room = np.empty(longest), np.empty((longest, 3), np.int32), np.empty(longest, np.bool_)
    pairs = compile_trees(trees.starts, trees.nodes, trees.ends, cost, *room, test_at, *tests, covers, covered)
    covers, covered = covers[:pairs], covered[:pairs]
    is_always = covers < 0
    always, covers, covered = covered[is_always], covers[~is_always], covered[~is_always]
    by_codes = trees.leaf_kind[covers] == CODES
    keys, owners = pieces.keys(covers[by_codes], covered[by_codes])
    by_code_at, by_code = _grouped(keys, owners, int(first_key[-1]))
    by_pattern_at, by_pattern = _grouped(leaf_of[covers[~by_codes]], covered[~by_codes], len(trees.patterns))
    sought = np.zeros(len(trees.patterns), np.bool_)
    sought[leaf_of[covers[~by_codes]]] = True
    leaf_kind = _late_regexes(trees, sought)
    owner = np.repeat(np.arange(count), np.diff(test_at))
    has_assumed, looks_beyond = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    has_assumed[owner[leaf_kind[tests[0]] == ASSUMED]] = True
    looks_beyond[owner[trees.leaf_kind[tests[0]] == ASSUMED]] = True
    key_columns = np.unique(leaf_of[covers[by_codes]]).astype(np.int32)
    programs = Programs(
        test_at=test_at,
        leaf=tests[0],
        if_true=tests[1],
        if_false=tests[2],
        has_assumed=has_assumed,
        leaf_kind=leaf_kind,
        leaf_of=leaf_of,
        piece_at=pieces.at,
        low=pieces.low,
        high=pieces.high,
        key_columns=key_columns,
        first_key=first_key,
        by_code_at=by_code_at,
        by_code=by_code,
        by_pattern_at=by_pattern_at,
        by_pattern=by_pattern,
        always=always,
    )
    return CoveredIndex(
        trees,
        tuple(coded.columns),
        tuple(coded.dictionaries),
        ProgramIndex(programs, search_table(trees.patterns, len(trees.texts))),
        learnt,
        len(always) + float(cost[covers].sum()),
        Regexes(trees.patterns, np.flatnonzero(sought & (trees.patterns.kind == REGEX))),
        XPathPatterns(trees.patterns, trees.texts),
        looks_beyond,
    )


def _late_regexes(trees: Trees, sought: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The kinds of leaves. Regular expressions that are no keys are `ASSUMED`: verified only if all else holds."""
    is_late = (trees.leaf_of >= 0) & np.append(~sought & (trees.patterns.kind == REGEX), False)[trees.leaf_of]
    return np.where(is_late, np.uint8(ASSUMED), trees.leaf_kind)


class _Pieces:
    """The intervals of leaves, leaf by leaf."""

    def __init__(self, coded: Conjunctions, leaves: int, first_key: NDArray[np.int64]) -> None:
        none = np.empty(0, np.int64)
        leaf = np.concatenate([none, *(part.rows for part in coded.predicates)])
        order = np.argsort(leaf, kind="stable")
        sizes = [len(part.rows) for part in coded.predicates]
        column = np.repeat(np.arange(len(sizes)), sizes)[order]
        self.leaf = leaf[order]
        self.low = np.concatenate([none, *(part.low for part in coded.predicates)]).astype(np.uint32)[order]
        self.high = np.concatenate([none, *(part.high for part in coded.predicates)]).astype(np.uint32)[order]
        self.at = np.zeros(leaves + 1, np.int64)
        np.cumsum(np.bincount(self.leaf, minlength=leaves), out=self.at[1:])
        self.column_of = np.full(leaves, -1, np.int64)
        self.column_of[self.leaf] = column
        self.first = first_key[column] + self.low
        """The key of the lowest code of each interval."""
        self.span = self.high.astype(np.int64) - self.low + 1
        """Number of codes in each interval; at most 0 for a wrapped one."""

    def keys(self, leaves: NDArray[np.int32], owners: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The keys of these leaves, and the owner of each key."""
        count = self.at[leaves + 1] - self.at[leaves]
        piece = _ranges(self.at[leaves], count)
        span = self.span[piece]
        return _ranges(self.first[piece], span), np.repeat(np.repeat(owners, count), span)


def _ranges(first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """The concatenated ranges first[i] : first[i] + count[i]."""
    ends = np.cumsum(count)
    return np.repeat(first - ends + count, count) + np.arange(int(ends[-1]) if len(ends) else 0)


def _costs(
    trees: Trees, pieces: _Pieces, first_key: NDArray[np.int64], learnt: LearntFrequencies | None
) -> NDArray[np.float64]:
    """The expected share of events for which each leaf holds; infinite for leaves that cannot be keys."""
    cost = np.full(len(trees.leaf_kind), _NO_KEY)
    fits = trees.leaf_kind == FITS
    likely = np.maximum(_LEAST_LIKELY, 0.5 * 0.6 ** trees.patterns.needle_length.astype(np.float64))
    likely[trees.patterns.kind == REGEX] = _REGEX_LIKELY
    likely[trees.patterns.kind == XPATH] = _XPATH_LIKELY
    if learnt is not None:
        likely = (learnt.hits + likely) / (learnt.events + 1)
    cost[fits] = likely[trees.leaf_of[fits]]
    # Each code is a key. Its prior is 1 / number of constants, for constants and gaps alike.
    constants = np.diff(first_key) / 2
    each_code = np.repeat(1.0 / np.maximum(constants, 1), np.diff(first_key))
    if learnt is not None:
        each_code = (learnt.codes + np.minimum(each_code, 0.5)) / (learnt.events + 1)
    summed = np.concatenate([[0.0], np.cumsum(each_code)])
    narrow = pieces.span > 0
    likely = np.where(narrow, summed[pieces.first + np.maximum(pieces.span, 0)] - summed[pieces.first], _NO_KEY)
    leaves = np.flatnonzero(trees.leaf_kind == CODES)
    total = np.bincount(pieces.leaf, likely, minlength=len(cost))[leaves]
    span = np.bincount(pieces.leaf, pieces.span, minlength=len(cost))[leaves]
    count = np.diff(pieces.at)[leaves]
    cost[leaves] = np.where(span <= count + _WIDE, total, _NO_KEY)
    return cost


def _grouped(keys: NDArray[Any], owners: NDArray[np.int32], count: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The owners in the order of their keys, and the start of each key's owners."""
    at = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=count), out=at[1:])
    return at, owners[np.argsort(keys, kind="stable")].astype(np.int32)
