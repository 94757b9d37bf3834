"""Subscriptions with operators: an index decides their plain parts, and only what survives reaches the operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.flat import Flat
from harken.concurrency.forking import OPERATORS as RANK
from harken.concurrency.forking import PLAIN_PARTS, fork_lock
from harken.events import EventBatch
from harken.kernels.ordering import (
    ADAPTIVE,
    NAIVE,
    SEQUENTIAL,
    SUBORDER,
)
from harken.language.ast import Attribute, Call, Not, Variable, conjunction
from harken.language.capabilities import Capability
from harken.language.compiled import Compiled, Form
from harken.language.sql.operator_plans import Literal, OperatorPlan, as_attributes
from harken.language.sql.printer import print_expression
from harken.limits import Limits
from harken.matchers.algorithm_registry import DEFAULT_ALGORITHM, create_matcher, create_other
from harken.matchers.base import Entry, FormOf, MatchResult, Snapshot, Trait
from harken.matchers.kinds import Indexes
from harken.matchers.operators.batch_run import BatchRun, CallPredicate, Moment, one_after_the_other
from harken.matchers.operators.graph import OperatorGraph
from harken.matchers.operators.joining import Join
from harken.matchers.roles import Write
from harken.operators.operating import Operating
from harken.schema.paths import Path

_KINDS = {"adaptive": ADAPTIVE, "suborder": SUBORDER, "sequential": SEQUENTIAL, "naive": NAIVE}
FILE = "operators"
_LEARNING = 16
"""Events after which what was learnt is used for the first time, and then each time there are twice as many."""
_MOST_LEARNING = 4_096
_MANY_GONE = 1_000


class _LeftForms:
    """Plain parts that left since a snapshot, which may still have to verify them; and those that left after those."""

    __slots__ = ("__weakref__", "forms", "later")

    def __init__(self) -> None:
        self.forms: dict[int, Form] = {}
        self.later: _LeftForms | None = None

    def of(self, number: int) -> Form:
        node: _LeftForms | None = self
        while node is not None:
            form = node.forms.get(number)
            if form is not None:
                return form
            node = node.later
        raise AssertionError(f"nobody ever had the plain part {number}")


@dataclass(frozen=True, slots=True)
class OperatorSnapshot(Snapshot):
    """The operators' part of subscriptions at one moment, with their plain parts."""

    matcher: OperatorMatcher
    moment: Moment
    plain: Snapshot
    left: _LeftForms
    changes: int

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        return self.matcher.run(self, batch)


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
        self._lock = fork_lock(RANK)
        self._plain_of: dict[str, int] = {}
        self._plain_forms: dict[int, Compiled] = {}
        self._next_plain = 0
        self._left: Callable[[], _LeftForms | None] = ref(_LeftForms())
        """What left since the last snapshot, as long as somebody has that."""
        self._changes = 0
        self._seen = 0
        self._learnt_at = 0
        self._start()

    def _start(self) -> None:
        self._graph = OperatorGraph()
        self._plans: dict[int, OperatorPlan] = {}
        self._predicates: list[CallPredicate] = []
        self._predicate_of: dict[Call, int] = {}
        self._literals: list[tuple[Literal, Form | None]] = []
        """Each with what tests its bindings."""
        self._literal_of: dict[Literal, int] = {}
        self._conjunctions: list[tuple[int, Join | None]] = []
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
            join = Join.of(each, occurrences, plan) if each.is_joined else None
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
            self._predicates.append(CallPredicate(literal.call, variables, free))
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
                    compiled, left = self._plain_forms[plain], self._left()
                    if left is not None:
                        left.forms[plain] = compiled.form
                    del self._behind[plain], self._plain_of[compiled.text], self._plain_forms[plain]
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
        return self.snapshot().match(batch, form_of)

    def snapshot(self) -> OperatorSnapshot:
        with self._lock:
            left = self._left()
            if left is None or left.forms:
                fresh = _LeftForms()
                if left is not None:
                    left.later = fresh
                self._left, left = ref(fresh), fresh
            return OperatorSnapshot(self, self._now(), self._plain.snapshot(), left, self._changes)

    def run(self, known: OperatorSnapshot, batch: EventBatch) -> MatchResult:
        """The subscriptions that are true of each event. A large batch is cut where it is time to learn from it."""
        found: list[MatchResult] = []
        moment = known.moment
        forms = self._plain_forms

        def form_of(number: int) -> Form:
            compiled = forms.get(number)
            return known.left.of(number) if compiled is None else compiled.form

        plain = known.plain.match(batch, form_of) if moment.behind else None
        start = 0
        while True:
            with self._lock:
                if start and known.changes == self._changes:  # else it goes on with what was there when it began
                    moment = self._now()
                stop = start + max(_LEARNING, self._learning_at() - self._seen)
                if len(batch) - start <= 2 * _LEARNING:
                    stop = len(batch)
            part = batch if start == 0 and stop >= len(batch) else batch[start:stop]
            run = BatchRun(moment, part, self._callers, self._limits, _KINDS[self._order], plain, start)
            found.append(run.result())
            with self._lock:
                self._seen += len(part)
            if stop >= len(batch):
                return found[0] if len(found) == 1 else one_after_the_other(found)
            start = stop

    def _learning_at(self) -> int:
        """After how many events what was learnt is used the next time: each time they are twice as many."""
        return self._learnt_at + max(_LEARNING, min(self._learnt_at, _MOST_LEARNING))

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


def _text(literal: Literal) -> str:
    """What a literal says, its variables by number."""
    said = print_expression(literal.call if literal.wanted else Not(literal.call))
    return " AND ".join([said, *map(print_expression, literal.tests)])


def new_matcher(limits: Limits, operating: Operating) -> OperatorMatcher:
    """An empty index, with a columnar one for plain parts, whatever the algorithm of the engine is."""
    return OperatorMatcher(limits, operating, _plain_index(limits))


def _plain_index(limits: Limits) -> Indexes:
    return Indexes(create_matcher(DEFAULT_ALGORITHM, limits), lambda kind: create_other(kind, limits), rank=PLAIN_PARTS)
