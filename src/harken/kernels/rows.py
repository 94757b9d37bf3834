"""Predicates row by row: turns columns into rows, and groups rows that ask for the same attributes."""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import kernel
from harken.kernels.vector import ALL_BITS, ones

# What a predicate asks of the code: one value, all up to a bound, all from a bound on, any, all but an interval, or an
# interval with two ends. Intervals whose lengths have the same number of bits are of one class: WITHIN + bits.
POINT, UP_TO, FROM, ANY, OTHER, WITHIN = 0, 1, 2, 3, 4, 5
CLASSES = WITHIN + 33
_LOW_BITS = 0xFFFF_FFFF


@kernel
def _bits(length):
    """The number of bits of a length."""
    bits = 0
    while length > 0:
        length >>= 1
        bits += 1
    return bits


@kernel
def count_predicates(rows, counts):
    """Add one to counts[row + 1] for every predicate of a column."""
    for i in range(rows.size):
        counts[rows[i] + 1] += 1


@kernel
def place_predicates(rows, low, high, last, column, ends, columns, lows, highs, classes):
    """Append the predicates of a column to their rows; `ends` has where each row ends so far."""
    for i in range(rows.size):
        at = ends[rows[i]]
        ends[rows[i]] = at + 1
        columns[at] = column
        lows[at] = low[i]
        highs[at] = high[i]
        if low[i] == high[i] and low[i] & 1 == 0:
            classes[at] = POINT
        elif low[i] == 1:
            classes[at] = ANY if high[i] == last else UP_TO
        elif high[i] == last and low[i] <= high[i]:
            classes[at] = FROM
        elif low[i] > high[i]:
            classes[at] = OTHER
        else:
            classes[at] = WITHIN + _bits(high[i] - low[i])


@kernel
def mixed_marks(starts, columns, marks, mixed):
    """XOR the marks of each row's columns: rows with equal results almost surely ask for the same columns."""
    for row in range(mixed.size):
        every = np.uint64(0)
        for at in range(starts[row], starts[row + 1]):
            every ^= marks[columns[at]]
        mixed[row] = every


@kernel
def first_unlike(starts, columns, leaders, leader_of):
    """The first row whose columns are not those of its group's leader, or -1."""
    for row in range(leader_of.size):
        leader = leaders[leader_of[row]]
        length = starts[row + 1] - starts[row]
        if starts[leader + 1] - starts[leader] != length:
            return row
        for i in range(length):
            if columns[starts[row] + i] != columns[starts[leader] + i]:
                return row
    return -1


@kernel
def choose_keys(starts, columns, classes, shares, key, bound, bound_class):
    """For every row the column of its key, the most selective equality, and that of its range, the most selective.

    `shares` has, by class and column, the share of events that such a predicate lets through. -1 is none.
    """
    for row in range(key.size):
        best_key = best_bound = -1
        best_class = 0
        key_share = bound_share = np.float32(2.0)
        for at in range(starts[row], starts[row + 1]):
            column, kind = columns[at], classes[at]
            share = shares[kind, column]
            if kind == POINT:
                if share < key_share:
                    key_share, best_key = share, column
            elif kind not in (ANY, OTHER) and share < bound_share:
                bound_share, best_bound, best_class = share, column, kind
        key[row] = best_key
        bound[row] = best_bound
        bound_class[row] = best_class


@kernel
def mark_points(starts, classes, group_of, firsts, is_point):
    """For each column of every group, from is_point[firsts[group]] on: whether all rows ask for one value in it.

    The rows of a group ask for the same columns.
    """
    is_point[:] = True
    for row in range(group_of.size):
        at = firsts[group_of[row]] - starts[row]
        for i in range(starts[row], starts[row + 1]):
            is_point[at + i] &= classes[i] == POINT


@kernel
def products(starts, columns, rows, factors, result):
    """For each of these rows the product of its columns' factors."""
    for i in range(rows.size):
        product = np.float32(1.0)
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            product *= factors[columns[at]]
        result[i] = product


@kernel
def share_together(starts, columns, rows, has_value, events, prior, result):
    """For each of these rows the share of events that have all of its columns.

    `has_value` has a bit for each event, column by column. `prior` further events are assumed to have had all of them.
    """
    for i in range(rows.size):
        count = np.int64(0)
        if starts[rows[i]] == starts[rows[i] + 1]:  # the bits behind the last event are not to be counted
            result[i] = 1
            continue
        for word_number in range(has_value.shape[1]):
            word = ALL_BITS
            for at in range(starts[rows[i]], starts[rows[i] + 1]):
                word &= has_value[columns[at], word_number]
            count += ones(word)
        result[i] = (count + prior) / (events + prior)


