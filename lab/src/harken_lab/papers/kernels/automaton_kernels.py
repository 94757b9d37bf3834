"""How the nodes of documents run through an automaton of shared prefixes (YFilter: Diao et al., TODS 28(4), 2003).

The automaton is nondeterministic: many of its states are active at once. Each element of a document pushes the states
that its parent's states lead to onto a stack, and pops them at its end. An accepting state that was active has been
reached by a path; a conjunction of paths all of which were reached makes its subscription a candidate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel

NONE = -1
ELEMENT = 1
BELOW = 0
"""The column of `wildcards` for the state that `//` leads to without consuming a node."""
KINDS = 4
KEY, TARGET = range(2)
_SCATTER = 0x1E37_79B1
_LOW_BITS = 0xFFFF_FFFF


class Automaton(NamedTuple):
    """States and transitions. State 0 is the initial one."""

    slots: NDArray[np.int64]
    """A hash table of transitions by name: state << 32 | symbol, and the target. Its size is a power of two."""
    wildcards: NDArray[np.int32]
    """By state and kind of node, the target for a node of any name, or -1."""
    loops: NDArray[np.bool_]
    """By state, whether it stays active in every element below: it stands behind `//`."""


class PathUses(NamedTuple):
    """Which conjunctions use the path that ends at a state."""

    starts: NDArray[np.int64]
    """By state, where its conjunctions begin."""
    conjunctions: NDArray[np.int32]
    needed: NDArray[np.int32]
    """By conjunction, how many paths it has."""
    owners: NDArray[np.int32]
    """By conjunction, its subscription."""
    always: NDArray[np.int32]
    """Subscriptions that need no path."""


class NodeStream(NamedTuple):
    """The nodes of documents in document order, and the symbol and kind of each tag path."""

    first: NDArray[np.int64]
    path: NDArray[np.int32]
    parent: NDArray[np.int32]
    symbols: NDArray[np.int32]
    """By tag path: the symbol of its last name; 0 if no subscription has that name."""
    kinds: NDArray[np.int32]


class RunRoom(NamedTuple):
    """Scratch arrays."""

    active: NDArray[np.int32]
    """The stack: the active states of each level, one level behind the other."""
    levels: NDArray[np.int64]
    """Where each level begins."""
    depths: NDArray[np.int32]
    """By node of a document, its level."""
    marks: NDArray[np.int64]
    """By state, the last node that made it active."""
    reached: NDArray[np.int64]
    """By state, the last document that reached it."""
    ends: NDArray[np.int32]
    """The states that the document reached."""
    counts: NDArray[np.int32]
    """By conjunction, how many of its paths were reached."""
    seen: NDArray[np.int64]
    """By subscription, the last document of which it is a candidate."""
    clock: NDArray[np.int64]
    """How many nodes, documents and transitions there have been."""


NODES, DOCUMENTS, STEPS = range(3)


@kernel
def place_transitions(keys, targets, slots):
    """Fill an empty hash table."""
    for i in range(keys.size):
        at = _home(keys[i], slots)
        while slots[at, KEY] != NONE:
            at = (at + 1) & (slots.shape[0] - 1)
        slots[at, KEY], slots[at, TARGET] = keys[i], targets[i]


@kernel
def _home(key, slots):
    mixed = ((key >> 32) * _SCATTER ^ (key & _LOW_BITS) * 0x05EB_CA77) & 0x7FFF_FFFF_FFFF
    return (mixed ^ mixed >> 15 ^ mixed >> 32) & (slots.shape[0] - 1)


@inner
def _target(slots, state, symbol):
    key = np.int64(state) << 32 | np.int64(symbol)
    at = _home(key, slots)
    while slots[at, KEY] != NONE:
        if slots[at, KEY] == key:
            return np.int32(slots[at, TARGET])
        at = (at + 1) & (slots.shape[0] - 1)
    return np.int32(NONE)


@kernel
def _activate(automaton, room, state, size, reached_count):
    """Push a state, and the one that `//` leads to from it, unless they are active. Returns both new counts."""
    while state != NONE and room.marks[state] != room.clock[NODES]:
        room.marks[state] = room.clock[NODES]
        room.active[size] = state
        size += 1
        if room.reached[state] != room.clock[DOCUMENTS]:
            room.reached[state] = room.clock[DOCUMENTS]
            room.ends[reached_count] = state
            reached_count += 1
        state = automaton.wildcards[state, BELOW]
    return size, reached_count


@kernel
def _run(automaton, stream, room, document):
    """Run the nodes of a document. Returns how many states it reached, or -1 if the stack is too small."""
    first = stream.first[document]
    active, levels, depths, states = room.active, room.levels, room.depths, automaton.loops.size
    levels[0], depths[0] = 0, 0
    room.clock[NODES] += 1
    levels[1], reached_count = _activate(automaton, room, np.int32(0), np.int64(0), np.int64(0))
    for node in range(first + 1, stream.first[document + 1]):
        above = depths[stream.parent[node] - first]
        begin, stop = levels[above], levels[above + 1]
        if stop + states > active.size or above + 2 >= levels.size:
            return np.int64(NONE)
        tag = stream.path[node]
        symbol, kind, size = stream.symbols[tag], stream.kinds[tag], stop
        room.clock[NODES] += 1
        room.clock[STEPS] += stop - begin
        for at in range(begin, stop):
            state = active[at]
            if kind == ELEMENT and automaton.loops[state]:
                size, reached_count = _activate(automaton, room, state, size, reached_count)
            target = automaton.wildcards[state, kind]
            size, reached_count = _activate(automaton, room, target, size, reached_count)
            if symbol:
                target = _target(automaton.slots, state, symbol)
                size, reached_count = _activate(automaton, room, target, size, reached_count)
        depths[node - first] = above + 1
        levels[above + 2] = size
    return reached_count


@kernel
def find_candidates(automaton, uses, stream, room, first, out, offsets):
    """Write the subscriptions all of whose paths each document has, from the document `first` on.

    Returns the first document for which there is no room, or the end.
    """
    end = offsets[first]
    for document in range(first, stream.first.size - 1):
        if end + uses.owners.size + uses.always.size > out.size:
            return document
        room.clock[DOCUMENTS] += 1
        reached_count = _run(automaton, stream, room, document)
        if reached_count == NONE:
            return document
        for i in range(reached_count):
            state = room.ends[i]
            for at in range(uses.starts[state], uses.starts[state + 1]):
                each = uses.conjunctions[at]
                room.counts[each] += 1
                owner = uses.owners[each]
                if room.counts[each] == uses.needed[each] and room.seen[owner] != room.clock[DOCUMENTS]:
                    room.seen[owner] = room.clock[DOCUMENTS]
                    out[end] = owner
                    end += 1
        for i in range(reached_count):
            state = room.ends[i]
            for at in range(uses.starts[state], uses.starts[state + 1]):
                room.counts[uses.conjunctions[at]] = 0
        for i in range(uses.always.size):
            out[end] = uses.always[i]
            end += 1
        offsets[document + 1] = end
    return stream.first.size - 1
