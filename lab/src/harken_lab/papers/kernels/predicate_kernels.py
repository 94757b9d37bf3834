"""The predicate index of two-stage matching (ToPSS, sections 3.1 and 3.2): which predicates hold for an event?

A predicate is a column, an operator and a label, stored once however many rows have it; its number is recycled. For
every column and operator the predicates are an ordered list, in which the place of an event's label delimits those that
hold: `>=` up to it, `<=` from it on. The list is an array that is searched by halves or, as the paper has it, a linked
list that is walked from its head. Or the predicates are a table by label: this needs no search, but walks over all
labels of the domain, also those without a predicate.

The predicates that hold are written as numbers or, as the paper has it, are bits of a vector, from which their numbers
are read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel
from harken.kernels.vector import NO_BITS, ONE_BIT, trailing_zeros
from harken_lab.papers.kernels.lists import ListTable, insert_at, needed, remove_at
from harken_lab.papers.kernels.number_kernels import give_number_back, take_number

EQUAL, AT_LEAST, AT_MOST, OTHER = range(4)
"""The operators. `>` is at least the label after the constant's, `<` at most the one before it."""
GROUPS = 4

NONE = -1
NO_TABLE = -1
FREE, NEXT, SHORT, PREDICATE_STATES = range(4)
IN_NUMBERS, IN_GROUPS, IN_LISTS = range(3)
"""Where an insertion ran out of room: numbers of predicates, cells of the index, or cells of the lists of rows."""
_FIRST, _LAST = np.uint32(1), np.uint32(0xFFFF_FFFF)


class Predicates(NamedTuple):
    """The index. Group g of column c is 4 c + g."""

    groups: ListTable
    """The predicates of each group that has no table, in the order of their labels."""
    table_starts: NDArray[np.int64]
    """Where each column's tables begin, one per operator; -1 if it has none."""
    table_sizes: NDArray[np.int64]
    """By column, the length of each of its tables, in labels."""
    tables: NDArray[np.int32]
    """Predicates by label, or -1."""
    used: NDArray[np.int32]
    """How many predicates of each group are in its table."""
    labels: NDArray[np.uint32]
    owners: NDArray[np.int32]
    """The label and the group of each predicate."""
    uses: NDArray[np.int32]
    """How many rows have each predicate."""
    free: NDArray[np.int32]
    """Free numbers."""
    state: NDArray[np.int64]
    """How many numbers are free, the next number if none is free, and where an insertion ran out of room."""
    heads: NDArray[np.int32]
    """By group, the first predicate of its linked list, or -1. Empty if lists are not linked."""
    following: NDArray[np.int32]
    """By predicate, the next one in its linked list, or -1."""
    vector: NDArray[np.uint64]
    """A bit for every predicate: whether it holds for the event at hand. Empty if numbers are written instead."""


@kernel
def split(low, high):
    """An interval as predicates: how many, how many of them must hold, and operator and label of each.

    An interval with two ends is two predicates, as in the literature; if it is wrapped, one of the two must hold.
    """
    if low == high:
        return 1, 1, EQUAL, low, EQUAL, low
    if low > high:
        if low - high == 2:
            return 1, 1, OTHER, np.uint32(high + np.uint32(1)), OTHER, low
        return 2, 1, AT_LEAST, low, AT_MOST, high
    if high == _LAST:
        return 1, 1, AT_LEAST, low, AT_LEAST, low
    if low == _FIRST:
        return 1, 1, AT_MOST, high, AT_MOST, high
    return 2, 2, AT_LEAST, low, AT_MOST, high


@kernel
def place_of(index, group, label):
    """The place in an ordered list of the first predicate whose label is not less than a label."""
    start = index.groups.starts[group]
    low, high = start, start + index.groups.sizes[group]
    while low < high:
        middle = (low + high) >> 1
        if index.labels[index.groups.cells[middle]] < label:
            low = middle + 1
        else:
            high = middle
    return low - start


@kernel
def _walk(index, group, label):
    """The last predicate of a linked list whose label is less than a label, and the one behind it; -1 if none."""
    before, number = np.int32(NONE), index.heads[group]
    while number != NONE and index.labels[number] < label:
        before, number = number, index.following[number]
    return before, number


@inner
def _link(index, group, before, number):
    """Let a predicate follow another one in a linked list; -1 stands for its head, and for its end."""
    if before == NONE:
        index.heads[group] = number
    else:
        index.following[before] = number


@inner
def find_predicate(index, group, label):
    """The number of a predicate, or -1."""
    column = group // GROUPS
    if index.table_starts[column] != NO_TABLE:
        return index.tables[index.table_starts[column] + (group % GROUPS) * index.table_sizes[column] + label]
    if index.heads.size:
        _, number = _walk(index, group, label)
        return number if number != NONE and index.labels[number] == label else np.int32(NONE)
    place = place_of(index, group, label)
    if place < index.groups.sizes[group]:
        number = index.groups.cells[index.groups.starts[group] + place]
        if index.labels[number] == label:
            return number
    return NONE


