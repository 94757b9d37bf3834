"""Subscriptions with operators: an index decides their plain parts, and only what survives reaches the operators.

Events of a batch go through their predicates side by side. At each step every event asks for the predicate that its
order names next; those of one operator are evaluated together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.flat import Flat
from harken.errors import HarkenError, LimitError, OperatorError
from harken.events import Event, EventBatch
from harken.events.raw import RawEvent
from harken.forking import MATCHER, fork_lock
from harken.kernels.ordering import (
    ADAPTIVE,
    FOUND,
    NAIVE,
    NOTHING,
    SEQUENTIAL,
    SUBORDER,
    Course,
    begin_event,
    choose,
    drop_siblings,
    needed_by,
    settle,
)
from harken.language.ast import Attribute, Call, Constant, Expression, Not, Variable, conjunction
from harken.language.capabilities import Capability
from harken.language.compiled import Compiled, Form
from harken.language.operator_plans import Literal, OperatorConjunction, OperatorPlan, as_attributes, variables_of
from harken.language.sql.printer import print_expression
from harken.language.trees import FALSE
from harken.limits import Limits
from harken.matchers.base import Entry, FormOf, MatchResult, Trait
from harken.matchers.kinds import Indexes
from harken.matchers.operators.graph import Held, OperatorGraph, course_of
from harken.matchers.operators.joining import Relation, Substitution, Test, joined
from harken.matchers.registry import DEFAULT_ALGORITHM, create_matcher, create_other
from harken.matchers.roles import Write
from harken.matchers.verify import is_match
from harken.operators.calling import Binding, Caller, Outcome, Row
from harken.operators.operating import Operating
from harken.operators.operator import FREE, Operator
from harken.schema.paths import Path
from harken.schema.values import KINDS, Value

_KINDS = {"adaptive": ADAPTIVE, "suborder": SUBORDER, "sequential": SEQUENTIAL, "naive": NAIVE}
FILE = "operators"
_IN_FLIGHT = 256
_MOST_COURSE_BYTES = 64 << 20
_LEARNING = 16
"""Events after which what was learnt is used for the first time, and then each time there are twice as many."""
_MOST_LEARNING = 4_096
_MANY_GONE = 1_000


@dataclass(frozen=True, slots=True)
class Predicate:
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
    predicates: list[Predicate]
    literals: list[tuple[Literal, Form | None]]
    conjunctions: list[tuple[int, _Join | None]]
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


class OperatorMatcher:
    """An index of subscriptions that call operators."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    traits: ClassVar[frozenset[Trait]] = frozenset((Trait.UNSUBSCRIBE, Trait.IN_PLACE))

    def __init__(self, limits: Limits, operating: Operating, plain: Indexes) -> None:
        """`plain` is an empty index for plain parts."""
        self._limits = limits
        self._operating = operating
        self._operators = operating.operators
        self._callers = operating.callers
        self._order = operating.order
        self._plain = plain
        self._lock = fork_lock(MATCHER)
        self._plain_of: dict[str, int] = {}
        self._plain_forms: dict[int, Compiled] = {}
        self._next_plain = 0
        self._changes = 0
        self._seen = 0
        self._learnt_at = 0
        self._start()

    def _start(self) -> None:
        self._graph = OperatorGraph()
        self._plans: dict[int, OperatorPlan] = {}
        self._predicates: list[Predicate] = []
        self._predicate_of: dict[Call, int] = {}
        self._literals: list[tuple[Literal, Form | None]] = []
        """Each with what tests its bindings."""
        self._literal_of: dict[Literal, int] = {}
        self._conjunctions: list[tuple[int, _Join | None]] = []
        """Each as the number of its subscription, and how its variables are joined, if they are."""
        self._own: dict[int, list[tuple[int, int | None]]] = {}
        """The conjunctions of each subscription, each with its plain part."""
        self._behind: dict[int, tuple[int, ...]] = {}
        self._always: set[int] = set()
        self._moment: Moment | None = None
        self._gone = 0

    def __len__(self) -> int:
        return len(self._plans)

    # Changing

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        with self._lock:
            coming: dict[int, Compiled] = {}
            for entry in entries:
                plan = entry.compiled.plan
                assert isinstance(plan, OperatorPlan)
                self._put(entry.number, plan, coming)
            self._take_plain(coming)  # before others leave: a plain part that both have stays as it is
            self._leave(replaced)

    def remove(self, numbers: Iterable[int]) -> None:
        with self._lock:
            self._leave(numbers)

    def _leave(self, numbers: Iterable[int]) -> None:
        """Let go of subscriptions, and of what is left of those that went before, once that is most of the graph."""
        self._remove(numbers)
        if self._gone > max(_MANY_GONE, len(self._own)):
            self._rebuild(self._plans, self.learnt())
        self._moment = None
        self._changes += 1

    def _put(self, number: int, plan: OperatorPlan, coming: dict[int, Compiled]) -> None:
        self._plans[number] = plan
        own: list[tuple[int, int | None]] = []
        for each in plan.conjunctions:
            occurrences = [(self._literal(one.literal, plan), one.variables) for one in each.occurrences]
            join = _Join.of(each, occurrences, plan) if each.is_joined else None
            literals = list(dict.fromkeys(literal for literal, _ in occurrences))
            made = self._graph.add_conjunction(literals, join is not None, own[-1][0] if own else None)
            self._conjunctions.append((number, join))
            plain = None if each.plain is None else self._plain_number(each.plain, coming)
            own.append((made, plain))
            if plain is None:
                self._always.add(made)
            else:
                self._behind[plain] = (*self._behind.get(plain, ()), made)
        self._own[number] = own

    def _plain_number(self, plain: Compiled, coming: dict[int, Compiled]) -> int:
        known = self._plain_of.get(plain.text)
        if known is None:
            known = self._plain_of[plain.text] = self._next_plain
            self._next_plain += 1
            self._plain_forms[known] = coming[known] = plain
        return known

    def _take_plain(self, coming: dict[int, Compiled]) -> None:
        if coming:
            self._plain.add([Entry(number, compiled) for number, compiled in coming.items()])

    def _literal(self, literal: Literal, plan: OperatorPlan) -> int:
        known = self._literal_of.get(literal)
        if known is not None:
            return known
        form = plan.compile_test(as_attributes(conjunction(list(literal.tests)))).form if literal.tests else None
        operator = self._operators[literal.call.name]
        predicate = self._predicate_of.get(literal.call)
        if predicate is None:
            predicate = self._graph.add_predicate(self._callers[operator.name].cost)
            arguments = list(enumerate(literal.call.arguments))
            variables = tuple(int(each.name) for _, each in arguments if isinstance(each, Variable))
            free = tuple(place for place, each in arguments if isinstance(each, Variable))
            self._predicates.append(Predicate(literal.call, variables, free))
            self._predicate_of[literal.call] = predicate
        guess = operator.selectivity if literal.wanted else 1.0 - operator.selectivity
        number = self._graph.add_literal(predicate, guess * 0.5 ** len(literal.tests))
        self._literals.append((literal, form))
        self._literal_of[literal] = number
        self._predicates[predicate].literals.append(number)
        return number

    def _remove(self, numbers: Iterable[int]) -> None:
        unused: list[int] = []
        for number in numbers:
            if self._plans.pop(number, None) is None:
                continue
            self._gone += 1
            for each, plain in self._own.pop(number):
                self._always.discard(each)
                if plain is None:
                    continue
                self._behind[plain] = tuple(one for one in self._behind[plain] if one != each)
                if not self._behind[plain]:
                    del self._behind[plain], self._plain_of[self._plain_forms.pop(plain).text]
                    unused.append(plain)
        if unused:
            self._plain.remove(unused)

    def _rebuild(self, plans: dict[int, OperatorPlan], learnt: Mapping[str, list[int]]) -> None:
        """Build the graph anew, of these subscriptions; those of before are let go of."""
        self._start()
        coming: dict[int, Compiled] = {}
        for number, plan in plans.items():
            self._put(number, plan, coming)
        self._take_plain(coming)
        self._recall(learnt)

    # Matching

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        """The subscriptions that are true of each event. A large batch is cut where it is time to learn from it."""
        found: list[MatchResult] = []
        moment, changes, plain = self._begun(batch)
        start = 0
        while True:
            with self._lock:
                if start and changes == self._changes:  # else it goes on with what was there when it began
                    moment = self._now()
                stop = start + max(_LEARNING, self._learning_at() - self._seen)
                if len(batch) - start <= 2 * _LEARNING:
                    stop = len(batch)
            part = batch if start == 0 and stop >= len(batch) else batch[start:stop]
            run = _Run(moment, part, self._callers, self._limits, _KINDS[self._order], plain, start)
            found.append(run.result())
            with self._lock:
                self._seen += len(part)
            if stop >= len(batch):
                return found[0] if len(found) == 1 else _one_after_the_other(found)
            start = stop

    def _begun(self, batch: EventBatch) -> tuple[Moment, int, MatchResult | None]:
        """What there is at a moment, the changes until then, and which plain parts are true of the events."""
        while True:
            with self._lock:
                moment, changes = self._now(), self._changes
            plain = self._plain.match(batch, self._plain_form) if moment.behind else None
            if plain is None or changes == self._changes:  # else parts came or went that the moment does not know
                return moment, changes, plain

    def _learning_at(self) -> int:
        """After how many events what was learnt is used the next time: each time they are twice as many."""
        return self._learnt_at + max(_LEARNING, min(self._learnt_at, _MOST_LEARNING))

    def _plain_form(self, number: int) -> Form:
        known = self._plain_forms.get(number)
        return FALSE if known is None else known.form  # it may leave while a match looks at it

    def _now(self) -> Moment:
        if self._seen >= self._learning_at():
            self._learn()
        if self._moment is None:
            if self._order == "suborder":
                self._graph.chains_ready()
            always = np.array(sorted(self._always), np.int32)
            lists = self._predicates, self._literals, self._conjunctions
            self._moment = Moment(self._graph.held(), always, dict(self._behind), *lists)
        return self._moment

    def _learn(self) -> None:
        """Go on by what was learnt of outcomes and costs."""
        self._learnt_at = self._seen
        self._graph.learn()
        self._graph.set_costs([self._callers[each.call.name].cost for each in self._predicates])
        if self._order == "suborder" and self._graph.conjunctions:
            self._graph.order_chains()
        self._moment = None

    # What it holds

    def columns(self) -> tuple[Column, ...]:
        asking = self._plain.asking()
        return () if asking is None else asking.columns()

    def paths(self) -> tuple[set[Path], list[int]]:
        return {(name,) for plan in list(self._plans.values()) for name in plan.names()}, []

    def flats(self) -> list[Flat]:
        """Nothing: rows of plain parts say less than the subscriptions do, and are numbered otherwise."""
        return []

    def reads(self) -> frozenset[str] | None:
        """The attributes that operators may look at, as such or as arguments; None: all."""
        declared = self._operating.operators.reads()
        if declared is None:
            return None
        arguments = (each for known in list(self._predicates) for each in known.call.arguments)
        return declared.union(each.path[0] for each in arguments if isinstance(each, Attribute))

    def document_paths(self) -> tuple[Path, ...]:
        return self._plain.document_paths()

    def numbers(self) -> list[int]:
        return list(self._plans)

    def renumbered(self, numbers: NDArray[np.int32]) -> Self:
        made = self._like()
        chosen = {int(numbers[old]): plan for old, plan in self._plans.items() if numbers[old] >= 0}
        made._rebuild(chosen, self.learnt())
        return made

    def united(self, others: Sequence[Self]) -> Self:
        made = self._like()
        plans = {number: plan for each in (self, *others) for number, plan in each._plans.items()}
        made._rebuild(plans, self.learnt())
        return made

    def _like(self) -> Self:
        return type(self)(self._limits, self._operating, _plain_index(self._limits))

    def learnt(self) -> dict[str, list[int]]:
        """How often each literal was tried and held, by what it says."""
        tried, held = self._graph.outcomes()
        return {
            repr(literal): [int(tried[number]), int(held[number])]
            for literal, number in self._literal_of.items()
            if tried[number]
        }

    def _recall(self, learnt: Mapping[str, list[int]]) -> None:
        known = [learnt.get(repr(literal), [0, 0]) for literal, _ in self._literals]
        self._graph.recall([each[0] for each in known], [each[1] for each in known])

    def recall(self, learnt: Mapping[str, list[int]]) -> None:
        """Take over what another index learnt."""
        with self._lock:
            self._recall(learnt)
            self._moment = None

    def save(self, write: Write) -> None:
        """Their numbers, and what was learnt: they are made anew from their texts."""
        with self._lock:
            write(FILE, {"numbers": np.array(self.numbers(), np.int32)}, {"learnt": self.learnt()})

    def stats(self) -> dict[str, Any]:
        """What each operator did, and how many predicates it has."""
        counts = Counter(each.call.name for each in self._predicates)
        return {name: {**found, "predicates": counts[name]} for name, found in self._operating.stats().items()}

    def plan(self) -> list[dict[str, Any]]:
        """What is known of each literal, and what an evaluation is worth at the beginning, the most first."""
        with self._lock:
            self._learn()
            popularity, holding = self._graph.popularity(), self._graph.holding()
            tried, _ = self._graph.outcomes()
            rows = []
            for literal, number in self._literal_of.items():
                cost = self._callers[literal.call.name].cost
                count = int(popularity[number])
                rows.append(
                    {
                        "text": _text(literal),
                        "conjunctions": count,
                        "holding": round(float(holding[number]), 4),
                        "tried": int(tried[number]),
                        "cost": round(cost, 4),
                        "worth": round(float((1 - holding[number]) * count / cost), 4),
                    }
                )
        return sorted(rows, key=lambda each: -each["worth"])


