"""Programs: subscriptions as short runs of tests with two jumps each, found through covers and decided in a kernel.

A *cover* is a set of predicates one of which holds whenever the subscription does: of AND the cover of one item, of OR
those of all. Covers are keys: an event looks up its codes and the patterns that its texts fit, and runs the programs
under them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inlined, kernel
from harken.kernels.frozen import thawing
from harken.kernels.text_patterns import Patterns, scan

EVERY, SOME = -1, -2
"""Inner nodes of a tree: AND, and OR."""
ACCEPT, REJECT = -1, -2
"""Where a program may jump to besides its tests."""
CODES, FITS, FITS_NOT, ASSUMED = 0, 1, 2, 3
"""Kinds of leaves: a code in some intervals, a pattern that fits or does not, and what only verification can decide."""
_NEVER = np.inf


class Programs(NamedTuple):
    """The programs of an index, and the keys by which events look them up."""

    test_at: NDArray[np.int64]
    leaf: NDArray[np.int32]
    if_true: NDArray[np.int32]
    if_false: NDArray[np.int32]
    """Tests by their places from the program's first one."""
    has_assumed: NDArray[np.bool_]
    leaf_kind: NDArray[np.uint8]
    leaf_of: NDArray[np.int32]
    """The column or the pattern that a leaf is about."""
    piece_at: NDArray[np.int64]
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    """The intervals of each leaf on codes, ascending; one that is wrapped, with low > high, stands alone."""
    key_columns: NDArray[np.int32]
    first_key: NDArray[np.int64]
    """By column: the key of its code 0."""
    by_code_at: NDArray[np.int64]
    by_code: NDArray[np.int32]
    by_pattern_at: NDArray[np.int64]
    by_pattern: NDArray[np.int32]
    always: NDArray[np.int32]
    """Programs without a cover."""


class ProgramIndex(NamedTuple):
    """The arrays that `match_programs` searches."""

    programs: Programs
    patterns: Patterns


class ProgramRoom(NamedTuple):
    """Working arrays of one thread. An entry with the stamp of an event belongs to that event."""

    stamp: NDArray[np.int32]
    fitting: NDArray[np.int32]
    """By pattern: the stamp of the last event that it fitted."""
    tried: NDArray[np.int32]
    """By pattern: the stamp of the last text that was compared with all of it."""
    found: NDArray[np.int32]
    """By program: the stamp of the last event that looked it up."""
    fitted: NDArray[np.int32]
    waiting: NDArray[np.int32]
    hits: NDArray[np.int64]
    """By pattern: the number of events that fitted it."""


_thawed_index, _thawed_room = thawing(ProgramIndex), thawing(ProgramRoom)


@kernel
def compile_trees(starts, nodes, ends, cost, weight, goto, chosen, test_at, leaf, if_true, if_false, covers, covered):
    """Write the tests of every program, and the leaves of its cover with the program's place.

    `weight`, `goto` and `chosen` are space for the nodes of one tree. Returns the number of leaves in all covers. A
    program without a cover has the leaf -1.
    """
    tests, pairs = 0, 0
    for program in range(len(starts) - 1):
        first, count = starts[program], starts[program + 1] - starts[program]
        test_at[program] = tests
        for node in range(count - 1, -1, -1):  # children stand behind their parents
            kind = nodes[first + node]
            if kind >= 0:
                weight[node] = cost[kind]
                continue
            total = _NEVER if kind == EVERY else 0.0
            child = node + 1
            while child < ends[first + node]:
                total = min(total, weight[child]) if kind == EVERY else total + weight[child]
                child = ends[first + child]
            weight[node] = total
        chosen[:count] = False
        chosen[0] = weight[0] < 1.0  # else running it on every event costs no more
        if not chosen[0]:
            covers[pairs], covered[pairs] = -1, program
            pairs += 1
        goto[0, 0], goto[0, 1] = ACCEPT, REJECT
        size = 0
        for node in range(count):
            kind = nodes[first + node]
            if kind >= 0:
                leaf[tests + size], if_true[tests + size], if_false[tests + size] = kind, goto[node, 0], goto[node, 1]
                goto[node, 2] = size
                size += 1
                if chosen[node]:
                    covers[pairs], covered[pairs] = kind, program
                    pairs += 1
                continue
            goto[node, 2] = size
            child, best = node + 1, -1
            while child < ends[first + node]:
                following = ends[first + child]
                is_last = following >= ends[first + node]
                goto[child, 0], goto[child, 1] = goto[node, 0], goto[node, 1]
                if not is_last:
                    goto[child, 0 if kind == EVERY else 1] = following
                if chosen[node] and kind == SOME:
                    chosen[child] = True
                if best < 0 or weight[child] < weight[best]:
                    best = child
                child = following
            if chosen[node] and kind == EVERY and best >= 0:
                chosen[best] = True
        for test in range(tests, tests + size):  # from nodes to the first tests in them
            if if_true[test] >= 0:
                if_true[test] = goto[if_true[test], 2]
            if if_false[test] >= 0:
                if_false[test] = goto[if_false[test], 2]
        tests += size
    test_at[len(starts) - 1] = tests
    return pairs