@inner
def cells_needed(index, group):
    """How many new cells one more predicate of a group takes."""
    if index.heads.size or index.table_starts[group // GROUPS] != NO_TABLE:
        return 0
    return needed(index.groups, group)


@kernel
def add_predicate(index, group, label):
    """Number a new predicate. There is room for it."""
    number = take_number(index.free, index.state, FREE)
    index.labels[number] = label
    index.owners[number] = group
    index.uses[number] = 0
    column = group // GROUPS
    if index.table_starts[column] != NO_TABLE:
        index.tables[index.table_starts[column] + (group % GROUPS) * index.table_sizes[column] + label] = number
        index.used[group] += 1
    elif index.heads.size:
        before, index.following[number] = _walk(index, group, label)
        _link(index, group, before, number)
    else:
        insert_at(index.groups, group, place_of(index, group, label), number)
    return number


@inner
def drop_predicate(index, number):
    """Drop a predicate that no row uses any more."""
    group, label = index.owners[number], index.labels[number]
    column = group // GROUPS
    if index.table_starts[column] != NO_TABLE:
        index.tables[index.table_starts[column] + (group % GROUPS) * index.table_sizes[column] + label] = NONE
        index.used[group] -= 1
    elif index.heads.size:
        before, _ = _walk(index, group, label)
        _link(index, group, before, index.following[number])
    else:
        remove_at(index.groups, group, place_of(index, group, label))
    give_number_back(index.free, index.state, FREE, number)


@kernel
def satisfied(index, codes, event, out):
    """Write the numbers of all predicates that hold for an event. Returns how many."""
    end = 0
    for column in range(codes.shape[0]):
        label = codes[column, event]
        if label == 0:
            continue
        if index.table_starts[column] != NO_TABLE:
            end = from_tables(index, column, label, out, end)
        elif index.heads.size:
            end = _from_linked(index, column, label, out, end)
        else:
            end = _from_lists(index, column, label, out, end)
        if index.vector.size:
            for i in range(end):
                index.vector[out[i] >> 6] |= ONE_BIT << np.uint64(out[i] & 63)
            end = 0
    return _read_vector(index, out) if index.vector.size else end


@inner
def _read_vector(index, out):
    """Write the numbers of the predicates whose bits are set, and clear the bits. Returns how many."""
    end = 0
    for at in range((index.state[NEXT] + 63) >> 6):
        word = index.vector[at]
        index.vector[at] = NO_BITS
        while word != NO_BITS:
            out[end] = (at << 6) + trailing_zeros(word)
            end += 1
            word &= word - ONE_BIT
    return end


@inner
def satisfied_in(index, group, label):
    """The predicates of an ordered list that hold: begin, end, and a place between them that does not hold, or -1."""
    kind = group % GROUPS
    size = np.int64(index.groups.sizes[group])
    # `>=` holds for its own label too: the end is the place of the next label.
    place = place_of(index, group, np.uint32(label + np.uint32(1)) if kind == AT_LEAST else label)
    if kind == AT_LEAST:
        return np.int64(0), place, np.int64(NONE)
    if kind == AT_MOST:
        return place, size, np.int64(NONE)
    is_equal = place < size and index.labels[index.groups.cells[index.groups.starts[group] + place]] == label
    if kind == EQUAL:
        return place, place + is_equal, np.int64(NONE)
    return np.int64(0), size, place if is_equal else np.int64(NONE)


@inner
def _from_lists(index, column, label, out, end):
    for group in range(column * GROUPS, (column + 1) * GROUPS):
        if index.groups.sizes[group]:
            begin, stop, excluded = satisfied_in(index, group, label)
            start = index.groups.starts[group]
            for place in range(begin, stop):
                if place != excluded:
                    out[end] = index.groups.cells[start + place]
                    end += 1
    return end


@inner
def _from_linked(index, column, label, out, end):
    """Append the numbers of the predicates of a column with linked lists that hold for a label, from head to tail."""
    for kind in range(GROUPS):
        number = index.heads[column * GROUPS + kind]
        while number != NONE:
            other = index.labels[number]
            if kind == AT_MOST:
                holds = label <= other
            elif kind == OTHER:
                holds = label != other
            elif other > label:
                break
            else:
                holds = kind == AT_LEAST or label == other
            if holds:
                out[end] = number
                end += 1
            number = index.following[number]
    return end


@inner
def from_tables(index, column, label, out, end):
    """Append the numbers of the predicates of a column with tables that hold for a label."""
    size = index.table_sizes[column]
    start = index.table_starts[column]
    for kind in range(GROUPS):
        if index.used[column * GROUPS + kind]:
            begin, stop = np.int64(1), size
            if kind == AT_LEAST:
                stop = np.int64(label) + 1
            elif kind == AT_MOST:
                begin = np.int64(label)
            elif kind == EQUAL:
                begin, stop = np.int64(label), np.int64(label) + 1
            for i in range(start + begin, start + stop):
                number = index.tables[i]
                if number != NONE and not (kind == OTHER and i == start + label):
                    out[end] = number
                    end += 1
        start += size
    return end


@kernel
def count_satisfied(index, codes, out):
    """Count the predicates that hold, summed over all events: the first stage alone."""
    count = np.int64(0)
    for event in range(codes.shape[1]):
        count += satisfied(index, codes, event, out)
    return count