@dataclass(frozen=True, slots=True)
class _Join:
    """How the variables of a conjunction are held together."""

    occurrences: tuple[tuple[int, tuple[str, ...]], ...]
    """Literals, each with the names of its variables."""
    tests: tuple[tuple[frozenset[str], Form], ...]
    mixed: tuple[frozenset[str], Form] | None

    @classmethod
    def of(
        cls, made: OperatorConjunction, occurrences: Sequence[tuple[int, tuple[str, ...]]], plan: OperatorPlan
    ) -> _Join:
        def compiled(test: Expression) -> tuple[frozenset[str], Form]:
            return frozenset(variables_of(test)), plan.compile_test(as_attributes(test)).form

        return cls(
            tuple((literal, names) for literal, names in occurrences if names),
            tuple(compiled(test) for test in made.tests),
            None if made.mixed is None else compiled(made.mixed),
        )

    def solve(self, bindings: dict[int, Sequence[Binding]], event: Event, limits: Limits) -> Substitution | None:
        """A substitution that meets it. Raises LimitError."""
        relations = [Relation(names, bindings[literal]) for literal, names in self.occurrences]
        tests = [Test(names, _passing(form, {}, limits)) for names, form in self.tests]
        if self.mixed is not None:
            names, form = self.mixed
            tests.append(Test(names, _passing(form, event.attributes, limits)))
        return joined(relations, tests, limits.max_bindings)


