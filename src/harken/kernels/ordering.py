"""Which expensive predicate to evaluate next, so that as few as possible are evaluated at all.

After Liu et al., DEBS 2007. A *conjunction* is a list of *literals*: a predicate and what is wanted of its outcome. An
event decides a conjunction by one literal that fails, or by all of them. A matcher gets a predicate from `choose`,
evaluates it, and passes to `settle` which of its literals hold; that returns the next predicate, or NOTHING.

The graph is stored twice, as in the paper: the *slots* of a conjunction follow each other, and the slots of a literal
are linked, so that both "what does this conjunction need" and "which conjunctions need this literal" take one look. A
new conjunction is appended; nothing moves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inlined, kernel
from harken.kernels.frozen import thawing

NAIVE, SEQUENTIAL, SUBORDER, ADAPTIVE = 0, 1, 2, 3
NOTHING = -1
"""No predicate is needed any more; or the end of a list."""
UNKNOWN, HOLDS, FAILS = 0, 1, 2
"""What is known of a literal for an event."""
AT, WITHIN, HEAP, FOUND, LEFT = 0, 1, 2, 3, 4
"""Cursors of an event: the place in the order, the slot within its conjunction, the size of the heap, the number of
conjunctions that hold, and of those undecided."""
CURSORS = 5


class Graph(NamedTuple):
    """Conjunctions and the predicates that they share."""

    predicate_first: NDArray[np.int32]
    """The first literal of each predicate, and so on by `literal_next`."""
    literal_predicate: NDArray[np.int32]
    literal_next: NDArray[np.int32]
    literal_first: NDArray[np.int32]
    """The first slot of each literal, and so on by `slot_next`."""
    slot_literal: NDArray[np.int32]
    slot_conjunction: NDArray[np.int32]
    slot_next: NDArray[np.int32]
    begin: NDArray[np.int32]
    """The first slot of each conjunction; one more at the end."""
    sibling: NDArray[np.int32]
    """The next conjunction of the same subscription, in a ring."""
    is_joined: NDArray[np.uint8]
    """Whether a conjunction has variables to join: then it is not enough that its literals hold."""
    chain: NDArray[np.int32]
    """The slots of each conjunction, the least likely first."""
    order: NDArray[np.int32]
    """Conjunctions in the order of their chains."""


class Weights(NamedTuple):
    """Statistics of predicates and literals so far."""

    failing: NDArray[np.float64]
    """How likely a literal is to fail."""
    cost: NDArray[np.float64]
    """The cost of evaluating a predicate."""
    tried: NDArray[np.int64]
    """How often the outcome of a literal was counted."""
    held: NDArray[np.int64]
    """How often it held."""


class Course(NamedTuple):
    """The state of matching one event."""

    cursor: NDArray[np.int64]
    is_open: NDArray[np.uint8]
    """Which conjunctions are undecided."""
    remaining: NDArray[np.int32]
    """By conjunction: the number of literals not known to hold."""
    needed: NDArray[np.int32]
    """By literal: the number of undecided conjunctions that need it."""
    outcome: NDArray[np.uint8]
    """What is known of each literal."""
    is_done: NDArray[np.uint8]
    """Which predicates were evaluated."""
    heap: NDArray[np.int32]
    keys: NDArray[np.float64]
    found: NDArray[np.int32]
    """Conjunctions of which all literals hold."""


_graph, _weights, _course = thawing(Graph), thawing(Weights), thawing(Course)


@inlined
def _worth(graph, weights, course, predicate):
    """The expected number of undecided conjunctions that a predicate settles, per unit of its cost."""
    expected = 0.0
    literal = graph.predicate_first[predicate]
    while literal != NOTHING:
        expected += weights.failing[literal] * course.needed[literal]
        literal = graph.literal_next[literal]
    return expected / weights.cost[predicate]


@inlined
def _is_needed(graph, course, predicate):
    literal = graph.predicate_first[predicate]
    is_needed = False
    while literal != NOTHING:
        is_needed |= course.needed[literal] > 0
        literal = graph.literal_next[literal]
    return is_needed


@inlined
def _sift_down(course, place, size):
    """Restore the heap below a place."""
    predicate, key = course.heap[place], course.keys[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and course.keys[child + 1] > course.keys[child]:
            child += 1
        if course.keys[child] <= key:
            break
        course.heap[place], course.keys[place] = course.heap[child], course.keys[child]
        place = child
    course.heap[place], course.keys[place] = predicate, key


@inlined
def _close(graph, course, conjunction):
    """Mark a conjunction as decided: its literals are not needed for it any more."""
    course.is_open[conjunction] = 0
    course.cursor[LEFT] -= 1
    for slot in range(graph.begin[conjunction], graph.begin[conjunction + 1]):
        course.needed[graph.slot_literal[slot]] -= 1


@inlined
def _close_siblings(graph, course, conjunction):
    """Close the other conjunctions of a subscription that matches."""
    other = graph.sibling[conjunction]
    while other != conjunction:
        if course.is_open[other]:
            _close(graph, course, other)
        other = graph.sibling[other]


@inlined
def _accept(graph, course, conjunction):
    """Record a conjunction whose literals all hold."""
    _close(graph, course, conjunction)
    course.found[course.cursor[FOUND]] = conjunction
    course.cursor[FOUND] += 1
    if not graph.is_joined[conjunction]:
        _close_siblings(graph, course, conjunction)


@kernel
def begin_event(graph_words, weights_words, course_words, candidates, kind):
    """Start an event of which only these conjunctions are undecided."""
    graph, weights, course = _graph(graph_words), _weights(weights_words), _course(course_words)
    course.is_open[:] = 0
    course.remaining[:] = 0
    course.needed[:] = 0
    course.outcome[:] = UNKNOWN
    course.is_done[:] = 0
    course.cursor[:] = 0
    course.cursor[WITHIN] = NOTHING
    for place in range(len(candidates)):
        conjunction = candidates[place]
        begin, end = graph.begin[conjunction], graph.begin[conjunction + 1]
        course.is_open[conjunction] = 1
        course.remaining[conjunction] = end - begin
        for slot in range(begin, end):
            course.needed[graph.slot_literal[slot]] += 1
    course.cursor[LEFT] = len(candidates)
    for place in range(len(candidates)):  # what has no literal is true already
        conjunction = candidates[place]
        if course.remaining[conjunction] == 0 and course.is_open[conjunction]:
            _accept(graph, course, conjunction)
    if kind == ADAPTIVE:
        size = 0
        for predicate in range(len(graph.predicate_first)):
            if _is_needed(graph, course, predicate):
                course.heap[size], course.keys[size] = predicate, _worth(graph, weights, course, predicate)
                size += 1
        for place in range(size // 2 - 1, -1, -1):
            _sift_down(course, place, size)
        course.cursor[HEAP] = size


@inlined
def _choose_adaptive(graph, weights, course):
    """The predicate of most worth. Worth only falls as predicates are evaluated, so a key that has become too large is
    corrected once it reaches the top."""
    size = course.cursor[HEAP]
    chosen = NOTHING
    while size > 0:
        predicate = course.heap[0]
        worth = 0.0
        is_needed = course.is_done[predicate] == 0 and _is_needed(graph, course, predicate)
        if is_needed:
            worth = _worth(graph, weights, course, predicate)
            if worth >= course.keys[0]:
                chosen = predicate
                break
            course.keys[0] = worth
        else:
            size -= 1
            course.heap[0], course.keys[0] = course.heap[size], course.keys[size]
        _sift_down(course, 0, size)
    course.cursor[HEAP] = size
    return chosen


@inlined
def _choose_naive(graph, course):
    """The first unknown predicate of the first conjunction that its own literals leave undecided."""
    conjunction, slot = course.cursor[AT], course.cursor[WITHIN]
    last = len(graph.begin) - 1
    while conjunction < last:
        if slot == NOTHING:
            slot = np.int64(graph.begin[conjunction])
            if course.remaining[conjunction] == 0:
                slot = np.int64(graph.begin[conjunction + 1])
        is_over = slot == graph.begin[conjunction + 1]
        if not is_over:
            literal = graph.slot_literal[slot]
            if course.outcome[literal] == UNKNOWN:
                course.cursor[AT], course.cursor[WITHIN] = conjunction, slot
                return graph.literal_predicate[literal]
            is_over = course.outcome[literal] == FAILS
            slot += 1
        if is_over:
            conjunction, slot = conjunction + 1, np.int64(NOTHING)
    course.cursor[AT] = conjunction
    return NOTHING


@inlined
def _choose_sequential(graph, course):
    """The next needed predicate of an undecided conjunction, conjunction by conjunction."""
    conjunction, slot = course.cursor[AT], course.cursor[WITHIN]
    last = len(graph.begin) - 1
    while conjunction < last:
        if slot == NOTHING:
            if course.is_open[conjunction] == 0:
                conjunction += 1
                continue
            slot = np.int64(graph.begin[conjunction])
        if slot == graph.begin[conjunction + 1]:
            conjunction, slot = conjunction + 1, np.int64(NOTHING)
            continue
        predicate = graph.literal_predicate[graph.slot_literal[slot]]
        if course.is_done[predicate] == 0 and _is_needed(graph, course, predicate):
            course.cursor[AT], course.cursor[WITHIN] = conjunction, slot
            return predicate
        slot += 1
    course.cursor[AT] = conjunction
    return NOTHING


@inlined
def _choose_by_chains(graph, course):
    """The first unknown predicate of the first chain whose conjunction is undecided."""
    place = course.cursor[AT]
    while place < len(graph.order):
        conjunction = graph.order[place]
        if course.is_open[conjunction]:
            for at in range(graph.begin[conjunction], graph.begin[conjunction + 1]):
                predicate = graph.literal_predicate[graph.slot_literal[graph.chain[at]]]
                if course.is_done[predicate] == 0:
                    course.cursor[AT] = place
                    return predicate
        place += 1
    course.cursor[AT] = place
    return NOTHING


@inlined
def _choose(graph, weights, course, kind):
    if course.cursor[LEFT] == 0:
        return NOTHING
    if kind == ADAPTIVE:
        return _choose_adaptive(graph, weights, course)
    if kind == SEQUENTIAL:
        return _choose_sequential(graph, course)
    if kind == SUBORDER:
        return _choose_by_chains(graph, course)
    return _choose_naive(graph, course)


@inlined
def _settle(graph, weights, course, predicate, holding, is_known):
    """Take the outcome of a predicate: for each of its literals, in their order, whether it holds."""
    course.is_done[predicate] = 1
    literal = graph.predicate_first[predicate]
    place = 0
    while literal != NOTHING:
        holds = holding[place]
        course.outcome[literal] = HOLDS if holds else FAILS
        if is_known and course.needed[literal] > 0:  # the others were not needed
            weights.tried[literal] += 1
            weights.held[literal] += holds
        slot = graph.literal_first[literal]
        while slot != NOTHING:
            conjunction = graph.slot_conjunction[slot]
            if course.is_open[conjunction]:
                if not holds:
                    _close(graph, course, conjunction)
                else:
                    course.remaining[conjunction] -= 1
                    if course.remaining[conjunction] == 0:
                        _accept(graph, course, conjunction)
            slot = graph.slot_next[slot]
        literal = graph.literal_next[literal]
        place += 1


@kernel
def choose(graph_words, weights_words, course_words, kind):
    """The predicate to evaluate next; NOTHING once every conjunction is decided."""
    return _choose(_graph(graph_words), _weights(weights_words), _course(course_words), kind)


@kernel
def settle(graph_words, weights_words, course_words, predicate, holding, is_known, kind):
    """Take an outcome, which only counts in the weights if it is known, and choose the next predicate."""
    graph, weights, course = _graph(graph_words), _weights(weights_words), _course(course_words)
    _settle(graph, weights, course, predicate, holding, is_known)
    return _choose(graph, weights, course, kind)


@kernel
def needed_by(graph_words, course_words, predicate, out):
    """Write the undecided conjunctions that need a predicate. Returns their number."""
    graph, course = _graph(graph_words), _course(course_words)
    count = 0
    literal = graph.predicate_first[predicate]
    while literal != NOTHING:
        slot = graph.literal_first[literal]
        while slot != NOTHING:
            if course.is_open[graph.slot_conjunction[slot]]:
                out[count] = graph.slot_conjunction[slot]
                count += 1
            slot = graph.slot_next[slot]
        literal = graph.literal_next[literal]
    return count


@kernel
def drop_siblings(graph_words, course_words, conjunction):
    """Close the siblings of a conjunction whose variables join: its subscription matches."""
    _close_siblings(_graph(graph_words), _course(course_words), conjunction)


@kernel
def run_event(graph_words, weights_words, course_words, candidates, truths, kind):
    """Run an event whose outcomes are known. Every predicate has one literal. Returns the number of evaluations and
    their cost."""
    graph, weights, course = _graph(graph_words), _weights(weights_words), _course(course_words)
    holding = np.zeros(1, np.uint8)
    count, cost = 0, 0.0
    predicate = _choose(graph, weights, course, kind)
    while predicate != NOTHING:
        holding[0] = truths[predicate]
        count += 1
        cost += weights.cost[predicate]
        _settle(graph, weights, course, predicate, holding, True)
        predicate = _choose(graph, weights, course, kind)
    return count, cost


# Chains: the order that `suborder` fixes once, from the weights


@kernel
def sort_chains(graph_words, weights_words, first):
    """Order the slots of each conjunction from `first` on: literals that are likely to hold, or costly, come late.

    Literals of equal weight are ordered by their numbers, so that two chains have what they share in the same order.
    """
    graph, weights = _graph(graph_words), _weights(weights_words)
    for conjunction in range(first, len(graph.begin) - 1):
        begin, end = graph.begin[conjunction], graph.begin[conjunction + 1]
        for at in range(begin, end):
            literal = graph.slot_literal[at]
            weight = (1.0 - weights.failing[literal]) * weights.cost[graph.literal_predicate[literal]]
            place = at
            while place > begin:
                other = graph.slot_literal[graph.chain[place - 1]]
                heavier = (1.0 - weights.failing[other]) * weights.cost[graph.literal_predicate[other]] - weight
                if heavier < 0.0 or (heavier == 0.0 and other < literal):
                    break
                graph.chain[place] = graph.chain[place - 1]
                place -= 1
            graph.chain[place] = at


@inlined
def _saving(graph, weights, one, two):
    """By how much it is cheaper to evaluate chain `one` before chain `two` (the paper's C2 - C1, section 4.2.4).

    Sums (1 - p) (P1 C2 - P2 C1) over the literals that both have, the links. P is how likely a chain gets to a link,
    and C what it spends until then on literals that only it has. Both get to a link only if all earlier links hold.
    """
    saved, earlier = 0.0, 1.0
    reach_one, reach_two, spent_one, spent_two = 1.0, 1.0, 0.0, 0.0
    passed = graph.begin[two]
    # Chains are ordered alike, so links never cross: behind a link of one chain are the later links of the other.
    for at in range(graph.begin[one], graph.begin[one + 1]):
        literal = graph.slot_literal[graph.chain[at]]
        link = passed
        while link < graph.begin[two + 1] and graph.slot_literal[graph.chain[link]] != literal:
            link += 1
        if link == graph.begin[two + 1]:
            spent_one += reach_one * weights.cost[graph.literal_predicate[literal]]
            reach_one *= 1.0 - weights.failing[literal]
            continue
        while passed < link:
            own = graph.slot_literal[graph.chain[passed]]
            spent_two += reach_two * weights.cost[graph.literal_predicate[own]]
            reach_two *= 1.0 - weights.failing[own]
            passed += 1
        saved += weights.failing[literal] * earlier * (reach_one * spent_two - reach_two * spent_one)
        earlier *= 1.0 - weights.failing[literal]
        passed += 1
    return saved


@kernel
def pair_chains(graph_words, weights_words, ranked, starts, width, before, after, savings):
    """Write pairs of chains that share a literal, the better first, with what that order saves; returns their number.

    `ranked` are the slots of each literal, the chain that gets there soonest first. Of a popular literal only chains
    near each other in that rank are paired: all pairs would be too many, and it is the ratio that decides.
    """
    graph, weights = _graph(graph_words), _weights(weights_words)
    count = 0
    for literal in range(len(starts) - 1):
        for place in range(starts[literal], starts[literal + 1]):
            one = graph.slot_conjunction[ranked[place]]
            for other in range(place + 1, min(place + 1 + width, starts[literal + 1])):
                two = graph.slot_conjunction[ranked[other]]
                saved = _saving(graph, weights, one, two)
                if saved == 0.0:
                    continue
                if count == len(before):
                    return count
                before[count], after[count] = (one, two) if saved > 0 else (two, one)
                savings[count] = abs(saved)
                count += 1
    return count


@inlined
def _root(parent, node):
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def greedy_paths(before, after, edges, following, is_led, parent):
    """Accept the edges in this order, except those that give a chain two neighbours on a side or close a ring."""
    for place in range(len(edges)):
        one, two = before[edges[place]], after[edges[place]]
        if following[one] != NOTHING or is_led[two]:
            continue
        first, second = _root(parent, one), _root(parent, two)
        if first == second:
            continue
        parent[first] = second
        following[one] = two
        is_led[two] = 1
