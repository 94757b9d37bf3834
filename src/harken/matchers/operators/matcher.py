"""Subscriptions with operators: an index decides their plain parts first, and operators decide what remains."""

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
from harken.matchers.operators.batch_run import BatchRun, CallPredicate, RunSnapshot, concatenated
from harken.matchers.operators.graph import OperatorGraph
from harken.matchers.operators.joining import Join
from harken.matchers.operators.partition import balanced_shares
from harken.matchers.roles import Write
from harken.operators.operating import Operating
from harken.schema.paths import Path

_KINDS = {"adaptive": ADAPTIVE, "suborder": SUBORDER, "sequential": SEQUENTIAL, "naive": NAIVE}
FILE = "operators"
_LEARNING = 16
"""Number of events after which statistics are applied first; then again whenever it has doubled."""
_MOST_LEARNING = 4_096
_MOST_REMOVED = 1_000


class _RemovedForms:
    """Plain parts removed since a snapshot, which may still need them, linked to those of later snapshots."""

    __slots__ = ("__weakref__", "forms", "later")

    def __init__(self) -> None:
        self.forms: dict[int, Form] = {}
        self.later: _RemovedForms | None = None

    def of(self, number: int) -> Form:
        node: _RemovedForms | None = self
        while node is not None:
            form = node.forms.get(number)
            if form is not None:
                return form
            node = node.later
        raise AssertionError(f"there was never a plain part {number}")


@dataclass(frozen=True, slots=True)
class OperatorSnapshot(Snapshot):
    """The subscriptions with operators at one moment: their graph, and a snapshot of their plain parts."""

    matcher: OperatorMatcher
    run_snapshot: RunSnapshot
    plain: Snapshot
    removed: _RemovedForms
    changes: int

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        return self.matcher.run(self, batch)


