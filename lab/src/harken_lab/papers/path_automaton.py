"""The automaton of the linear paths of subscriptions: common prefixes are shared (YFilter: Diao et al., 2003).

A path is a chain of transitions from the initial state. A step by name, or `*`, consumes a node; `//` leads, without
consuming one, to a state that stays active in all elements below. Paths that begin with the same steps share states.
States count their uses: the last path to leave takes its own states with it, and their numbers are given again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.events.xml import TagPaths
from harken.language.xpath.ast import Step
from harken.language.xpath.linear import LinearPath
from harken_lab.papers.kernels.automaton_kernels import BELOW, KINDS, NONE, Automaton, place_transitions

_ANY = tuple(range(0, -KINDS, -1))
"""By kind of node, the key of a transition for any name. The first is for `//`."""


class PathAutomaton:
    """Linear paths, each with the state at which it ends."""

    def __init__(self) -> None:
        self._symbols: dict[tuple[int, bytes], int] = {}
        self._targets: list[dict[int, int]] = [{}]
        """By state, the targets by symbol, or by a key of `_ANY`."""
        self._ways: list[tuple[int, int]] = [(NONE, NONE)]
        """By state, the one before it, and the key of the transition between."""
        self._uses: list[int] = [0]
        self._free: list[int] = []
        self._arrays: Automaton | None = None
        self._tags: tuple[TagPaths, int, NDArray[np.int32]] | None = None

    @property
    def states(self) -> int:
        """One more than the greatest state."""
        return len(self._uses)

    @property
    def live_states(self) -> int:
        """The number of states in use, with the initial one."""
        return len(self._uses) - len(self._free)

    def add(self, path: LinearPath) -> int:
        """Add one use of a path. Returns the state at which it ends."""
        state = 0
        self._uses[0] += 1
        for step in path.steps:
            if step.is_descendant:
                state = self._entered(state, BELOW)
            state = self._entered(state, self._key(step))
        return state

    def remove(self, state: int) -> None:
        """Remove one use of the path that ends at a state."""
        while state != NONE:
            before, key = self._ways[state]
            self._uses[state] -= 1
            if not self._uses[state] and state:
                del self._targets[before][key]
                self._free.append(state)
                self._arrays = None
            state = before

    def symbols_of(self, paths: TagPaths) -> NDArray[np.int32]:
        """By tag path, the symbol of its last name; 0 if no path has that name."""
        known = self._tags
        if known is None or known[0] is not paths or known[1] != len(self._symbols):
            known = paths, len(self._symbols), np.zeros(0, np.int32)
        count, before = len(paths), len(known[2])
        if count > before:
            new = [self._symbols.get((int(paths.kind[tag]), paths.name(tag)), 0) for tag in range(before, count)]
            known = *known[:2], np.append(known[2], np.array(new, np.int32))
        self._tags = known
        return known[2]

    @property
    def arrays(self) -> Automaton:
        """The automaton for kernels. Invalid after the next change."""
        if self._arrays is None:
            self._arrays = self._frozen()
        return self._arrays

    def _key(self, step: Step) -> int:
        if step.name is None:
            return _ANY[step.kind]
        return self._symbols.setdefault((int(step.kind), step.name.encode()), len(self._symbols) + 1)

    def _entered(self, state: int, key: int) -> int:
        """The target of a transition, made if it is new, with one more use."""
        target = self._targets[state].get(key)
        if target is None:
            target = self._new(state, key)
            self._targets[state][key] = target
            self._arrays = None
        self._uses[target] += 1
        return target

    def _new(self, before: int, key: int) -> int:
        if self._free:
            state = self._free.pop()
            self._targets[state], self._ways[state], self._uses[state] = {}, (before, key), 0
            return state
        self._targets.append({})
        self._ways.append((before, key))
        self._uses.append(0)
        return len(self._uses) - 1

    def _frozen(self) -> Automaton:
        count = len(self._uses)
        wildcards, loops = np.full((count, KINDS), NONE, np.int32), np.zeros(count, np.bool_)
        ways, uses = np.array(self._ways, np.int64).reshape(count, 2), np.array(self._uses)
        live = np.flatnonzero(uses[1:] > 0) + 1
        before, keys = ways[live, 0], ways[live, 1]
        is_any = keys <= 0
        wildcards[before[is_any], -keys[is_any]] = live[is_any]
        loops[live[keys == BELOW]] = True
        named = live[~is_any]
        slots = np.full((1 << max(4, (2 * len(named)).bit_length()), 2), NONE, np.int64)
        place_transitions(before[~is_any] << 32 | keys[~is_any], named, slots)
        return Automaton(slots, wildcards, loops)
