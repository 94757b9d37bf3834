"""Conjunctions of expensive literals, and the predicates that they share, as growing arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.frozen import frozen
from harken.kernels.ordering import (
    CURSORS,
    NOTHING,
    Course,
    Graph,
    Weights,
    greedy_paths,
    pair_chains,
    sort_chains,
)

_WIDTH = 8
"""Number of chains that a chain is compared with, for each literal that they share.

With 64, evaluations change by -1.3 to +2.6 percent, and ordering takes up to five times as long."""
_MOST_PAIRS = 4_000_000
_NEVER_FAILS = 1e-6
"""Minimum estimate of the chance that a literal fails, so that its worth is never 0."""
_PRIOR = 4.0
"""Weight of the prior chance of a literal, in outcomes."""
_UNLEARNT = 0.5


class Growing:
    """An array that grows at its end. Views returned earlier stay valid."""

    __slots__ = ("_array", "size")

    def __init__(self, dtype: Any, size: int = 0) -> None:
        self._array = np.zeros(max(16, size), dtype)
        self.size = size

    def add(self, values: Sequence[Any] | NDArray[Any]) -> None:
        size = self.size + len(values)
        if size > len(self._array):
            larger = np.zeros(max(size, 2 * len(self._array)), self._array.dtype)
            larger[: self.size] = self._array[: self.size]
            self._array = larger
        self._array[self.size : size] = values
        self.size = size

    def view(self) -> NDArray[Any]:
        return self._array[: self.size]

    def renew(self) -> None:
        """Replace the array by a copy, so that later writes do not reach views returned earlier."""
        self._array = self._array.copy()


class FrozenGraph(NamedTuple):
    """A graph at one moment, for kernels: words, and the arrays that they point to."""

    graph_words: Any
    weights_words: Any
    graph: Graph
    weights: Weights


class OperatorGraph:
    """The graph of conjunctions, literals and predicates, with statistics of their outcomes.

    Conjunctions are numbered in the order in which they are added. A removed one keeps its number, but is no candidate
    any more. A match reads a FrozenGraph: later changes copy its arrays, except those that only grow.
    """

    def __init__(self) -> None:
        self._predicate_first = Growing(np.int32)
        self._cost = Growing(np.float64)
        self._literal = {name: Growing(np.int32) for name in ("predicate", "next", "first")}
        self._tried, self._held, self._guess = Growing(np.int64), Growing(np.int64), Growing(np.float64)
        self._slot = {name: Growing(np.int32) for name in ("literal", "conjunction", "next", "chain")}
        self._begin, self._sibling, self._is_joined = Growing(np.int32, 1), Growing(np.int32), Growing(np.uint8)
        self._last_literal: dict[int, int] = {}
        """The last literal of each predicate."""
        self._order = np.empty(0, np.int32)
        self._failing = Growing(np.float64)
        self._ordered_at = 0
        """Number of conjunctions when chains were last ordered."""
        self._frozen: FrozenGraph | None = None

    @property
    def conjunctions(self) -> int:
        return self._sibling.size

    @property
    def literals(self) -> int:
        return self._tried.size

    @property
    def predicates(self) -> int:
        return self._predicate_first.size

    # Growing

    def _change(self) -> None:
        """Copy the arrays that matches may be reading, before they are changed."""
        if self._frozen is not None:
            self._frozen = None
            for array in (self._predicate_first, self._literal["next"], self._literal["first"], self._sibling):
                array.renew()
            self._cost.renew()
            self._slot["chain"].renew()

    def add_predicate(self, cost: float) -> int:
        self._change()
        self._predicate_first.add([NOTHING])
        self._cost.add([cost])
        return self.predicates - 1

    def add_literal(self, predicate: int, guess: float = _UNLEARNT) -> int:
        """Add a literal of a predicate. `guess` is the prior chance that it holds."""
        self._change()
        number = self.literals
        firsts = self._predicate_first.view()
        self._literal["predicate"].add([predicate])
        self._literal["next"].add([NOTHING])
        self._literal["first"].add([NOTHING])
        for array, value in ((self._tried, 0), (self._held, 0), (self._guess, guess)):
            array.add([value])
        if firsts[predicate] == NOTHING:
            firsts[predicate] = number
        else:  # appended: literals of a predicate are settled in the order in which they were added
            self._literal["next"].view()[self._last_literal[predicate]] = number
        self._last_literal[predicate] = number
        self._failing.add([max(_NEVER_FAILS, 1.0 - guess)])
        return number

    def add_conjunction(self, literals: Sequence[int], is_joined: bool = False, sibling: int | None = None) -> int:
        """Add a conjunction of distinct literals. `sibling` is another conjunction of the same subscription."""
        self._change()
        number = self.conjunctions
        slots = range(self._slot["literal"].size, self._slot["literal"].size + len(literals))
        firsts = self._literal["first"].view()
        self._slot["literal"].add(literals)
        self._slot["conjunction"].add([number] * len(literals))
        self._slot["next"].add(firsts[list(literals)] if len(literals) else [])
        self._slot["chain"].add(slots)
        firsts[list(literals)] = slots
        self._begin.add([slots.stop])
        self._is_joined.add([is_joined])
        self._sibling.add([number])
        if sibling is not None:
            ring = self._sibling.view()
            ring[number], ring[sibling] = ring[sibling], number
        return number

    @classmethod
    def of_arrays(
        cls, starts: NDArray[np.int64], predicates: NDArray[np.int32], costs: NDArray[np.float64]
    ) -> OperatorGraph:
        """A graph of many conjunctions of predicates, none negated."""
        made = cls()
        count, slots = len(costs), len(predicates)
        numbers = np.arange(count, dtype=np.int32)
        made._predicate_first.add(numbers)
        made._cost.add(costs)
        made._literal["predicate"].add(numbers)
        made._literal["next"].add(np.full(count, NOTHING, np.int32))
        order = np.argsort(predicates, kind="stable")
        following = np.full(slots, NOTHING, np.int32)
        same = predicates[order][1:] == predicates[order][:-1]
        following[order[:-1][same]] = order[1:][same]
        firsts = np.full(count, NOTHING, np.int32)
        firsts[predicates[order][::-1]] = order[::-1]
        made._literal["first"].add(firsts)
        for array in (made._tried, made._held):
            array.add(np.zeros(count, np.int64))
        made._guess.add(np.full(count, _UNLEARNT))
        made._failing.add(np.full(count, 1.0 - _UNLEARNT))
        conjunctions = len(starts) - 1
        made._slot["literal"].add(predicates)
        made._slot["conjunction"].add(np.repeat(np.arange(conjunctions), np.diff(starts)))
        made._slot["next"].add(following)
        made._slot["chain"].add(np.arange(slots))
        made._begin.add(starts[1:])
        made._sibling.add(np.arange(conjunctions))
        made._is_joined.add(np.zeros(conjunctions, np.uint8))
        return made

    # Statistics

    def learn(self) -> None:
        """Update the chances from the counted outcomes, for the next events."""
        tried, held, guess = self._tried.view(), self._held.view(), self._guess.view()
        self.set_known((held + _PRIOR * guess) / (tried + _PRIOR))

    def set_known(self, holding: NDArray[np.float64]) -> None:
        """Set the chance of each literal to hold."""
        self._change()
        self._failing.renew()
        self._failing.view()[:] = np.maximum(_NEVER_FAILS, 1.0 - holding)

    def set_costs(self, costs: Sequence[float] | NDArray[np.float64]) -> None:
        self._change()
        self._cost.view()[:] = costs

    def recall(self, tried: Sequence[int], held: Sequence[int]) -> None:
        """Take over counted outcomes."""
        self._tried.view()[:] = tried
        self._held.view()[:] = held
        self.learn()

    def holding(self) -> NDArray[np.float64]:
        """The estimated chance of each literal to hold."""
        return np.asarray(1.0 - self._failing.view())

    def outcomes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The number of outcomes of each literal, and how many of them held."""
        return self._tried.view(), self._held.view()

    def popularity(self) -> NDArray[np.int64]:
        """The number of conjunctions with each literal, including removed ones."""
        return np.bincount(self._slot["literal"].view(), minlength=self.literals)

    # Chains

    def order_chains(self) -> None:
        """Reorder all chains: pairwise differences of cost, then greedy edges (the paper's Sub-Order)."""
        self._change()
        self._sort_chains(0)
        graph, weights = self._tuples()
        ranked, starts = self._ranked(graph, weights)
        size = min(_MOST_PAIRS, _WIDTH * len(ranked) + 1)
        before, after = np.empty(size, np.int32), np.empty(size, np.int32)
        savings = np.empty(size)
        count = int(pair_chains(frozen(graph), frozen(weights), ranked, starts, _WIDTH, before, after, savings))
        edges = np.argsort(-savings[:count], kind="stable")
        chains = self.conjunctions
        following, is_led = np.full(chains, NOTHING, np.int32), np.zeros(chains, np.uint8)
        greedy_paths(before, after, edges, following, is_led, np.arange(chains, dtype=np.int32))
        path, place = np.empty(chains, np.int32), 0
        for head in np.flatnonzero(is_led == 0).tolist():
            at = head
            while at != NOTHING:
                path[place] = at
                place += 1
                at = following[at]
        self._order = path
        self._ordered_at = chains

    def chains_ready(self) -> None:
        """Update the order of chains. New ones are appended, until they are more than a quarter of the ordered ones."""
        added = self.conjunctions - self._ordered_at
        if added > self._ordered_at // 4:
            self.order_chains()
        elif len(self._order) < self.conjunctions:
            self._change()
            first = len(self._order)
            self._sort_chains(first)
            self._order = np.concatenate([self._order, np.arange(first, self.conjunctions, dtype=np.int32)])

    def _sort_chains(self, first: int) -> None:
        graph, weights = self._tuples()
        sort_chains(frozen(graph), frozen(weights), first)

    def _ranked(self, graph: Graph, weights: Weights) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The slots of each literal, in descending order of P / C: the chains that reach it soonest come first."""
        slots = graph.slot_literal
        chained = slots[graph.chain]
        chance, cost = 1.0 - weights.failing[chained], weights.cost[graph.literal_predicate[chained]]
        heads = graph.begin[:-1][np.diff(graph.begin) > 0]
        reach, spent = np.ones(len(slots)), np.zeros(len(slots))
        place = heads.copy()
        ends = graph.begin[1:][np.diff(graph.begin) > 0]
        while len(place):
            continues = place + 1 < ends
            place, ends = place[continues], ends[continues]
            reach[place + 1] = reach[place] * chance[place]
            spent[place + 1] = spent[place] + reach[place] * cost[place]
            place = place + 1
        with np.errstate(divide="ignore"):
            ratio = reach / spent
        order = np.lexsort((-ratio, chained))
        starts = np.concatenate([[0], np.cumsum(np.bincount(chained, minlength=self.literals))])
        return graph.chain[order].astype(np.int32), starts

    # For kernels

    def held(self) -> FrozenGraph:
        """The present graph, as kernels take it."""
        if self._frozen is None:
            graph, weights = self._tuples()
            self._frozen = FrozenGraph(frozen(graph), frozen(weights), graph, weights)
        return self._frozen

    def _tuples(self) -> tuple[Graph, Weights]:
        literal, slot = self._literal, self._slot
        graph = Graph(
            self._predicate_first.view(),
            literal["predicate"].view(),
            literal["next"].view(),
            literal["first"].view(),
            slot["literal"].view(),
            slot["conjunction"].view(),
            slot["next"].view(),
            self._begin.view(),
            self._sibling.view(),
            self._is_joined.view(),
            slot["chain"].view(),
            self._order,
        )
        return graph, Weights(self._failing.view(), self._cost.view(), self._tried.view(), self._held.view())


def course_of(frozen_graph: FrozenGraph) -> tuple[Course, Any]:
    """Work space for one event, and its words."""
    graph = frozen_graph.graph
    conjunctions, literals, predicates = len(graph.sibling), len(graph.literal_next), len(graph.predicate_first)
    made = Course(
        np.zeros(CURSORS, np.int64),
        np.zeros(conjunctions, np.uint8),
        np.zeros(conjunctions, np.int32),
        np.zeros(literals, np.int32),
        np.zeros(literals, np.uint8),
        np.zeros(predicates, np.uint8),
        np.zeros(predicates, np.int32),
        np.zeros(predicates, np.float64),
        np.zeros(conjunctions, np.int32),
    )
    return made, frozen(made)
