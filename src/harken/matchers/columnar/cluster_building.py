"""Building clusters and lists: sort their rows by key and bound, and lay the rest out in columns or row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.kernels import clusters as layout
from harken.kernels import rows as kernels
from harken.kernels.vector import ROWS, aligned
from harken.matchers.columnar.coded_rows import CodedRows
from harken.matchers.columnar.costs import BITS_A_ROW, CLUSTER, LIST, SKETCH
from harken.matchers.columnar.plan import GroupPlan

_WIDE_FROM = 1 << 16
_FOR_EVER = 1 << 40
_BEHIND = 1 << 31
"""Upper bound of the greatest code for ordering by ends: lower ends are offset by that code, within 32 bits."""
_SPARSE = 4
"""A direct table of keys with more than this many places per slot is replaced by open addressing."""


class ClusterBuilder:
    """Collects the arrays of clusters, one group after the other."""

    def __init__(self, rows: CodedRows) -> None:
        self._rows = rows
        self._fields: list[list[int]] = []
        self._masks = _Pile(np.int32)
        self._starts = _Pile(np.int32)
        self._hashed = _Pile(np.uint32)
        self._narrow = _Pile(np.uint16)
        self._wide = _Pile(np.uint32)
        self._rest: list[tuple[int, ...]] = []
        self._tiles = _Pile(np.uint8)
        self._filters = _Pile(np.uint64)
        self._list_starts = _Pile(np.int32)
        self._list_columns = _Pile(np.int32)
        self._list_low = _Pile(np.uint32)
        self._list_span = _Pile(np.uint32)
        self.order: list[NDArray[np.int64]] = []
        """The rows of each group, in the order of its slots."""
        self._slots = 0

    def add(self, group: GroupPlan) -> None:
        members, keys, bounds = self._sorted(group)
        fields = [layout.NONE] * layout.CLUSTER_FIELDS
        fields[layout.MASK_START], fields[layout.MASK_COUNT] = self._masks.add(group.columns), len(group.columns)
        fields[layout.SLOT_START], fields[layout.SLOT_COUNT] = self._slots, len(members)
        fields[layout.KEY_COLUMN], fields[layout.RANGE_COLUMN] = group.key, group.bound
        fields[layout.RANGE_CLASS] = group.bound_class
        if group.key >= 0:
            self._add_keys(keys, int(self._rows.tops[group.key]) // 2, fields)
        if group.bound >= 0:
            wide = self._rows.tops[group.bound] >= _WIDE_FROM - 1
            fields[layout.BOUND_WIDE] = int(wide)
            if group.key < 0:
                bounds = np.append(bounds, bounds[ROWS - 1 :: ROWS])
            fields[layout.BOUND_START] = (self._wide if wide else self._narrow).add(bounds)
            # The greatest length of intervals of the class; unbounded without an upper end.
            bits = group.bound_class - kernels.WITHIN
            fields[layout.RANGE_SPAN] = (1 << bits) - 1 if group.is_within else _FOR_EVER
        if len(group.filtered):
            self._add_filter(members, keys, group.filtered, fields)
        fields[layout.REST_START], fields[layout.REST_COUNT] = len(self._rest), 0
        if group.layout == LIST:
            self._add_lists(members, group, fields)
        else:
            planes: list[NDArray[np.uint8]] = []
            for column in group.columns:
                if column != group.key and (column != group.bound or group.is_within):
                    fields[layout.REST_COUNT] += self._add_column(members, int(column), group.layout == SKETCH, planes)
            if planes:
                fields[layout.TILE_BYTES] = ROWS * len(planes)
                fields[layout.TILE_START] = self._tiles.add(_tiled(planes))
        self._fields.append(fields)
        self.order.append(members)
        self._slots += len(members)

    def arrays(self) -> layout.Clusters:
        """The arrays of all clusters."""
        return layout.Clusters(
            np.array(self._fields, np.int64).reshape(-1, layout.CLUSTER_FIELDS),
            self._masks.array(),
            self._starts.array(),
            self._hashed.array(),
            self._narrow.array(ROWS),
            self._wide.array(ROWS),
            np.array(self._rest, np.int64).reshape(-1, layout.REST_FIELDS),
            self._tiles.array(),
            self._filters.array(),
            self._list_starts.array(),
            self._list_columns.array(),
            self._list_low.array(),
            self._list_span.array(),
        )

    def _sorted(self, group: GroupPlan) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
        """The rows of a group sorted by key and bound, with their keys and bounds."""
        rows, members = self._rows, group.rows
        keys, bounds = np.zeros(len(members), np.uint32), np.zeros(len(members), np.uint32)
        if group.key >= 0:
            kernels.code_of(rows.starts, rows.columns, rows.low, members, group.key, keys)
        if group.bound >= 0:
            codes = rows.high if group.bound_class == kernels.UP_TO else rows.low
            kernels.code_of(rows.starts, rows.columns, codes, members, group.bound, bounds)
        elif group.layout == CLUSTER:
            self._order_by_ends(members, group, bounds)
        order = np.argsort(keys.astype(np.uint64) << np.uint64(32) | bounds)
        return members[order], keys[order], bounds[order]

    def _order_by_ends(self, members: NDArray[np.int64], group: GroupPlan, order: NDArray[np.uint32]) -> None:
        """Order rows by the first compared column: those without a lower end by upper end, then others by lower end.

        If no other column is compared, the matches of an event are adjacent: the last of the former, then the first of
        the latter.
        """
        rows, lows = self._rows, np.empty(len(members), np.uint32)
        for column in (int(each) for each in group.columns if each != group.key):
            top = int(rows.tops[column])
            kernels.code_of(rows.starts, rows.columns, rows.low, members, column, lows)
            kernels.code_of(rows.starts, rows.columns, rows.high, members, column, order)
            if top < _BEHIND and not ((lows == 1) & (order == top)).all():
                np.copyto(order, lows + np.uint32(top), where=lows > 1)
                return

    def _add_keys(self, keys: NDArray[np.uint32], constants: int, fields: list[int]) -> None:
        if constants <= _SPARSE * len(keys):
            starts = np.searchsorted(keys, 2 * np.arange(constants + 1, dtype=np.uint32) + 2)
        else:
            different, starts = np.unique(keys, return_index=True)
            starts = np.append(starts, len(keys))
            fields[layout.HASH_BITS] = bits = max(2, (2 * len(different)).bit_length())
            fields[layout.HASH_START] = self._hashed.add(_open_addressing(different, bits))
        fields[layout.KEY_START] = self._starts.add(starts.astype(np.int32))
        fields[layout.KEY_COUNT] = len(starts) - 1

    def _add_filter(
        self, members: NDArray[np.int64], keys: NDArray[np.uint32], columns: NDArray[np.int32], fields: list[int]
    ) -> None:
        rows = self._rows
        mixed, codes = np.zeros(len(members), np.uint64), np.empty(len(members), np.uint32)
        layout.mix(mixed, keys)
        for column in columns:
            kernels.code_of(rows.starts, rows.columns, rows.low, members, int(column), codes)
            layout.mix(mixed, codes)
        bits = min(max((BITS_A_ROW * len(members) - 1).bit_length(), 6), layout.WORD_BITS)
        is_set = np.zeros(1 << bits, np.bool_)
        is_set[mixed >> np.uint64(layout.WORD_BITS - bits)] = True
        fields[layout.FILTER_START] = self._filters.add(np.packbits(is_set, bitorder="little").view(np.uint64))
        fields[layout.FILTER_BITS] = bits
        fields[layout.FILTER_COLUMNS], fields[layout.FILTER_COUNT] = self._masks.add(columns), len(columns)

    def _add_column(
        self, members: NDArray[np.int64], column: int, sketched: bool, planes: list[NDArray[np.uint8]]
    ) -> int:
        """Lay out the intervals of these rows on a column. For a sketch, append its bytes to the planes.

        Returns the number of columns to compare: 0 if all rows admit any value, else 1.
        """
        rows = self._rows
        top = int(rows.tops[column])
        wide = top >= _WIDE_FROM - 1
        kind: type[np.unsignedinteger[Any]] = np.uint32 if wide else np.uint16
        lows, spans = np.empty(len(members), kind), np.empty(len(members), kind)
        kernels.interval_of(rows.starts, rows.columns, rows.low, rows.high, members, column, lows, spans)
        if (lows == 1).all() and (spans == top - 1).all():
            return 0
        pile = self._wide if wide else self._narrow
        if not sketched:
            self._rest.append((column, int(wide), pile.add(lows), pile.add(spans), layout.NONE, 0))
            return 1
        highs = lows + spans  # modulo the width
        at = ROWS * len(planes)
        is_upper = lows == 1
        if 2 * top < 1 << 8 * lows.itemsize and (is_upper | (highs == top) & (lows <= highs)).all():
            ends = np.where(is_upper, 2 * highs, 2 * lows - 1)
            shift = max(0, top.bit_length() - 7)
            planes.append((ends >> 1 >> shift << 1 | ends & 1).astype(np.uint8))
            self._rest.append((column, int(wide), pile.add(ends), layout.NONE, at, shift))
        else:
            shift = max(0, top.bit_length() - 8)
            low, high = (each >> shift for each in (lows, highs))
            # A gap within one step of the sketch cannot be represented: admit all codes.
            is_hidden = (lows > highs) & (low == high)
            planes += [low.astype(np.uint8), np.where(is_hidden, 255, high - low).astype(np.uint8)]
            self._rest.append((column, int(wide), pile.add(lows), pile.add(spans), at, shift))
        return 1

    def _add_lists(self, members: NDArray[np.int64], group: GroupPlan, fields: list[int]) -> None:
        rows = self._rows
        decided = group.key if group.key >= 0 or group.is_within else group.bound
        total = int(rows.lengths[members].sum())
        starts, columns = np.empty(len(members) + 1, np.int32), np.empty(total, np.int32)
        low, span = np.empty(total, np.uint32), np.empty(total, np.uint32)
        end = kernels.list_predicates(
            rows.starts, rows.columns, rows.low, rows.high, members, decided, starts, columns, low, span
        )
        starts += self._list_columns.size
        fields[layout.LIST_START] = self._list_starts.add(starts)
        self._list_columns.add(columns[:end])
        self._list_low.add(low[:end])
        self._list_span.add(span[:end])


class _Pile:
    """Concatenates arrays."""

    def __init__(self, kind: type[np.generic]) -> None:
        self._kind = kind
        self._parts: list[NDArray[Any]] = []
        self.size = 0

    def add(self, part: NDArray[Any]) -> int:
        """Append an array. Returns its start."""
        start, self.size = self.size, self.size + len(part)
        self._parts.append(part)
        return start

    def array(self, padding: int = 0) -> NDArray[Any]:
        joined = aligned(self.size + padding, self._kind)
        joined[self.size :] = 0
        at = 0
        for part in self._parts:
            joined[at : at + len(part)] = part
            at += len(part)
        return joined


def _tiled(planes: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """The planes cut into tiles of 64 slots. Each tile has the bytes of all planes, plane by plane."""
    tiles = np.zeros((-(-len(planes[0]) // ROWS), len(planes), ROWS), np.uint8)
    whole = len(planes[0]) // ROWS
    for place, plane in enumerate(planes):
        tiles[:whole, place] = plane[: whole * ROWS].reshape(whole, ROWS)
        tiles[whole:, place, : len(plane) - whole * ROWS] = plane[whole * ROWS :]
    return tiles.reshape(-1)


def _open_addressing(keys: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    """A hash table of 2**bits pairs of a key and its place, for `hashed_place`."""
    table = np.zeros(2 << bits, np.uint32)
    layout.fill_table(keys, bits, table)
    return table
