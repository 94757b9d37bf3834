"""The tables of Neon (Le Subscribe, figure 8): predicates by operation, none shared, and a count for each row touched.

An operation is a column and a comparison, for rows of one event type. Its predicates are contiguous, and every one of
them is evaluated for every event that has a value there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel
from harken_lab.papers.kernels.lists import ListTable, append_to, has_room, needed, release

EQUAL, AT_LEAST, AT_MOST, OTHER, ALWAYS = range(5)
"""Comparisons. ALWAYS is for rows that ask for nothing but an event type, or for nothing at all."""
COMPARISONS = 5
ANY_TYPE = 0
"""The type of rows that name no event type."""
NO_COLUMN = -1


class PredicateTable(NamedTuple):
    """The i-th predicate of an operation is its i-th constant, of the row that is its i-th owner."""

    constants: ListTable
    """Labels: int32 as in all lists while inserting; the same bits as uint32 while matching."""
    owners: ListTable
    held: ListTable
    """By row, for each of its predicates the operation and the place in it."""


class OperationTable(NamedTuple):
    """The operations of type t are those from `starts[t]` to `starts[t + 1]`."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    comparisons: NDArray[np.int32]
    lists: NDArray[np.int32]
    """Which lists of constants and owners each operation has."""


class AndTable(NamedTuple):
    """What is counted for an event: the *and* table of the paper."""

    needed: NDArray[np.int32]
    """The number of predicates of each row."""
    counts: NDArray[np.int32]
    """How many hold. All 0 before and after an event."""
    touched: NDArray[np.int32]
    """The rows with a count; with room for one more, which is written before it is known to be new."""
    passed: NDArray[np.int32]
    """The rows of the predicates of one operation that hold."""


@kernel
def insert(predicates, operations, constants, owners, first):
    """Append predicates to their operations, from `first` on. Returns how many were done before room ran out."""
    for i in range(first, operations.size):
        which, row = operations[i], owners[i]
        more = needed(predicates.constants, which)
        if not (has_room(predicates.constants, more) and has_room(predicates.owners, more)):
            return i
        # Doubling the room always makes room for two.
        if not has_room(predicates.held, needed(predicates.held, row)):
            return i
        append_to(predicates.held, row, which)
        append_to(predicates.held, row, predicates.owners.sizes[which])
        append_to(predicates.constants, which, constants[i])
        append_to(predicates.owners, which, row)
    return operations.size


@kernel
def delete(predicates, rows, emptied):
    """Remove all predicates of rows: the last of an operation takes the place of each.

    Returns how many operations are empty now, and writes their lists, which are freed.
    """
    held = predicates.held
    found = 0
    for i in range(rows.size):
        row = rows[i]
        start = held.starts[row]
        for at in range(start, start + held.sizes[row], 2):
            which = held.cells[at]
            _remove(predicates, which, held.cells[at + 1])
            if predicates.owners.sizes[which] == 0:
                release(predicates.constants, which)
                release(predicates.owners, which)
                emptied[found] = which
                found += 1
        held.sizes[row] = 0
        release(held, row)
    return found


@kernel
def _remove(predicates, which, place):
    constants, owners, held = predicates.constants, predicates.owners, predicates.held
    last = owners.sizes[which] - 1
    start = owners.starts[which]
    moved = owners.cells[start + last]
    owners.cells[start + place] = moved
    constants.cells[constants.starts[which] + place] = constants.cells[constants.starts[which] + last]
    owners.sizes[which] = last
    constants.sizes[which] = last
    # A row has one predicate of an operation at most.
    at = held.starts[moved]
    while held.cells[at] != which:
        at += 2
    held.cells[at + 1] = place


@kernel
def match(predicates, operations, types, counting, room, codes, first, out, offsets, examined):
    """Write the rows whose predicates all hold for each event from `first` on, until one finds no room.

    `types[:, event]` are the types of rows that an event is of, besides ANY_TYPE; -1 is none.
    """
    end = offsets[first]
    needed_of, counts, touched = counting.needed, counting.counts, counting.touched
    for event in range(first, codes.shape[1]):
        if out.size - end < room:
            return event
        size, seen = _evaluate(predicates, operations, ANY_TYPE, counting, codes, event, 0)
        for i in range(types.shape[0]):
            if types[i, event] >= 0:
                size, more = _evaluate(predicates, operations, types[i, event], counting, codes, event, size)
                seen += more
        for i in range(size):
            row = touched[i]
            out[end] = row
            end += counts[row] == needed_of[row]
            counts[row] = 0
        offsets[event + 1] = end
        examined[event] = seen
    return codes.shape[1]


@inner
def _evaluate(predicates, operations, of_type, counting, codes, event, size):
    """Count the predicates of all operations of a type. Returns how many rows are touched, and how many evaluated."""
    counts, touched, passed = counting.counts, counting.touched, counting.passed
    seen = 0
    for operation in range(operations.starts[of_type], operations.starts[of_type + 1]):
        column = operations.columns[operation]
        label = np.uint32(1)
        if column != NO_COLUMN:
            label = codes[column, event]
        if label == 0:
            continue
        which = operations.lists[operation]
        seen += predicates.owners.sizes[which]
        for i in range(_pass(predicates, which, operations.comparisons[operation], label, passed)):
            row = passed[i]
            touched[size] = row
            size += counts[row] == 0
            counts[row] += 1
    return size, seen


@kernel
def _pass(predicates, which, comparison, label, passed):
    """Write the rows of the predicates of an operation that hold for a label. Returns how many."""
    size = predicates.owners.sizes[which]
    start = predicates.constants.starts[which]
    constants = predicates.constants.cells[start : start + size]
    start = predicates.owners.starts[which]
    owners = predicates.owners.cells[start : start + size]
    found = 0
    if comparison == EQUAL:
        for i in range(size):
            if constants[i] == label:
                passed[found] = owners[i]
                found += 1
        return found
    # Many of the others hold. Each is written, and kept if it holds, so that no branch can be mispredicted.
    if comparison == AT_LEAST:
        for i in range(size):
            passed[found] = owners[i]
            found += constants[i] <= label
    elif comparison == AT_MOST:
        for i in range(size):
            passed[found] = owners[i]
            found += constants[i] >= label
    elif comparison == OTHER:
        for i in range(size):
            passed[found] = owners[i]
            found += constants[i] != label
    else:
        passed[:size] = owners
        found = size
    return found
