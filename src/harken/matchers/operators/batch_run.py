"""One match: the events of a batch are evaluated side by side.

At each step every event has a next predicate, chosen by the order. Predicates of one operator are evaluated together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.errors import HarkenError, LimitError, OperatorError
from harken.events import Event, EventBatch
from harken.events.raw import RawEvent
from harken.kernels.ordering import FOUND, NOTHING, Course, begin_event, choose, drop_siblings, needed_by, settle
from harken.language.ast import Attribute, Call, Constant
from harken.language.compiled import Form
from harken.language.sql.operator_plans import Literal
from harken.limits import Limits
from harken.matchers.base import MatchResult
from harken.matchers.operators.graph import FrozenGraph, course_of
from harken.matchers.operators.joining import Join, passing
from harken.operators.calling import Binding, Caller, Evaluation, Outcome
from harken.operators.operator import FREE, Operator
from harken.schema.values import KINDS, Value

_IN_FLIGHT = 256
_MOST_COURSE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class CallPredicate:
    """A call, with variables by number instead of name, and the literals that test it."""

    call: Call
    variables: tuple[int, ...]
    """The number of the variable, for each argument that is one."""
    free: tuple[int, ...]
    """The positions of these arguments."""
    literals: list[int] = field(default_factory=list)

    @property
    def distinct(self) -> int:
        return 1 + max(self.variables, default=-1)


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """What a match sees from its beginning to its end. Its lists may grow meanwhile, but their items do not change."""

    graph: FrozenGraph
    always: NDArray[np.int32]
    """Conjunctions without a plain part."""
    behind: dict[int, tuple[int, ...]]
    """Conjunctions by the number of their plain part, which has to match first."""
    predicates: list[CallPredicate]
    literals: list[tuple[Literal, Form | None]]
    conjunctions: list[tuple[int, Join | None]]
    courses: list[tuple[Course, Any]] = field(default_factory=list)
    """Free work spaces, one per event."""

    @property
    def size(self) -> int:
        """Number of conjunctions."""
        return len(self.graph.graph.sibling)

    @property
    def course_bytes(self) -> int:
        graph = self.graph.graph
        return 9 * len(graph.sibling) + 5 * len(graph.literal_next) + 13 * len(graph.predicate_first)


class _Flight:
    """The evaluation of one event."""

    __slots__ = (
        *("answers", "bindings", "course", "errors", "event", "examined", "failed", "index", "matched", "next", "raw"),
        "words",
    )

    def __init__(self, index: int, raw: RawEvent, course: Course, words: Any) -> None:
        self.index = index
        self.raw = raw
        self.course = course
        self.words = words
        self.next = NOTHING
        """The predicate to evaluate next."""
        self.answers: dict[Any, Outcome] = {}
        """Outcomes by operator and arguments, so that p(1) and p(n) with n = 1 are one call."""
        self.bindings: dict[int, Sequence[Binding]] = {}
        """Bindings of literals that have variables."""
        self.examined = 0
        """Number of true conjunctions that were handled, with a join of their variables if they have any."""
        self.matched: dict[int, None] = {}
        self.failed: list[tuple[list[int], HarkenError]] = []
        """Undecided conjunctions, with the error that prevented a decision."""
        self.errors: dict[int, HarkenError] = {}
        self.event: Event | None = None


class BatchRun:
    """The evaluation of the events of a batch, side by side."""

    def __init__(
        self,
        snapshot: RunSnapshot,
        batch: EventBatch,
        callers: Mapping[str, Caller],
        limits: Limits,
        kind: int,
        plain: MatchResult | None,
        first: int,
    ) -> None:
        """`plain` has the matches of plain parts. In it, the batch begins at event `first`."""
        self._snapshot = snapshot
        self._batch = batch
        self._plain = plain
        self._first = first
        self._callers = callers
        self._limits = limits
        self._kind = kind
        self._graph = snapshot.graph.graph_words, snapshot.graph.weights_words
        self._candidates = np.zeros(len(batch), np.int64)
        self._numbers: list[list[int]] = [[] for _ in range(len(batch))]
        self._errors: list[tuple[int, int, HarkenError]] = []
        self._holding: dict[int, NDArray[np.uint8]] = {}

    def result(self) -> MatchResult:
        room = max(1, min(_IN_FLIGHT, _MOST_COURSE_BYTES // max(1, self._snapshot.course_bytes)))
        waiting = iter(range(len(self._batch)))
        flights: list[_Flight] = []
        while True:
            while len(flights) < room:
                index = next(waiting, None)
                if index is None:
                    break
                flight = self._begun(index)
                if flight is not None:
                    flights.append(flight)
            if not flights:
                break
            self._step(flights)
            flights = [each for each in flights if not self._is_over(each)]
        offsets = np.cumsum([0, *map(len, self._numbers)], dtype=np.int64)
        numbers = np.array([number for each in self._numbers for number in each], np.int32)
        return MatchResult(offsets, numbers, self._candidates, self._errors)

    def _begun(self, index: int) -> _Flight | None:
        """Begin the evaluation of an event; None if no operator is needed."""
        snapshot = self._snapshot
        candidates = snapshot.always
        if self._plain is not None:
            low, high = self._plain.offsets[self._first + index : self._first + index + 2]
            matches = self._plain.numbers[low:high].tolist()
            behind = [conjunction for plain in matches for conjunction in snapshot.behind.get(plain, ())]
            candidates = np.concatenate([candidates, np.array(behind, np.int32)])
        self._candidates[index] = len(candidates)
        if not len(candidates):
            return None
        try:
            course, words = snapshot.courses.pop()
        except IndexError:
            course, words = course_of(snapshot.graph)
        flight = _Flight(index, self._batch.raw(index), course, words)
        begin_event(*self._graph, words, candidates, self._kind)
        self._take_true(flight)
        flight.next = choose(*self._graph, words, self._kind)
        return None if self._is_over(flight) else flight

    def _is_over(self, flight: _Flight) -> bool:
        """Whether all conjunctions are decided. If so, record the matches and errors."""
        if flight.next != NOTHING:
            return False
        for undecided, error in flight.failed:
            for conjunction in undecided:
                flight.errors.setdefault(self._snapshot.conjunctions[conjunction][0], error)
        self._numbers[flight.index] = list(flight.matched)
        for number, error in flight.errors.items():
            if number not in flight.matched:
                self._errors.append((flight.index, number, error))
        self._snapshot.courses.append((flight.course, flight.words))
        return True

    # One step: a predicate for each event

    def _step(self, flights: Sequence[_Flight]) -> None:
        groups: dict[tuple[str, tuple[int, ...]], list[_Flight]] = {}
        predicates = self._snapshot.predicates
        for flight in flights:
            predicate = predicates[flight.next]
            groups.setdefault((predicate.call.name, predicate.free), []).append(flight)
        for (name, _), several in groups.items():
            caller = self._callers[name]
            pending: list[tuple[_Flight, Any, Evaluation]] = []
            for flight in several:
                try:
                    row = _row(flight.raw, predicates[flight.next].call, caller.operator)
                except Exception as problem:  # an event may be any object, also an unreadable one
                    message = f"the event cannot be read for the operator `{name}`: {type(problem).__name__}: {problem}"
                    self._settle(flight, OperatorError(f"{message:.300}"))
                    continue
                key = None if row is None else _key(name, row.arguments)
                if row is None:
                    self._settle(flight, None)
                elif key is not None and key in flight.answers:
                    self._settle(flight, flight.answers[key])
                else:
                    pending.append((flight, key, row))
            answers = caller([row for _, _, row in pending]) if pending else ()
            for (flight, key, _), answer in zip(pending, answers, strict=True):
                if key is not None:
                    flight.answers[key] = answer
                self._settle(flight, answer)

    def _settle(self, flight: _Flight, outcome: Outcome | None) -> None:
        """Apply the outcome of a predicate; None: it was not evaluated, and is unknown."""
        place_of_predicate = flight.next
        predicate = self._snapshot.predicates[place_of_predicate]
        literals = list(predicate.literals)  # a copy: other threads may append meanwhile
        holding = self._holding.get(len(literals))
        if holding is None:
            holding = self._holding[len(literals)] = np.zeros(len(literals), np.uint8)
        try:
            if isinstance(outcome, HarkenError):
                raise outcome
            needed = flight.course.needed
            for place, literal in enumerate(literals):
                is_needed = outcome is not None and literal < len(needed) and needed[literal] > 0
                holding[place] = is_needed and self._holds(flight, predicate, literal, outcome)
        except HarkenError as error:
            outcome = None
            holding[:] = 0
            users = sum(int(flight.course.needed[each]) for each in literals if each < len(flight.course.needed))
            undecided = np.empty(users, np.int32)
            count = needed_by(self._graph[0], flight.words, place_of_predicate, undecided)
            flight.failed.append((undecided[:count].tolist(), error))
        is_known = outcome is not None
        flight.next = settle(*self._graph, flight.words, place_of_predicate, holding, is_known, self._kind)
        if flight.course.cursor[FOUND] > flight.examined and self._take_true(flight):
            flight.next = choose(*self._graph, flight.words, self._kind)

    def _holds(self, flight: _Flight, predicate: CallPredicate, literal: int, outcome: Any) -> bool:
        """Whether a literal holds. Raises LimitError."""
        definition, form = self._snapshot.literals[literal]
        if not predicate.variables:
            return bool(outcome) is definition.wanted
        bindings = _distinct(outcome, predicate)
        if form is not None:
            passes = passing(form, {}, self._limits)
            bindings = [
                binding for binding in bindings if passes({str(place): binding[place] for place in range(len(binding))})
            ]
        flight.bindings[literal] = bindings
        return bool(bindings) is definition.wanted

    def _take_true(self, flight: _Flight) -> bool:
        """Take the conjunctions that became true. Those with variables also need a substitution.

        Returns whether that decided other conjunctions.
        """
        end = int(flight.course.cursor[FOUND])
        has_dropped = False
        for conjunction in flight.course.found[flight.examined : end].tolist():
            number, join = self._snapshot.conjunctions[conjunction]
            if join is not None and number not in flight.matched:
                if flight.event is None:
                    flight.event = self._batch[flight.index]
                try:
                    if join.solve(flight.bindings, flight.event, self._limits) is None:
                        continue
                except LimitError as error:
                    flight.errors.setdefault(number, error)
                    continue
                drop_siblings(self._graph[0], flight.words, conjunction)
                has_dropped = True
            flight.matched[number] = None
        flight.examined = end
        return has_dropped


def concatenated(parts: Sequence[MatchResult]) -> MatchResult:
    """The result of a batch from those of its parts."""
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    firsts = np.cumsum([0, *(len(part.candidates) for part in parts)]).tolist()
    return MatchResult(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.candidates for part in parts]),
        [
            (first + index, number, error)
            for part, first in zip(parts, firsts, strict=False)
            for index, number, error in part.errors
        ],
    )


def _row(raw: RawEvent, call: Call, operator: Operator) -> Evaluation | None:
    """The arguments of a call; None if the event lacks an attribute among them."""
    arguments: list[Any] = []
    for argument in call.arguments:
        if isinstance(argument, Constant):
            arguments.append(argument.value)
        elif isinstance(argument, Attribute):
            value = raw.at(argument.path)
            if value is None:
                return None
            arguments.append(value)
        else:
            arguments.append(FREE)
    return Evaluation(raw.seen(operator.signature.reads), tuple(arguments))


def _key(name: str, arguments: tuple[Any, ...]) -> Any:
    """A key of calls with equal arguments; None if an argument is not hashable."""
    key = name, tuple([(type(argument), argument) for argument in arguments])
    try:
        hash(key)
    except (TypeError, ValueError):
        return None
    return key


def _distinct(bindings: Sequence[Binding], predicate: CallPredicate) -> Sequence[Binding]:
    """Turn bindings of arguments into bindings of variables. Repeated variables must have equal values."""
    if len(predicate.variables) == predicate.distinct:
        return bindings
    distinct: list[Binding] = []
    for binding in bindings:
        values: dict[int, Value] = {}
        for variable, value in zip(predicate.variables, binding, strict=True):
            before = values.setdefault(variable, value)
            if KINDS[type(before)] is not KINDS[type(value)] or before != value:
                break
        else:
            distinct.append(tuple(values[place] for place in range(predicate.distinct)))
    return distinct
