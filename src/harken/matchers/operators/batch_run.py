"""One match: the events of a batch go through their predicates side by side.

At each step every event asks for the predicate that its order names next; those of one operator are evaluated together.
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
from harken.matchers.operators.graph import Held, course_of
from harken.matchers.operators.joining import Join, passing
from harken.operators.calling import Binding, Caller, Evaluation, Outcome
from harken.operators.operator import FREE, Operator
from harken.schema.values import KINDS, Value

_IN_FLIGHT = 256
_MOST_COURSE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class CallPredicate:
    """A call, up to the names of its variables, and the literals that want something of it."""

    call: Call
    variables: tuple[int, ...]
    """For each argument that is a variable which one it is."""
    free: tuple[int, ...]
    """The places of these arguments."""
    literals: list[int] = field(default_factory=list)

    @property
    def distinct(self) -> int:
        return 1 + max(self.variables, default=-1)


@dataclass(frozen=True, slots=True)
class Moment:
    """What a match goes by from its beginning to its end. Lists may grow meanwhile, and nothing in them changes."""

    graph: Held
    always: NDArray[np.int32]
    """Conjunctions without a plain part."""
    behind: dict[int, tuple[int, ...]]
    """Conjunctions by the number of their plain part."""
    predicates: list[CallPredicate]
    literals: list[tuple[Literal, Form | None]]
    conjunctions: list[tuple[int, Join | None]]
    courses: list[tuple[Course, Any]] = field(default_factory=list)
    """Rooms for events that nobody uses."""

    @property
    def size(self) -> int:
        """How many conjunctions there were."""
        return len(self.graph.graph.sibling)

    @property
    def course_bytes(self) -> int:
        graph = self.graph.graph
        return 9 * len(graph.sibling) + 5 * len(graph.literal_next) + 13 * len(graph.predicate_first)


class _Flight:
    """One event on its way through its predicates."""

    __slots__ = (
        *("answers", "bindings", "course", "errors", "event", "failed", "found", "index", "matched", "next", "raw"),
        "words",
    )

    def __init__(self, index: int, raw: RawEvent, course: Course, words: Any) -> None:
        self.index = index
        self.raw = raw
        self.course = course
        self.words = words
        self.next = NOTHING
        """The predicate to evaluate."""
        self.answers: dict[Any, Outcome] = {}
        """What operators answered: p(1), and p(n) where n is 1, are one call."""
        self.bindings: dict[int, Sequence[Binding]] = {}
        """What literals found that have variables."""
        self.found = 0
        """Conjunctions that were found and looked at."""
        self.matched: dict[int, None] = {}
        self.failed: list[tuple[list[int], HarkenError]] = []
        """Conjunctions that could not be decided, and why."""
        self.errors: dict[int, HarkenError] = {}
        self.event: Event | None = None


class BatchRun:
    """The events of a batch, side by side."""

    def __init__(
        self,
        moment: Moment,
        batch: EventBatch,
        callers: Mapping[str, Caller],
        limits: Limits,
        kind: int,
        plain: MatchResult | None,
        first: int,
    ) -> None:
        """`plain` tells which plain parts are true of the events, from the one at `first` on."""
        self._moment = moment
        self._batch = batch
        self._plain = plain
        self._first = first
        self._callers = callers
        self._limits = limits
        self._kind = kind
        self._graph = moment.graph.graph_words, moment.graph.weights_words
        self._candidates = np.zeros(len(batch), np.int64)
        self._numbers: list[list[int]] = [[] for _ in range(len(batch))]
        self._errors: list[tuple[int, int, HarkenError]] = []
        self._holding: dict[int, NDArray[np.uint8]] = {}

    def result(self) -> MatchResult:
        room = max(1, min(_IN_FLIGHT, _MOST_COURSE_BYTES // max(1, self._moment.course_bytes)))
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
        """An event on its way; None if nothing of it is left for operators."""
        moment = self._moment
        candidates = moment.always
        if self._plain is not None:
            low, high = self._plain.offsets[self._first + index : self._first + index + 2]
            true = self._plain.numbers[low:high].tolist()
            behind = [each for plain in true for each in moment.behind.get(plain, ())]
            candidates = np.concatenate([candidates, np.array(behind, np.int32)])
        self._candidates[index] = len(candidates)
        if not len(candidates):
            return None
        try:
            course, words = moment.courses.pop()
        except IndexError:
            course, words = course_of(moment.graph)
        flight = _Flight(index, self._batch.raw(index), course, words)
        begin_event(*self._graph, words, candidates, self._kind)
        self._look(flight)
        flight.next = choose(*self._graph, words, self._kind)
        return None if self._is_over(flight) else flight

    def _is_over(self, flight: _Flight) -> bool:
        """Whether everything is decided; then what came of it is noted."""
        if flight.next != NOTHING:
            return False
        for undecided, error in flight.failed:
            for each in undecided:
                flight.errors.setdefault(self._moment.conjunctions[each][0], error)
        self._numbers[flight.index] = list(flight.matched)
        for number, error in flight.errors.items():
            if number not in flight.matched:
                self._errors.append((flight.index, number, error))
        self._moment.courses.append((flight.course, flight.words))
        return True

    # One step: a predicate for each event

    def _step(self, flights: Sequence[_Flight]) -> None:
        groups: dict[tuple[str, tuple[int, ...]], list[_Flight]] = {}
        predicates = self._moment.predicates
        for flight in flights:
            known = predicates[flight.next]
            groups.setdefault((known.call.name, known.free), []).append(flight)
        for (name, _), several in groups.items():
            caller = self._callers[name]
            asked: list[tuple[_Flight, Any, Evaluation]] = []
            for flight in several:
                try:
                    row = _row(flight.raw, predicates[flight.next].call, caller.operator)
                except Exception as problem:  # what came may be anything, also what cannot be read
                    message = f"the event cannot be read for the operator `{name}`: {type(problem).__name__}: {problem}"
                    self._settle(flight, OperatorError(f"{message:.300}"))
                    continue
                key = None if row is None else _key(name, row.arguments)
                if row is None:
                    self._settle(flight, None)
                elif key is not None and key in flight.answers:
                    self._settle(flight, flight.answers[key])
                else:
                    asked.append((flight, key, row))
            answers = caller([row for _, _, row in asked]) if asked else ()
            for (flight, key, _), answer in zip(asked, answers, strict=True):
                if key is not None:
                    flight.answers[key] = answer
                self._settle(flight, answer)

    def _settle(self, flight: _Flight, outcome: Outcome | None) -> None:
        """Take the outcome of a predicate; None: it is unknown, as nobody asked."""
        predicate = flight.next
        known = self._moment.predicates[predicate]
        literals = list(known.literals)  # others may come meanwhile
        holding = self._holding.get(len(literals))
        if holding is None:
            holding = self._holding[len(literals)] = np.zeros(len(literals), np.uint8)
        try:
            if isinstance(outcome, HarkenError):
                raise outcome
            needed = flight.course.needed
            for place, literal in enumerate(literals):
                is_asked = outcome is not None and literal < len(needed) and needed[literal] > 0
                holding[place] = is_asked and self._holds(flight, known, literal, outcome)
        except HarkenError as error:
            outcome = None
            holding[:] = 0
            users = sum(int(flight.course.needed[each]) for each in literals if each < len(flight.course.needed))
            undecided = np.empty(users, np.int32)
            count = needed_by(self._graph[0], flight.words, predicate, undecided)
            flight.failed.append((undecided[:count].tolist(), error))
        is_known = outcome is not None
        flight.next = settle(*self._graph, flight.words, predicate, holding, is_known, self._kind)
        if flight.course.cursor[FOUND] > flight.found and self._look(flight):
            flight.next = choose(*self._graph, flight.words, self._kind)

    def _holds(self, flight: _Flight, known: CallPredicate, literal: int, outcome: Any) -> bool:
        """Whether a literal holds. Raises LimitError."""
        said, form = self._moment.literals[literal]
        if not known.variables:
            return bool(outcome) is said.wanted
        bindings = _distinct(outcome, known)
        if form is not None:
            passes = passing(form, {}, self._limits)
            bindings = [each for each in bindings if passes({str(place): each[place] for place in range(len(each))})]
        flight.bindings[literal] = bindings
        return bool(bindings) is said.wanted

    def _look(self, flight: _Flight) -> bool:
        """Take the conjunctions that were found true: those with variables to join are joined first.

        Returns whether that decided others.
        """
        end = int(flight.course.cursor[FOUND])
        has_dropped = False
        for each in flight.course.found[flight.found : end].tolist():
            number, join = self._moment.conjunctions[each]
            if join is not None and number not in flight.matched:
                if flight.event is None:
                    flight.event = self._batch[flight.index]
                try:
                    if join.solve(flight.bindings, flight.event, self._limits) is None:
                        continue
                except LimitError as error:
                    flight.errors.setdefault(number, error)
                    continue
                drop_siblings(self._graph[0], flight.words, each)
                has_dropped = True
            flight.matched[number] = None
        flight.found = end
        return has_dropped


def one_after_the_other(parts: Sequence[MatchResult]) -> MatchResult:
    """The result of a batch from those of its parts."""
    counts = np.concatenate([np.diff(each.offsets) for each in parts])
    firsts = np.cumsum([0, *(len(each.candidates) for each in parts)]).tolist()
    return MatchResult(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([each.numbers for each in parts]),
        np.concatenate([each.candidates for each in parts]),
        [
            (first + index, number, error)
            for each, first in zip(parts, firsts, strict=False)
            for index, number, error in each.errors
        ],
    )


def _row(raw: RawEvent, call: Call, operator: Operator) -> Evaluation | None:
    """What the operator is called with; None if the event lacks an attribute that it is to be called with."""
    arguments: list[Any] = []
    for each in call.arguments:
        if isinstance(each, Constant):
            arguments.append(each.value)
        elif isinstance(each, Attribute):
            value = raw.at(each.path)
            if value is None:
                return None
            arguments.append(value)
        else:
            arguments.append(FREE)
    return Evaluation(raw.seen(operator.signature.reads), tuple(arguments))


def _key(name: str, arguments: tuple[Any, ...]) -> Any:
    """What tells calls apart; None if arguments cannot be compared."""
    key = name, tuple([(type(each), each) for each in arguments])
    try:
        hash(key)
    except (TypeError, ValueError):
        return None
    return key


def _distinct(bindings: Sequence[Binding], known: CallPredicate) -> Sequence[Binding]:
    """Bindings of the arguments as bindings of the variables: where one stands twice both have to be the same."""
    if len(known.variables) == known.distinct:
        return bindings
    found: list[Binding] = []
    for each in bindings:
        values: dict[int, Value] = {}
        for variable, value in zip(known.variables, each, strict=True):
            before = values.setdefault(variable, value)
            if KINDS[type(before)] is not KINDS[type(value)] or before != value:
                break
        else:
            found.append(tuple(values[place] for place in range(known.distinct)))
    return found