def _passing(form: Form, attributes: dict[str, Any], limits: Limits) -> Callable[[Mapping[str, Value]], bool]:
    """A test of variables, beside attributes of an event."""

    def passes(bound: Mapping[str, Value]) -> bool:
        event = {**attributes, **{f"?{name}": value for name, value in bound.items()}}
        return is_match(form, Event(event), limits)

    return passes


def _text(literal: Literal) -> str:
    """What a literal says, its variables by number."""
    said = print_expression(literal.call if literal.wanted else Not(literal.call))
    return " AND ".join([said, *map(print_expression, literal.tests)])


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


class _Run:
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
            asked: list[tuple[_Flight, Any, Row]] = []
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

    def _holds(self, flight: _Flight, known: Predicate, literal: int, outcome: Any) -> bool:
        """Whether a literal holds. Raises LimitError."""
        said, form = self._moment.literals[literal]
        if not known.variables:
            return bool(outcome) is said.wanted
        bindings = _distinct(outcome, known)
        if form is not None:
            passes = _passing(form, {}, self._limits)
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


def _one_after_the_other(parts: Sequence[MatchResult]) -> MatchResult:
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


def _row(raw: RawEvent, call: Call, operator: Operator) -> Row | None:
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
    return Row(raw.seen(operator.signature.reads), tuple(arguments))


def _key(name: str, arguments: tuple[Any, ...]) -> Any:
    """What tells calls apart; None if arguments cannot be compared."""
    key = name, tuple([(type(each), each) for each in arguments])
    try:
        hash(key)
    except (TypeError, ValueError):
        return None
    return key


def _distinct(bindings: Sequence[Binding], known: Predicate) -> Sequence[Binding]:
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


def new_matcher(limits: Limits, operating: Operating) -> OperatorMatcher:
    """An empty index, with a columnar one for plain parts, whatever the algorithm of the engine is."""
    return OperatorMatcher(limits, operating, _plain_index(limits))


def _plain_index(limits: Limits) -> Indexes:
    return Indexes(create_matcher(DEFAULT_ALGORITHM, limits), lambda kind: create_other(kind, limits))
