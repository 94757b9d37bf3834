"""Conjunctions of expensive literals, and the predicates that they share: arrays that grow at their end."""

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
"""Chains that each is compared with, of those that share a literal with it."""
_MOST_PAIRS = 4_000_000
_NEVER_FAILS = 1e-6
"""The least that a literal is taken to be likely to fail: what is needed is always worth something."""
_PRIOR = 4.0
"""Outcomes that the first guess of a literal counts as much as."""
_UNLEARNT = 0.5


class Growing:
    """An array that grows at its end. What was handed out before stays as it is."""

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
        """Go on with a copy: what was handed out is changed no more."""
        self._array = self._array.copy()


class Held(NamedTuple):
    """A graph as it was at a moment, for kernels: words, and the arrays that they point to."""

    graph_words: Any
    weights_words: Any
    graph: Graph
    weights: Weights


class OperatorGraph:
    """The graph of conjunctions, literals and predicates, and what is known of their outcomes.

    Conjunctions are numbered as they come. One that leaves keeps its number, and is no candidate any more. Whoever
    matches holds the graph of a moment: what is changed after that is changed in copies, but for what only grows.
    """

    def __init__(self) -> None:
        self._predicate_first = Growing(np.int32)
        self._cost = Growing(np.float64)
        self._literal = {name: Growing(np.int32) for name in ("predicate", "next", "first")}
        self._tried, self._held, self._guess = Growing(np.int64), Growing(np.int64), Growing(np.float64)
        self._slot = {name: Growing(np.int32) for name in ("literal", "conjunction", "next", "chain")}
        self._begin, self._sibling, self._is_joined = Growing(np.int32, 1), Growing(np.int32), Growing(np.uint8)
        self._last_literal: dict[int, int] = {}
        """Of each predicate."""
        self._order = np.empty(0, np.int32)
        self._failing = Growing(np.float64)
        self._ordered_at = 0
        """How many conjunctions there were when chains were ordered."""
        self._held_out: Held | None = None

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
        """Before a change: leave alone what somebody may be matching by."""
        if self._held_out is not None:
            self._held_out = None
            for each in (self._predicate_first, self._literal["next"], self._literal["first"], self._sibling):
                each.renew()
            self._cost.renew()
            self._slot["chain"].renew()

    def add_predicate(self, cost: float) -> int:
        self._change()
        self._predicate_first.add([NOTHING])
        self._cost.add([cost])
        return self.predicates - 1

    def add_literal(self, predicate: int, guess: float = _UNLEARNT) -> int:
        """One more thing to want of a predicate. `guess` is how likely it holds, as long as nothing is learnt."""
        self._change()
        number = self.literals
        firsts = self._predicate_first.view()
        self._literal["predicate"].add([predicate])
        self._literal["next"].add([NOTHING])
        self._literal["first"].add([NOTHING])
        for each, value in ((self._tried, 0), (self._held, 0), (self._guess, guess)):
            each.add([value])
        if firsts[predicate] == NOTHING:
            firsts[predicate] = number
        else:  # at the end: literals of a predicate are settled in the order in which they came
            self._literal["next"].view()[self._last_literal[predicate]] = number
        self._last_literal[predicate] = number
        self._failing.add([max(_NEVER_FAILS, 1.0 - guess)])
        return number

    def add_conjunction(self, literals: Sequence[int], is_joined: bool = False, sibling: int | None = None) -> int:
        """A conjunction of literals, each once; `sibling` is another of the same subscription."""
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
        """A graph of many conjunctions at once, each of predicates that are wanted to hold."""
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
        for each in (made._tried, made._held):
            each.add(np.zeros(count, np.int64))
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

    # What is known

    def learn(self) -> None:
        """Take what was counted of outcomes into account, from the next event on."""
        tried, held, guess = self._tried.view(), self._held.view(), self._guess.view()
        self.set_known((held + _PRIOR * guess) / (tried + _PRIOR))

    def set_known(self, holding: NDArray[np.float64]) -> None:
        """Take it as known how likely each literal holds."""
        self._change()
        self._failing.renew()
        self._failing.view()[:] = np.maximum(_NEVER_FAILS, 1.0 - holding)

    def set_costs(self, costs: Sequence[float] | NDArray[np.float64]) -> None:
        self._change()
        self._cost.view()[:] = costs

    def recall(self, tried: Sequence[int], held: Sequence[int]) -> None:
        """Take over what was counted before."""
        self._tried.view()[:] = tried
        self._held.view()[:] = held
        self.learn()

    def holding(self) -> NDArray[np.float64]:
        """How likely each literal is taken to hold."""
        return np.asarray(1.0 - self._failing.view())

    def outcomes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How often the outcome of each literal was learnt, and how often it held."""
        return self._tried.view(), self._held.view()

    def popularity(self) -> NDArray[np.int64]:
        """How many conjunctions have each literal, those that left included."""
        return np.bincount(self._slot["literal"].view(), minlength=self.literals)

    # Chains

    def order_chains(self) -> None:
        """Fix the order of all chains anew: pairwise differences of cost, then greedy edges (the paper's Sub-Order)."""
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
        # Pairs say which of two chains comes first, not how much either settles: what begins with a literal that
        # settles much comes before all others, and of those that begin with the same one the path tells the order.
        order = path[np.argsort(-self._first_worth(graph, weights)[path], kind="stable")]
        self._order = order
        self._ordered_at = chains

    def chains_ready(self) -> None:
        """Have an order of chains: new ones are set behind the others until they are a quarter of all."""
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
        """The slots of each literal, those first whose chains get there soonest: by P / C."""
        slots = graph.slot_literal
        chained = slots[graph.chain]
        chance, cost = 1.0 - weights.failing[chained], weights.cost[graph.literal_predicate[chained]]
        heads = graph.begin[:-1][np.diff(graph.begin) > 0]
        reach, spent = np.ones(len(slots)), np.zeros(len(slots))
        place = heads.copy()
        ends = graph.begin[1:][np.diff(graph.begin) > 0]
        while len(place):
            on = place + 1 < ends
            place, ends = place[on], ends[on]
            reach[place + 1] = reach[place] * chance[place]
            spent[place + 1] = spent[place] + reach[place] * cost[place]
            place = place + 1
        with np.errstate(divide="ignore"):
            ratio = reach / spent
        order = np.lexsort((-ratio, chained))
        starts = np.concatenate([[0], np.cumsum(np.bincount(chained, minlength=self.literals))])
        return graph.chain[order].astype(np.int32), starts

    def _first_worth(self, graph: Graph, weights: Weights) -> NDArray[np.float64]:
        """What the first literal of each chain is expected to settle, for its cost."""
        worth = np.full(self.conjunctions, np.inf)
        has_any = np.diff(graph.begin) > 0
        literals = graph.slot_literal[graph.chain[graph.begin[:-1][has_any]]]
        settled = weights.failing * self.popularity() / weights.cost[graph.literal_predicate]
        worth[has_any] = settled[literals]
        return worth

    # For kernels

    def held(self) -> Held:
        """The graph as it is now, as kernels take it."""
        if self._held_out is None:
            graph, weights = self._tuples()
            self._held_out = Held(frozen(graph), frozen(weights), graph, weights)
        return self._held_out

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


def course_of(held: Held) -> tuple[Course, Any]:
    """Room for one event, and its words."""
    graph = held.graph
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
