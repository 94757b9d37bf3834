"""XPath by an automaton in memory that shares prefixes of paths, in the manner of YFilter (Diao et al., TODS 2003).

Tian et al. (SIGMOD 2004, section 2) set their tables against automata. The linear paths of all subscriptions are one
nondeterministic automaton, through which the nodes of a document run with a stack of sets of active states. Selection
is postponed: comparisons of values, and whether branches meet at one node, are decided afterwards, by the programs of
`xpath`, for the subscriptions whose paths the document has. An expression with `not`, or one that programs only cover,
is a candidate of every document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.flat import Flat
from harken.concurrency.forking import MATCHER, fork_lock
from harken.errors import HarkenError, LimitError, UnavailableError
from harken.events import EventBatch
from harken.events.xml import Documents
from harken.language.capabilities import Capability
from harken.language.xpath.ast import Expression
from harken.language.xpath.document_plan import DocumentPlan
from harken.language.xpath.linear import conjunctions
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Entry, FormOf, MatchResult, Trait
from harken.schema import Kind
from harken.schema.paths import DOCUMENT, Path
from harken_lab.papers.candidate_programs import CandidatePrograms
from harken_lab.papers.kernels.automaton_kernels import (
    DOCUMENTS,
    NODES,
    STEPS,
    NodeStream,
    PathUses,
    RunRoom,
    find_candidates,
)
from harken_lab.papers.path_automaton import PathAutomaton

_COLUMNS = (Column(DOCUMENT, Kind.STRING),)
_LEAST_STACK = 1 << 16
_LEAST_DEPTH = 64


class YFilter:
    """In memory: an automaton of the linear paths, which share prefixes; values are compared afterwards."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.UNSUBSCRIBE, Trait.IN_PLACE})

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._lock = fork_lock(MATCHER)
        self._automaton = PathAutomaton()
        self._programs = CandidatePrograms(limits)
        self._rules = PathRules()
        self._stack, self._depth = _LEAST_STACK, _LEAST_DEPTH
        self._clock = np.zeros(3, np.int64)
        self._seen = [0, 0]
        """The numbers of documents matched, and of their candidates."""

    def __len__(self) -> int:
        return len(self._rules)

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        with self._lock:
            self._remove(replaced)
            expressions: dict[int, Expression] = {}
            for entry in entries:
                plan = entry.compiled.plan
                assert isinstance(plan, DocumentPlan), "subscriptions to attributes are in another index"
                expressions[entry.number] = plan.expression
                self._rules.add(entry.number, self._conjunctions(plan.expression))
            self._programs.add_expressions(expressions)

    def remove(self, numbers: Iterable[int]) -> None:
        with self._lock:
            self._remove(list(numbers))

    def _remove(self, numbers: Collection[int]) -> None:
        for number in numbers:
            for states in self._rules.remove(number):
                for state in states:
                    self._automaton.remove(state)
        if numbers:
            self._programs.remove(numbers)

    def _conjunctions(self, expression: Expression) -> list[set[int]]:
        """For each alternative, the states at which its paths end; one without paths if there is no normal form."""
        try:
            alternatives = conjunctions(expression, self._limits)
        except (UnavailableError, LimitError):
            return [set()]
        paths = [{branch.path for branch in each.branches} for each in alternatives]
        return [{self._automaton.add(path) for path in each} for each in paths]

    # Matching

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        documents = batch.documents(DOCUMENT, self._limits)
        with self._lock:
            if not len(self._rules) or not len(documents):
                return MatchResult.empty(len(batch))
            offsets, candidates = self._candidates(documents)
            counts, numbers, _, failed = self._programs.accepted(documents, offsets, candidates)
            self._seen[0] += len(documents)
            self._seen[1] += len(candidates)
        # An event with several documents matches once.
        owners = documents.owner.astype(np.int64)
        pairs = np.unique(np.repeat(owners, np.diff(counts)) << 32 | numbers)
        ends = np.zeros(len(batch) + 1, np.int64)
        np.cumsum(np.bincount(pairs >> 32, minlength=len(batch)), out=ends[1:])
        examined = np.zeros(len(batch), np.int64)
        np.add.at(examined, owners, np.diff(offsets))
        errors: list[tuple[int, int, HarkenError]] = [(int(owners[at]), number, error) for at, number, error in failed]
        return MatchResult(ends, (pairs & 0xFFFFFFFF).astype(np.int32), examined, errors)

    def _candidates(self, documents: Documents) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The subscriptions all of whose paths each document has: offsets by document, and numbers."""
        automaton, uses = self._automaton.arrays, self._rules.arrays(self._automaton.states)
        symbols = self._automaton.symbols_of(documents.paths)
        kinds = documents.paths.kind[: len(symbols)].astype(np.int32)
        stream = NodeStream(documents.first, documents.path, documents.parent, symbols, kinds)
        most = len(uses.owners) + len(uses.always)
        out, offsets = np.empty(max(1 << 16, 2 * most), np.int32), np.zeros(len(documents) + 1, np.int64)
        done = 0
        while True:
            room = self._room(int(np.diff(documents.first).max()), uses)
            done = find_candidates(automaton, uses, stream, room, done, out, offsets)
            if done == len(documents):
                return offsets, out[: offsets[-1]]
            if offsets[done] + most > len(out):
                out = np.concatenate([out[: offsets[done]], np.empty(2 * len(out) + most, np.int32)])
            else:
                self._stack, self._depth = 2 * self._stack, 2 * self._depth

    def _room(self, nodes: int, uses: PathUses) -> RunRoom:
        states = self._automaton.states
        self._stack = max(self._stack, 4 * states)
        return RunRoom(
            active=np.empty(self._stack, np.int32),
            levels=np.empty(self._depth, np.int64),
            depths=np.empty(nodes + 1, np.int32),
            marks=np.zeros(states, np.int64),
            reached=np.zeros(states, np.int64),
            ends=np.empty(states, np.int32),
            counts=np.zeros(len(uses.needed), np.int32),
            seen=np.zeros(self._rules.most + 1, np.int64),
            clock=self._clock,
        )

    # Contents

    def columns(self) -> tuple[Column, ...]:
        """The columns that subscriptions read: that of the document."""
        return _COLUMNS

    def paths(self) -> tuple[set[Path], list[int]]:
        """The attributes that subscriptions read: the document."""
        return {DOCUMENT}, []

    def flats(self) -> list[Flat]:
        """No rows: conditions on a document cannot be rows."""
        return []

    def document_paths(self) -> tuple[Path, ...]:
        """The attribute that is read as a document."""
        return (DOCUMENT,) if len(self._rules) else ()

    def stats(self) -> dict[str, Any]:
        with self._lock:
            automaton, uses = self._automaton.arrays, self._rules.arrays(self._automaton.states)
            memory = {
                "automaton": sum(each.nbytes for each in automaton),
                "uses": sum(each.nbytes for each in uses),
                "programs": int(self._programs.stats()["memory"]["bytes"]),
            }
            documents, candidates = self._seen
            return {
                "subscriptions": len(self._rules),
                "states": self._automaton.live_states,
                "linear_paths": self._rules.paths,
                "memory": memory,
                "documents": documents,
                "nodes": int(self._clock[NODES] - self._clock[DOCUMENTS]),
                "steps": int(self._clock[STEPS]),
                "seen_programs": round(candidates / documents, 2) if documents else None,
            }


class PathRules:
    """The conjunctions of subscriptions: the states at which their paths end."""

    def __init__(self) -> None:
        self._of: dict[int, list[set[int]]] = {}
        self._arrays: PathUses | None = None
        self.most = 0
        """The greatest number of a subscription so far."""

    def __len__(self) -> int:
        return len(self._of)

    @property
    def paths(self) -> int:
        """The number of different paths."""
        return len({state for alternatives in self._of.values() for states in alternatives for state in states})

    def add(self, number: int, alternatives: list[set[int]]) -> None:
        self._of[number] = alternatives
        self.most = max(self.most, number)
        self._arrays = None

    def remove(self, number: int) -> list[set[int]]:
        """Remove a subscription. Returns its alternatives."""
        self._arrays = None
        return self._of.pop(number)

    def arrays(self, states: int) -> PathUses:
        """The rules for kernels, for this many states."""
        if self._arrays is None or len(self._arrays.starts) != states + 1:
            always = [number for number, alternatives in self._of.items() if set() in alternatives]
            others = [
                (number, sorted(each))
                for number, alternatives in self._of.items()
                if set() not in alternatives
                for each in alternatives
            ]
            needed = np.array([len(each) for _, each in others], np.int32)
            ends = np.array([state for _, each in others for state in each], np.int64)
            order = np.argsort(ends, kind="stable")
            starts = np.zeros(states + 1, np.int64)
            np.cumsum(np.bincount(ends, minlength=states), out=starts[1:])
            self._arrays = PathUses(
                starts,
                np.repeat(np.arange(len(others), dtype=np.int32), needed)[order],
                needed,
                np.array([number for number, _ in others], np.int32),
                np.array(always, np.int32),
            )
        return self._arrays