@inlined
def _admits(low, high, first, last, code):
    """Whether a code lies in one of the intervals first:last."""
    if code == 0:
        return False
    if last - first == 1 and low[first] > high[first]:
        return code >= low[first] or code <= high[first]
    while last - first > 1:  # the last interval that does not begin behind the code
        middle = (first + last) >> 1
        if low[middle] <= code:
            first = middle
        else:
            last = middle
    return low[first] <= code <= high[first]


@kernel
def match_programs(
    index,
    room,
    alive,
    codes,
    place_of,
    several_at,
    several,
    data,
    begins,
    ends,
    text_at,
    regex_at,
    regexes,
    first,
    out,
    doubts,
    offsets,
    candidates,
):
    """Write the programs that hold for each event from `first` on, and whether each has to be verified.

    Returns the first event without room, or the number of events. `text_at` has, by column of texts and by
    event, where its texts begin in `begins` and `ends`; `regexes` has the patterns that another search has decided.
    `place_of` is -1 for events with one binding; others have their codes in `several`, by place and by column. Their
    tests pass if any value passes, and all their matches have to be verified.
    """
    searched, space = _thawed_index(index), _thawed_room(room)
    programs, patterns = searched.programs, searched.patterns
    fitting, reached, fitted, waiting = space.fitting, space.found, space.fitted, space.waiting
    columns, events = codes.shape
    texts = len(text_at)
    stamp = space.stamp[0]
    written = offsets[first]
    for event in range(first, events):
        stamp += np.int32(1)
        fits = 0
        for column in range(texts):
            for text in range(text_at[column, event], text_at[column, event + 1]):
                space.stamp[1] += 1
                fits = scan(
                    patterns,
                    column,
                    data,
                    begins[text],
                    ends[text],
                    stamp,
                    space.stamp[1],
                    fitting,
                    space.tried,
                    fitted,
                    fits,
                )
        for entry in range(regex_at[event], regex_at[event + 1]):
            pattern = regexes[entry]
            if fitting[pattern] != stamp:
                fitting[pattern] = stamp
                fitted[fits] = pattern
                fits += 1
        # The programs under the event's keys.
        wait = 0
        for entry in range(len(programs.always)):
            waiting[wait] = programs.always[entry]
            wait += 1
        for each in range(fits):
            pattern = fitted[each]
            space.hits[pattern] += 1
            for entry in range(programs.by_pattern_at[pattern], programs.by_pattern_at[pattern + 1]):
                program = programs.by_pattern[entry]
                if reached[program] != stamp:
                    reached[program] = stamp
                    waiting[wait] = program
                    wait += 1
        place = place_of[event]
        for each in range(len(programs.key_columns)):
            column = programs.key_columns[each]
            begin, end = np.int64(0), np.int64(1)
            if place >= 0:
                begin, end = several_at[place * columns + column], several_at[place * columns + column + 1]
            for value in range(begin, end):
                code = codes[column, event] if place < 0 else several[value]
                if code == 0:
                    continue
                key = programs.first_key[column] + code
                for entry in range(programs.by_code_at[key], programs.by_code_at[key + 1]):
                    program = programs.by_code[entry]
                    if reached[program] != stamp:
                        reached[program] = stamp
                        waiting[wait] = program
                        wait += 1
        if written + wait > len(out):
            space.stamp[0] = stamp
            return event
        candidates[event] = wait
        for each in range(wait):
            program = waiting[each]
            if not alive[program]:
                continue
            begin = programs.test_at[program]
            accepted = False
            turns = 2 if programs.has_assumed[program] else 1
            turn = 0
            while turn < turns and not accepted:
                test = np.int64(0) if programs.test_at[program + 1] > begin else np.int64(ACCEPT)
                while test >= 0:
                    leaf = programs.leaf[begin + test]
                    kind, of = programs.leaf_kind[leaf], programs.leaf_of[leaf]
                    passes = False
                    if kind == CODES:
                        piece, last = programs.piece_at[leaf], programs.piece_at[leaf + 1]
                        if place < 0:
                            passes = _admits(programs.low, programs.high, piece, last, codes[of, event])
                        else:
                            at = several_at[place * columns + of]
                            while not passes and at < several_at[place * columns + of + 1]:
                                passes = _admits(programs.low, programs.high, piece, last, several[at])
                                at += 1
                    elif kind == FITS:
                        passes = fitting[of] == stamp
                    elif kind == FITS_NOT:
                        column = patterns.column[of]
                        has_text = text_at[column, event + 1] > text_at[column, event]
                        passes = has_text and (place >= 0 or fitting[of] != stamp)
                    else:
                        passes = turn == 1
                    test = np.int64(programs.if_true[begin + test] if passes else programs.if_false[begin + test])
                accepted = test == ACCEPT
                turn += 1
            if accepted:
                out[written] = program
                doubts[written] = turn == 2 or place >= 0
                written += 1
        offsets[event + 1] = written
    space.stamp[0] = stamp
    return events