@kernel
def cumulate(seen, prior, on_constant, in_gap, result):
    """For each code of a column, and last for one above all, the share of events below it.

    `seen` has the codes of events, ascending. `prior` more events are assumed: a share `on_constant` of them with each
    constant, a share `in_gap` with a value in each gap.
    """
    scale = 1 / (prior + seen.size)
    place = 0
    for code in range(result.size):
        while place < seen.size and seen[place] < code:
            place += 1
        gaps, constants = code >> 1, max(0, (code - 1) >> 1)
        result[code] = (prior * (gaps * in_gap + constants * on_constant) + place) * scale


@kernel
def mean_shares(starts, columns, low, high, classes, cumulative, cumulative_starts, sums, counts):
    """Sum up, by class and column, the share of events that each predicate lets through."""
    for at in range(columns.size):
        column = columns[at]
        base = cumulative_starts[column]
        share = cumulative[base + high[at] + 1] - cumulative[base + low[at]]
        sums[classes[at], column] += share
        counts[classes[at], column] += 1


@kernel
def code_of(starts, columns, codes, rows, column, result):
    """For each of these rows the code that its predicate on the column gives, or 0 if it has none."""
    for i in range(rows.size):
        result[i] = 0
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            if columns[at] == column:
                result[i] = codes[at]


@kernel
def spread_codes(starts, columns, codes, rows, place, result):
    """The codes that predicates of these rows give, by column and row: result[place[column], row]."""
    for i in range(rows.size):
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            result[place[columns[at]], i] = codes[at]


@kernel
def join_columns(starts, columns, rows, parent):
    """Give all columns of a row the same parent, and those of rows that share a column (union by path halving)."""
    for i in range(rows.size):
        first = -1
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            root = columns[at]
            while parent[root] != root:
                parent[root] = parent[parent[root]]
                root = parent[root]
            if first < 0:
                first = root
            elif root < first:
                parent[first] = root
                first = root
            else:
                parent[root] = first
    for column in range(parent.size):
        while parent[parent[column]] != parent[column]:
            parent[column] = parent[parent[column]]


@kernel
def mark_columns(starts, columns, rows, used):
    """Mark the columns that these rows ask for."""
    for i in range(rows.size):
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            used[columns[at]] = True


@kernel
def interval_of(starts, columns, low, high, rows, column, lows, spans):
    """For each of these rows, which all ask for the column: the lowest code, and how far the interval goes from there.

    Spans are modulo the width of `spans`, so that a wrapped interval is one interval too.
    """
    for i in range(rows.size):
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            if columns[at] == column:
                lows[i] = low[at]
                spans[i] = (np.int64(high[at]) - np.int64(low[at])) & _LOW_BITS


@kernel
def list_predicates(starts, columns, low, high, rows, key, list_starts, list_columns, list_low, list_span):
    """The predicates of these rows behind each other, but for that on the key column."""
    end = 0
    list_starts[0] = 0
    for i in range(rows.size):
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            if columns[at] != key:
                list_columns[end] = columns[at]
                list_low[end] = low[at]
                list_span[end] = (np.int64(high[at]) - np.int64(low[at])) & _LOW_BITS
                end += 1
        list_starts[i + 1] = end
    return end


@kernel
def count_columns(starts, columns, rows, counts):
    """Count, by column, how many of these rows ask for it."""
    for i in range(rows.size):
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            counts[columns[at]] += 1


@kernel
def column_bits(starts, columns, rows, ranks, result):
    """The columns of each row as bits of a number, by their rank."""
    for i in range(rows.size):
        bits = np.uint64(0)
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            bits |= np.uint64(1) << np.uint64(ranks[columns[at]])
        result[i] = bits


@kernel
def mark_asked(starts, columns, low, high, rows, place, asked):
    """Mark which intervals these rows ask for: asked[place[column], low, high]."""
    for i in range(rows.size):
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            asked[place[columns[at]], low[at], high[at]] = True


@kernel
def classify_codes(asked, classes, firsts):
    """Put codes into one class if the same intervals admit them. No interval admits code 0.

    The first code of each class is written to `firsts`. Returns the number of classes.
    """
    split = np.empty(classes.size, np.int64)
    classes[:] = 0
    firsts[0] = 0
    count = 1
    for low in range(classes.size):
        for high in range(classes.size):
            if not asked[low, high]:
                continue
            span = (high - low) & _LOW_BITS
            split[:count] = -1
            for code in range(1, classes.size):
                old_class = classes[code]
                first = firsts[old_class]
                is_first_inside = first != 0 and (first - low) & _LOW_BITS <= span
                if ((code - low) & _LOW_BITS <= span) != is_first_inside:
                    if split[old_class] < 0:
                        split[old_class] = count
                        firsts[count] = code
                        count += 1
                    classes[code] = split[old_class]
    return count