class OperatorMatcher:
    """An index of subscriptions that call operators."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    traits: ClassVar[frozenset[Trait]] = frozenset((Trait.UNSUBSCRIBE, Trait.IN_PLACE))

    def __init__(self, limits: Limits, operating: Operating, plain: Indexes) -> None:
        """`plain` is an empty index for the plain parts."""
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
        self._removed: Callable[[], _RemovedForms | None] = ref(_RemovedForms())
        """A weak reference to the plain parts removed since the last snapshot: only that snapshot needs them."""
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
        """Each literal, with the form that tests its bindings."""
        self._literal_of: dict[Literal, int] = {}
        self._conjunctions: list[tuple[int, Join | None]] = []
        """For each conjunction, its subscription and the join of its variables, if it has any."""
        self._conjunctions_of: dict[int, list[tuple[int, int | None]]] = {}
        """The conjunctions of each subscription, each with its plain part."""
        self._behind: dict[int, tuple[int, ...]] = {}
        self._always: set[int] = set()
        self._current: RunSnapshot | None = None
        self._removed_count = 0

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
            self._add_plain(coming)  # before removing others: a plain part that both have is kept
            self._discard(replaced)

    def remove(self, numbers: Iterable[int]) -> None:
        with self._lock:
            self._discard(numbers)

    def _discard(self, numbers: Iterable[int]) -> None:
        """Remove subscriptions. Rebuilds the graph once most of it belongs to removed ones."""
        self._remove(numbers)
        if self._removed_count > max(_MOST_REMOVED, len(self._conjunctions_of)):
            self._rebuild(self._plans, self.learnt())
        self._current = None
        self._changes += 1

    def _put(self, number: int, plan: OperatorPlan, coming: dict[int, Compiled]) -> None:
        self._plans[number] = plan
        conjunctions: list[tuple[int, int | None]] = []
        for planned in plan.conjunctions:
            occurrences = [(self._literal(one.literal, plan), one.variables) for one in planned.occurrences]
            join = Join.of(planned, occurrences, plan) if planned.is_joined else None
            literals = list(dict.fromkeys(literal for literal, _ in occurrences))
            made = self._graph.add_conjunction(
                literals, join is not None, conjunctions[-1][0] if conjunctions else None
            )
            self._conjunctions.append((number, join))
            plain = None if planned.plain is None else self._plain_number(planned.plain, coming)
            conjunctions.append((made, plain))
            if plain is None:
                self._always.add(made)
            else:
                self._behind[plain] = (*self._behind.get(plain, ()), made)
        self._conjunctions_of[number] = conjunctions

    def _plain_number(self, plain: Compiled, coming: dict[int, Compiled]) -> int:
        number = self._plain_of.get(plain.text)
        if number is None:
            number = self._plain_of[plain.text] = self._next_plain
            self._next_plain += 1
            self._plain_forms[number] = coming[number] = plain
        return number

    def _add_plain(self, coming: dict[int, Compiled]) -> None:
        if coming:
            self._plain.add([Entry(number, compiled) for number, compiled in coming.items()])

    def _literal(self, literal: Literal, plan: OperatorPlan) -> int:
        number = self._literal_of.get(literal)
        if number is not None:
            return number
        form = plan.compile_test(as_attributes(conjunction(list(literal.tests)))).form if literal.tests else None
        operator = self._operators[literal.call.name]
        predicate = self._predicate_of.get(literal.call)
        if predicate is None:
            predicate = self._graph.add_predicate(self._callers[operator.name].cost)
            arguments = list(enumerate(literal.call.arguments))
            variables = tuple(int(argument.name) for _, argument in arguments if isinstance(argument, Variable))
            free = tuple(place for place, argument in arguments if isinstance(argument, Variable))
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
            self._removed_count += 1
            for conjunction_number, plain in self._conjunctions_of.pop(number):
                self._always.discard(conjunction_number)
                if plain is None:
                    continue
                self._behind[plain] = tuple(one for one in self._behind[plain] if one != conjunction_number)
                if not self._behind[plain]:
                    compiled, removed = self._plain_forms[plain], self._removed()
                    if removed is not None:
                        removed.forms[plain] = compiled.form
                    del self._behind[plain], self._plain_of[compiled.text], self._plain_forms[plain]
                    unused.append(plain)
        if unused:
            self._plain.remove(unused)

    def _rebuild(self, plans: dict[int, OperatorPlan], learnt: Mapping[str, list[int]]) -> None:
        """Replace the graph by one of these subscriptions."""
        self._start()
        coming: dict[int, Compiled] = {}
        for number, plan in plans.items():
            self._put(number, plan, coming)
        self._add_plain(coming)
        self._recall(learnt)

    # Matching

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        return self.snapshot().match(batch, form_of)

    def snapshot(self) -> OperatorSnapshot:
        with self._lock:
            removed = self._removed()
            if removed is None or removed.forms:
                fresh = _RemovedForms()
                if removed is not None:
                    removed.later = fresh
                self._removed, removed = ref(fresh), fresh
            return OperatorSnapshot(self, self._now(), self._plain.snapshot(), removed, self._changes)

    def run(self, snapshot: OperatorSnapshot, batch: EventBatch) -> MatchResult:
        """The subscriptions that are true of each event. Large batches are cut to apply statistics in between."""
        results: list[MatchResult] = []
        current = snapshot.run_snapshot
        forms = self._plain_forms

        def form_of(number: int) -> Form:
            compiled = forms.get(number)
            return snapshot.removed.of(number) if compiled is None else compiled.form

        plain = snapshot.plain.match(batch, form_of) if current.behind else None
        start = 0
        while True:
            with self._lock:
                if start and snapshot.changes == self._changes:  # else continue with the snapshot
                    current = self._now()
                stop = start + max(_LEARNING, self._learning_at() - self._seen)
                if len(batch) - start <= 2 * _LEARNING:
                    stop = len(batch)
            part = batch if start == 0 and stop >= len(batch) else batch[start:stop]
            run = BatchRun(current, part, self._callers, self._limits, _KINDS[self._order], plain, start)
            results.append(run.result())
            with self._lock:
                self._seen += len(part)
            if stop >= len(batch):
                return results[0] if len(results) == 1 else concatenated(results)
            start = stop

    def _learning_at(self) -> int:
        """The number of events after which statistics are applied next: about twice the last one."""
        return self._learnt_at + max(_LEARNING, min(self._learnt_at, _MOST_LEARNING))

    def _now(self) -> RunSnapshot:
        if self._seen >= self._learning_at():
            self._learn()
        if self._current is None:
            if self._order == "suborder":
                self._graph.chains_ready()
            always = np.array(sorted(self._always), np.int32)
            lists = self._predicates, self._literals, self._conjunctions
            self._current = RunSnapshot(self._graph.held(), always, dict(self._behind), *lists)
        return self._current

    def _learn(self) -> None:
        """Apply the statistics of outcomes and costs."""
        self._learnt_at = self._seen
        self._graph.learn()
        self._graph.set_costs([self._callers[predicate.call.name].cost for predicate in self._predicates])
        if self._order == "suborder" and self._graph.conjunctions:
            self._graph.order_chains()
        self._current = None

    # Reading

    def columns(self) -> tuple[Column, ...]:
        lister = self._plain.asking()
        return () if lister is None else lister.columns()

    def paths(self) -> tuple[set[Path], list[int]]:
        return {(name,) for plan in list(self._plans.values()) for name in plan.names()}, []

    def flats(self) -> list[Flat]:
        """None: rows of plain parts are weaker than their subscriptions, and have other numbers."""
        return []

    def reads(self) -> frozenset[str] | None:
        """The attributes that operators may read, directly or as arguments; None: all."""
        declared = self._operating.operators.reads()
        if declared is None:
            return None
        arguments = (argument for predicate in list(self._predicates) for argument in predicate.call.arguments)
        return declared.union(argument.path[0] for argument in arguments if isinstance(argument, Attribute))

    def document_paths(self) -> tuple[Path, ...]:
        return self._plain.document_paths()

    def numbers(self) -> list[int]:
        return list(self._plans)

    def shares(self, parts: int) -> list[NDArray[np.int64]]:
        """Subscriptions that share predicates stay together."""
        numbers = np.array(sorted(self._plans), np.int64)
        used = [self._predicates_of(number) for number in numbers.tolist()]
        starts = np.cumsum([0, *map(len, used)])
        predicates = np.array([each for several in used for each in several], np.int64)
        costs = np.array([self._callers[each.call.name].cost for each in self._predicates])
        share = balanced_shares(starts, predicates, costs, parts)
        return [numbers[share == part] for part in range(parts)]

    def _predicates_of(self, number: int) -> list[int]:
        calls = (
            one.literal.call for conjunction in self._plans[number].conjunctions for one in conjunction.occurrences
        )
        return list(dict.fromkeys(self._predicate_of[call] for call in calls))

    def renumbered(self, numbers: NDArray[np.int32]) -> Self:
        made = self._like()
        chosen = {int(numbers[old]): plan for old, plan in self._plans.items() if numbers[old] >= 0}
        made._rebuild(chosen, self.learnt())
        return made

    def united(self, others: Sequence[Self]) -> Self:
        made = self._like()
        plans = {number: plan for matcher in (self, *others) for number, plan in matcher._plans.items()}
        made._rebuild(plans, self.learnt())
        return made

    def _like(self) -> Self:
        return type(self)(self._limits, self._operating, _plain_index(self._limits))

    def learnt(self) -> dict[str, list[int]]:
        """How often each literal was tried and held, by its repr."""
        tried, held = self._graph.outcomes()
        return {
            repr(literal): [int(tried[number]), int(held[number])]
            for literal, number in self._literal_of.items()
            if tried[number]
        }

    def _recall(self, learnt: Mapping[str, list[int]]) -> None:
        counts = [learnt.get(repr(literal), [0, 0]) for literal, _ in self._literals]
        self._graph.recall([tried for tried, _ in counts], [held for _, held in counts])

    def recall(self, learnt: Mapping[str, list[int]]) -> None:
        """Take over the outcomes that another index counted."""
        with self._lock:
            self._recall(learnt)
            self._current = None

    def save(self, write: Write) -> None:
        """Write the numbers of subscriptions and the counted outcomes. Loading compiles the texts again."""
        with self._lock:
            write(FILE, {"numbers": np.array(self.numbers(), np.int32)}, {"learnt": self.learnt()})

    def stats(self) -> dict[str, Any]:
        """Statistics of each operator's calls, and the number of its predicates."""
        counts = Counter(predicate.call.name for predicate in self._predicates)
        return {name: {**calls, "predicates": counts[name]} for name, calls in self._operating.stats().items()}

    def plan(self) -> list[dict[str, Any]]:
        """Statistics of each literal, in descending order of the worth of evaluating it first."""
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
    """The text of a literal, with variables by number."""
    call = print_expression(literal.call if literal.wanted else Not(literal.call))
    return " AND ".join([call, *map(print_expression, literal.tests)])


def new_matcher(limits: Limits, operating: Operating) -> OperatorMatcher:
    """An empty index. Its plain parts have a columnar index, whichever algorithm the engine has."""
    return OperatorMatcher(limits, operating, _plain_index(limits))


def _plain_index(limits: Limits) -> Indexes:
    return Indexes(create_matcher(DEFAULT_ALGORITHM, limits), lambda kind: create_other(kind, limits), rank=PLAIN_PARTS)
