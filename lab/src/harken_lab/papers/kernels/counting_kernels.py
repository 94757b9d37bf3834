"""The counting algorithm in three layouts (ToPSS, section 3.3; Le Subscribe, section 3.1, as fair predicate).

A predicate that holds adds one to the counter of every row that has it; a row whose counter reaches the number of its
predicates matches. The layouts differ in how the rows of a predicate are stored: as a list, as a byte for every row, or
as a bit for every row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from harken.kernels.compile import IS_PLAIN, inner, kernel
from harken.kernels.vector import NO_BITS, ROWS, spread
from harken_lab.papers.kernels.lists import ListTable, append_to, has_room, needed, needed_first, release, remove_from
from harken_lab.papers.kernels.predicate_kernels import (
    FREE,
    GROUPS,
    IN_GROUPS,
    IN_LISTS,
    IN_NUMBERS,
    NEXT,
    NO_TABLE,
    NONE,
    SHORT,
    Predicates,
    add_predicate,
    cells_needed,
    drop_predicate,
    find_predicate,
    from_tables,
    satisfied,
    satisfied_in,
    split,
)

# Indexes are unsigned in the counting loops: Numba checks signed ones for negative values.

# With fewer increments than one per this many counters, checking the touched ones beats sweeping all.
FEW_INCREMENTS = 32
# Counters per pass, so that they stay in the first-level cache: bytes, and words of bits.
_BYTES_AT_A_TIME = 16_384
WORDS_AT_A_TIME = 512


class Counters(NamedTuple):
    """Counters by slot, padded by 64. Each row has a slot."""

    counts: Any
    """All 0 before and after a call: uint8, or wider if a row has more than 254 predicates."""
    needed: Any
    """How many predicates must hold for the row, or a number that no count reaches; of the same type."""
    rows: NDArray[np.int32]


class CountingScratch(NamedTuple):
    """Scratch arrays of a kernel."""

    numbers: NDArray[np.int32]
    """Room for the numbers of all predicates."""
    runs: NDArray[np.int64]
    """Room for begin and end of as many runs of cells."""


class BitCounters(NamedTuple):
    """Counters in bit planes: 64 are incremented at a time, with a carry to the next plane."""

    planes: NDArray[np.uint64]
    """Scratch: the words of each plane that are counted in one pass."""
    needed: NDArray[np.uint64]
    """How many predicates must hold for each row, in planes, and one more plane that marks existing rows."""
    carry: NDArray[np.uint64]
    """Scratch: the carry from one plane to the next."""
    identity: NDArray[np.int32]
    """0, 1, 2, …"""


if IS_PLAIN:
    _WEIGHTS = np.uint64(1) << np.arange(ROWS, dtype=np.uint64)

    def reached(counts: Any, at: int, needed: Any, needed_at: int) -> Any:
        is_equal = counts[at : at + ROWS] == needed[needed_at : needed_at + ROWS]
        return _WEIGHTS[is_equal].sum(dtype=np.uint64)

else:

    @intrinsic
    def reached(typing: Any, counts: Any, at: Any, needed: Any, needed_at: Any) -> Any:
        """A word with a bit for each of 64 counters, set if the counter equals the number that is needed."""
        vector = ir.VectorType(ir.IntType(counts.dtype.bitwidth), ROWS)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def loaded(array: int) -> Any:
                proxy = cgutils.create_struct_proxy(signature.args[array])
                data = proxy(context, builder, args[array]).data
                pointer = builder.bitcast(builder.gep(data, [args[array + 1]]), vector.as_pointer())
                return builder.load(pointer, align=counts.dtype.bitwidth // 8)

            return builder.bitcast(builder.icmp_unsigned("==", loaded(0), loaded(2)), ir.IntType(64))

        return types.uint64(counts, types.int64, needed, types.int64), generate


@kernel
def numbers_of(index, table, row, equalities, out):
    """Write the numbers of a row's predicates, with or without equalities; -1 for new predicates.

    Returns how many there are, how many of them must hold for the row, and how many cells the new ones take.
    """
    count, must_hold, cells = 0, 0, 0
    start = table.starts[row]
    for at in range(start, start + table.sizes[row]):
        low, high = table.low[at], table.high[at]
        if low == high and not equalities:
            continue
        parts, of_these, kind, label, second_kind, second_label = split(low, high)
        must_hold += of_these
        for part in range(parts):
            if part == 1:
                kind, label = second_kind, second_label
            group = table.columns[at] * GROUPS + kind
            out[count] = find_predicate(index, group, label)
            if out[count] == NONE:
                cells += cells_needed(index, group)
            count += 1
    return count, must_hold, cells


@inner
def number_all(index, table, row, equalities, numbers):
    """Number the predicates of a row that have no number yet, and count one more use of each."""
    count = 0
    start = table.starts[row]
    for at in range(start, start + table.sizes[row]):
        low, high = table.low[at], table.high[at]
        if low == high and not equalities:
            continue
        parts, _, kind, label, second_kind, second_label = split(low, high)
        for part in range(parts):
            if part == 1:
                kind, label = second_kind, second_label
            if numbers[count] == NONE:
                numbers[count] = add_predicate(index, table.columns[at] * GROUPS + kind, label)
            index.uses[numbers[count]] += 1
            count += 1


@kernel
def insert_into_lists(index, lists, packed, table, rows, slots, first, equalities, must_hold, numbers):
    """Append the slots of rows to their predicates' lists. Returns the first row without room, or the end.

    `packed` says of each group whether its lists are contiguous, in the order of its predicates. How many predicates
    must hold for each row is written to `must_hold`. `numbers` has room for the predicates of one row.
    """
    for i in range(first, rows.size):
        count, must_hold[i], cells = numbers_of(index, table, rows[i], equalities, numbers)
        more = np.int64(0)
        for j in range(count):
            more += needed_first(lists) if numbers[j] == NONE else needed(lists, numbers[j])
        new = index.state[NEXT] - index.state[FREE] + count
        if new > index.labels.size or new > lists.starts.size:
            index.state[SHORT] = IN_NUMBERS
            return i
        if not has_room(lists, more) or not has_room(index.groups, cells):
            index.state[SHORT] = IN_GROUPS if has_room(lists, more) else IN_LISTS
            return i
        number_all(index, table, rows[i], equalities, numbers)
        for j in range(count):
            append_to(lists, numbers[j], slots[i])
            packed[index.owners[numbers[j]]] = False
    return rows.size


@kernel
def delete_from_lists(index, lists, packed, table, rows, slots, equalities, numbers):
    """Remove rows from the lists of their predicates, and drop predicates that no row uses any more."""
    for i in range(rows.size):
        count, _, _ = numbers_of(index, table, rows[i], equalities, numbers)
        for j in range(count):
            number = numbers[j]
            remove_from(lists, number, slots[i])
            packed[index.owners[number]] = False
            index.uses[number] -= 1
            if index.uses[number] == 0:
                release(lists, number)
                drop_predicate(index, number)


@inner
def _append_run(runs, used, begin, end):
    """Append a run, or extend the last one if it ends where this one begins."""
    if used and runs[used - 1] == begin:
        runs[used - 1] = end
        return used
    runs[used], runs[used + 1] = begin, end
    return used + 2


@kernel
def runs_of(index, lists, packed, codes, event, scratch):
    """Write begin and end of the lists whose predicates hold for an event. Returns how many integers it wrote.

    The lists of a packed group are contiguous, in the order of its predicates: those that hold are one run. From
    linked lists and from a bit vector the predicates come one by one.
    """
    numbers, runs = scratch
    used = 0
    groups = index.groups
    if index.heads.size or index.vector.size:
        for i in range(satisfied(index, codes, event, numbers)):
            begin = lists.starts[numbers[i]]
            used = _append_run(runs, used, begin, begin + lists.sizes[numbers[i]])
        return used
    for column in range(codes.shape[0]):
        label = codes[column, event]
        if label == 0:
            continue
        if index.table_starts[column] != NO_TABLE:
            for i in range(from_tables(index, column, label, numbers, 0)):
                begin = lists.starts[numbers[i]]
                used = _append_run(runs, used, begin, begin + lists.sizes[numbers[i]])
            continue
        for group in range(column * GROUPS, (column + 1) * GROUPS):
            if groups.sizes[group] == 0:
                continue
            begin, stop, excluded = satisfied_in(index, group, label)
            start = groups.starts[group]
            if not packed[group]:
                for place in range(begin, stop):
                    if place != excluded:
                        number = groups.cells[start + place]
                        used = _append_run(runs, used, lists.starts[number], lists.starts[number] + lists.sizes[number])
                continue
            middle = stop if excluded == NONE else excluded
            if begin < middle:
                last = groups.cells[start + middle - 1]
                first = lists.starts[groups.cells[start + begin]]
                used = _append_run(runs, used, first, lists.starts[last] + lists.sizes[last])
            if middle + 1 < stop:
                last = groups.cells[start + stop - 1]
                first = lists.starts[groups.cells[start + middle + 1]]
                used = _append_run(runs, used, first, lists.starts[last] + lists.sizes[last])
    return used


class CountedRows(NamedTuple):
    """Rows whose predicates are counted through lists."""

    predicates: Predicates
    lists: ListTable
    packed: NDArray[np.bool_]
    """By group, whether its lists are contiguous, in the order of its predicates."""
    counters: Counters
    always: NDArray[np.int32]
    """The rows that need no predicate."""
    size: int
    """How many slots there are."""


@inner
def count_event(counted, codes, event, scratch, out, end, examined):
    """Append the rows that hold for an event. Returns where they end."""
    index, lists, packed, counters, always, size = counted
    counts, needed_of, rows = counters
    runs, cells = scratch.runs, lists.cells
    for i in range(always.size):
        out[end + i] = always[i]
    end += always.size
    used = runs_of(index, lists, packed, codes, event, scratch)
    increments = np.int64(0)
    for i in range(0, used, 2):
        increments += runs[i + 1] - runs[i]
    examined[event] += increments + always.size
    if increments * FEW_INCREMENTS < size:
        for i in range(0, used, 2):
            for at in range(runs[i], runs[i + 1]):
                slot = np.uint32(cells[at])
                counts[slot] += 1
                if counts[slot] == needed_of[slot]:
                    out[end] = rows[slot]
                    end += 1
        for i in range(0, used, 2):
            for at in range(runs[i], runs[i + 1]):
                counts[np.uint32(cells[at])] = 0
        return end
    for i in range(0, used, 2):
        for at in range(runs[i], runs[i + 1]):
            counts[np.uint32(cells[at])] += 1
    for at in range(0, size, ROWS):
        word = reached(counts, at, needed_of, at)
        if word != NO_BITS:
            end = spread(rows, at, word, out, end, out.size)
    counts[:size] = 0
    return end


@kernel
def count_by_lists(counted, row_count, codes, first, scratch, out, offsets, examined):
    """Write the rows that hold for each event, from `first` on. Returns the first event without room, or the end.

    An event needs room for `row_count` rows, which are all, in `out`.
    """
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if end + row_count > out.size:
            return event
        end = count_event(counted, codes, event, scratch, out, end, examined)
        offsets[event + 1] = end
    return codes.shape[1]


@kernel
def insert_numbers(index, table, rows, first, must_hold, numbers, ends, row_numbers):
    """Number all predicates of rows, from `first` on, and write the numbers one after the other.

    Those of row i end at `ends[i]`. Returns the first row without room, or the end.
    """
    end = ends[first - 1] if first else np.int64(0)
    for i in range(first, rows.size):
        count, must_hold[i], cells = numbers_of(index, table, rows[i], True, numbers)
        if index.state[NEXT] - index.state[FREE] + count > index.labels.size or not has_room(index.groups, cells):
            index.state[SHORT] = IN_GROUPS if not has_room(index.groups, cells) else IN_NUMBERS
            return i
        number_all(index, table, rows[i], True, numbers)
        for j in range(count):
            row_numbers[end + j] = numbers[j]
        end += count
        ends[i] = end
    return rows.size


@kernel
def release_numbers(index, table, rows, numbers, ends, row_numbers):
    """Write the numbers of all predicates of rows, and drop predicates that no row uses any more."""
    end = np.int64(0)
    for i in range(rows.size):
        count, _, _ = numbers_of(index, table, rows[i], True, numbers)
        for j in range(count):
            row_numbers[end + j] = numbers[j]
            index.uses[numbers[j]] -= 1
            if index.uses[numbers[j]] == 0:
                drop_predicate(index, numbers[j])
        end += count
        ends[i] = end


@kernel
def release_uses(index, numbers):
    """Take one use from each of these predicates, and drop those that no row uses any more."""
    for i in range(numbers.size):
        index.uses[numbers[i]] -= 1
        if index.uses[numbers[i]] == 0:
            drop_predicate(index, numbers[i])


@kernel
def count_by_bytes(index, matrix, counters, row_count, size, always, codes, first, numbers, out, offsets, examined):
    """As `count_by_lists`, adding the bytes of each predicate that holds to all counters."""
    counts, needed_of, rows = counters
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if end + row_count > out.size:
            return event
        for i in range(always.size):
            out[end + i] = always[i]
        end += always.size
        satisfied_count = satisfied(index, codes, event, numbers)
        examined[event] = size
        for base in range(0, size, _BYTES_AT_A_TIME):
            stop = min(size, base + _BYTES_AT_A_TIME)
            part = counts[base:stop]
            for i in range(satisfied_count):
                line = matrix[numbers[i], base:stop]
                for k in range(part.size):
                    part[k] += line[k]
            for at in range(base, stop, ROWS):
                word = reached(counts, at, needed_of, at)
                if word != NO_BITS:
                    end = spread(rows, at, word, out, end, out.size)
            counts[base:stop] = 0
        offsets[event + 1] = end
    return codes.shape[1]


@kernel
def count_by_bits(index, matrix, bits, row_count, always, codes, first, numbers, out, offsets, examined):
    """As `count_by_lists`, adding the bits of each predicate that holds to counters in bit planes."""
    planes, needed_of, carry, identity = bits
    depth, words = planes.shape[0], needed_of.shape[1]
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if end + row_count > out.size:
            return event
        for i in range(always.size):
            out[end + i] = always[i]
        end += always.size
        satisfied_count = satisfied(index, codes, event, numbers)
        examined[event] = words * ROWS
        for base in range(0, words, WORDS_AT_A_TIME):
            count = min(words - base, WORDS_AT_A_TIME)
            planes[:] = NO_BITS
            for i in range(satisfied_count):
                carry[:count] = matrix[numbers[i], base : base + count]
                for plane in range(depth):
                    counter_bits = planes[plane]
                    for w in range(count):
                        before = counter_bits[w]
                        counter_bits[w] = before ^ carry[w]
                        carry[w] &= before
            for w in range(count):
                word = needed_of[depth, base + w]
                for plane in range(depth):
                    word &= ~(planes[plane, w] ^ needed_of[plane, base + w])
                if word != NO_BITS:
                    end = spread(identity, (base + w) * ROWS, word, out, end, out.size)
        offsets[event + 1] = end
    return codes.shape[1]
