"""The tables of Neon (Le Subscribe, figure 8): predicates by operation, none shared, and a count for each row touched.

An operation is a column and a comparison, for rows of one event type. Its predicates are contiguous, and all of them
are evaluated for every event that has a value in the column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel
from harken_lab.papers.kernels.lists import ListTable, append_to, has_room, needed, release

EQUAL, AT_LEAST, AT_MOST, OTHER, ALWAYS = range(5)
"""Comparisons. ALWAYS is for rows without predicates besides an event type."""
COMPARISONS = 5
ANY_TYPE = 0
"""The type of rows without an equality on the event type."""
NO_COLUMN = -1


class PredicateTable(NamedTuple):
    """The i-th predicate of an operation has the i-th constant, and belongs to the row that is the i-th owner."""

    constants: ListTable
    """Labels: int32, as in all lists, while inserting; the same bits as uint32 while matching."""
    owners: ListTable
    of_rows: ListTable
    """By row, for each of its predicates the operation and the place in the operation."""


class OperationTable(NamedTuple):
    """The operations of type t are those from `starts[t]` to `starts[t + 1]`."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    comparisons: NDArray[np.int32]
    lists: NDArray[np.int32]
    """The number of each operation: the index of its lists of constants and owners."""


class AndTable(NamedTuple):
    """The counts of an event: the *and* table of the paper."""

    needed: NDArray[np.int32]
    """The number of predicates of each row."""
    counts: NDArray[np.int32]
    """How many predicates of each row hold. All 0 before and after an event."""
    touched: NDArray[np.int32]
    """The rows with a count. Has room for one more, which is written before it is known to be new."""
    passed: NDArray[np.int32]
    """The rows of the predicates of one operation that hold."""


@kernel
def insert(predicates, operations, constants, owners, first):
    """Append predicates to their operations, from `first` on. Returns how many are done; fewer if room ran out."""
    for i in range(first, operations.size):
        which, row = operations[i], owners[i]
        more = needed(predicates.constants, which)
        if not (has_room(predicates.constants, more) and has_room(predicates.owners, more)):
            return i
        # Two elements are appended: a list that grows doubles, which makes room for both.
        if not has_room(predicates.of_rows, needed(predicates.of_rows, row)):
            return i
        append_to(predicates.of_rows, row, which)
        append_to(predicates.of_rows, row, predicates.owners.sizes[which])
        append_to(predicates.constants, which, constants[i])
        append_to(predicates.owners, which, row)
    return operations.size


@kernel
def delete(predicates, rows, emptied):
    """Remove all predicates of rows. The last predicate of an operation takes the place of a removed one.

    Frees the lists of operations that are empty now, and writes their numbers. Returns how many these are.
    """
    of_rows = predicates.of_rows
    count = 0
    for i in range(rows.size):
        row = rows[i]
        start = of_rows.starts[row]
        for at in range(start, start + of_rows.sizes[row], 2):
            which = of_rows.cells[at]
            _remove(predicates, which, of_rows.cells[at + 1])
            if predicates.owners.sizes[which] == 0:
                release(predicates.constants, which)
                release(predicates.owners, which)
                emptied[count] = which
                count += 1
        of_rows.sizes[row] = 0
        release(of_rows, row)
    return count


@kernel
def _remove(predicates, which, place):
    constants, owners, of_rows = predicates.constants, predicates.owners, predicates.of_rows
    last = owners.sizes[which] - 1
    start = owners.starts[which]
    moved = owners.cells[start + last]
    owners.cells[start + place] = moved
    constants.cells[constants.starts[which] + place] = constants.cells[constants.starts[which] + last]
    owners.sizes[which] = last
    constants.sizes[which] = last
    # A row has at most one predicate of an operation.
    at = of_rows.starts[moved]
    while of_rows.cells[at] != which:
        at += 2
    of_rows.cells[at + 1] = place


@kernel
def match(predicates, operations, types, counting, row_count, codes, first, out, offsets, examined):
    """Write the rows whose predicates all hold for each event, from `first` on.

    `types[:, event]` are the event types that the event has besides ANY_TYPE, -1 for none. Returns the first event
    without room for `row_count` rows, or the end.
    """
    end = offsets[first]
    needed_of, counts, touched = counting.needed, counting.counts, counting.touched
    for event in range(first, codes.shape[1]):
        if out.size - end < row_count:
            return event
        size, evaluated = _evaluate(predicates, operations, ANY_TYPE, counting, codes, event, 0)
        for i in range(types.shape[0]):
            if types[i, event] >= 0:
                size, more = _evaluate(predicates, operations, types[i, event], counting, codes, event, size)
                evaluated += more
        for i in range(size):
            row = touched[i]
            out[end] = row
            end += counts[row] == needed_of[row]
            counts[row] = 0
        offsets[event + 1] = end
        examined[event] = evaluated
    return codes.shape[1]


@inner
def _evaluate(predicates, operations, of_type, counting, codes, event, size):
    """Count the predicates of a type that hold. Returns how many rows have a count, and how many were evaluated."""
    counts, touched, passed = counting.counts, counting.touched, counting.passed
    evaluated = 0
    for operation in range(operations.starts[of_type], operations.starts[of_type + 1]):
        column = operations.columns[operation]
        label = np.uint32(1)
        if column != NO_COLUMN:
            label = codes[column, event]
        if label == 0:
            continue
        which = operations.lists[operation]
        evaluated += predicates.owners.sizes[which]
        for i in range(_pass(predicates, which, operations.comparisons[operation], label, passed)):
            row = passed[i]
            touched[size] = row
            size += counts[row] == 0
            counts[row] += 1
    return size, evaluated


@kernel
def _pass(predicates, which, comparison, label, passed):
    """Write the rows of the predicates of an operation that hold for a label. Returns how many."""
    size = predicates.owners.sizes[which]
    start = predicates.constants.starts[which]
    constants = predicates.constants.cells[start : start + size]
    start = predicates.owners.starts[which]
    owners = predicates.owners.cells[start : start + size]
    count = 0
    if comparison == EQUAL:
        for i in range(size):
            if constants[i] == label:
                passed[count] = owners[i]
                count += 1
        return count
    # Of the other comparisons many hold. Each row is written, and kept if it holds: a branch would be mispredicted.
    if comparison == AT_LEAST:
        for i in range(size):
            passed[count] = owners[i]
            count += constants[i] <= label
    elif comparison == AT_MOST:
        for i in range(size):
            passed[count] = owners[i]
            count += constants[i] >= label
    elif comparison == OTHER:
        for i in range(size):
            passed[count] = owners[i]
            count += constants[i] != label
    else:
        passed[:size] = owners
        count = size
    return count
