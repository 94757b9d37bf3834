"""The algorithms of the papers against the reference, while subscriptions come and go."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harken import Engine
from harken.errors import CapabilityError, ContradictionError, HarkenError, LimitError
from harken.language.ast import Expression
from harken.language.sql.printer import print_expression
from harken.limits import Limits
from harken.matchers import ALGORITHMS, create_matcher
from harken.matchers.base import Trait
from harken.schema import Schema
from harken_lab.papers import growing as labels_module
from harken_lab.papers import labelled_rows as rows_module
from harken_lab.papers import row_matcher as matcher_module
from properties.agreement import Judge, check
from properties.generators import Expressions, RawEvent, Vocabulary, nested_events, vocabulary_of
from properties.typed import SCHEMA, TypedVocabulary, typed_events

_ROUNDS, _FIRST, _STEPS, _EVENTS = 2, 30, 24, 20
# What grows with the combinations of predicates is to be rejected soon.
_LIMITS = (Limits(max_tree_nodes=20_000), Limits(max_tree_nodes=5_000, max_matrix_bytes=30_000, max_table_values=50))
_REJECTIONS: tuple[type[HarkenError], ...] = (ContradictionError, CapabilityError, LimitError)
# Of so many subscriptions one is true at least, on average.
_ONE_TRUE_IN = 50

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "counting_lists": [{"index": "table"}, {"index": "linked", "vector": "bits", "growth": "constant"}],
    "counting_bits": [{"index": "table"}, {"index": "linked", "vector": "bits", "deletion": "matrix"}],
    "counting_bytes": [{"index": "table", "deletion": "matrix"}],
    **{name: [{"threads": 3}] for name in ("equality_preferred", "quarantine")},
    "gough": [{"share": False}],
    "hanson": [{"choose": "first"}],
    **{name: [{"database": "sqlite"}] for name in ("sequential_search", "predicate_grouping", "relational_anchored")},
    "matching_tree": [
        {"collapse": False, "successors": False, "factor": 2},
        {"successors": "ahead"},
        {"collapse": False, "successors": "ahead", "factor": 1},
    ],
}
"""Options of algorithms that change what an event costs, and must not change an answer."""


_NOT_OF_PAPERS = ("columnar", "naive")
CONTESTANTS = {
    " ".join([name, *(f"{key}={value}" for key, value in options.items())]): (name, options)
    for name in ALGORITHMS
    if name not in _NOT_OF_PAPERS
    for options in [{}, *OPTIONS.get(name, [])]
}


@pytest.fixture(params=CONTESTANTS)
def contestant(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return CONTESTANTS[request.param]


@pytest.fixture(autouse=True)
def _soon_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants that nobody has any more go soon, and indexes are built anew after few changes."""
    monkeypatch.setattr(rows_module, "_FEW", 20)
    monkeypatch.setattr(matcher_module, "_FEW", 8)
    monkeypatch.setattr(labels_module, "_MOST_RECENT", 4)


def test_papers_agree_with_reference_without_a_schema(bulk, contestant, monkeypatch):
    true = 0
    for place, rng in enumerate(bulk.rounds(_ROUNDS)):
        have_labels_move(place, monkeypatch)
        events = nested_events(rng, _EVENTS)
        churn = Churn(rng, vocabulary_of(events), events, None, contestant)
        true += churn.run()
        bulk.pairs += churn.pairs
    assert true > bulk.pairs / _ONE_TRUE_IN


def test_papers_agree_with_reference_with_a_schema(bulk, contestant, monkeypatch):
    true = 0
    for place, rng in enumerate(bulk.rounds(_ROUNDS)):
        have_labels_move(place, monkeypatch)
        vocabulary = TypedVocabulary(rng)
        churn = Churn(rng, vocabulary, typed_events(rng, vocabulary, _EVENTS), SCHEMA, contestant)
        true += churn.run()
        bulk.pairs += churn.pairs
    assert true > bulk.pairs / _ONE_TRUE_IN


def have_labels_move(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every other round labels are dealt anew with most new constants, not once in a long while."""
    monkeypatch.setattr(labels_module, "_LEAST_STEP", 1 << 28 if place % 2 else 4)


class Churn:
    """Subscriptions that come many at once, then go, come and are replaced one by one, with batches in between."""

    def __init__(
        self,
        rng: Random,
        vocabulary: Vocabulary,
        events: list[RawEvent],
        schema: Schema | None,
        contestant: tuple[str, dict[str, Any]],
    ) -> None:
        algorithm, options = contestant
        self.rng = rng
        self.generator = Expressions(rng, vocabulary)
        self.events = events
        self.judge = Judge(schema)
        self.engine = Engine(schema, algorithm, rng.choice(_LIMITS), **options)
        self.can_remove = Trait.UNSUBSCRIBE in create_matcher(algorithm).traits
        self.expressions: dict[str, Expression] = {}
        self.pairs = 0

    def run(self) -> int:
        """How often a subscription was true."""
        self._load()
        true = self._check(self.events)
        for step in range(_STEPS):
            self._change(str(_FIRST + step))
            if step % 10 == 9:
                true += self._check(self.rng.sample(self.events, 5))
        true += self._check(self.events)
        if self.can_remove:
            for id in self.rng.sample(sorted(self.expressions), len(self.expressions)):
                self.engine.unsubscribe(id)
            self.expressions.clear()
            self._check(self.events[:5])
            self._load()
            true += self._check(self.events[:5])
        return true

    def _load(self) -> None:
        drawn = {str(number): self.generator.expression() for number in range(_FIRST)}
        try:
            report = self.engine.subscribe_many([(id, print_expression(each)) for id, each in drawn.items()])
        except LimitError:  # together they are too many: then as many as can be
            for id, each in drawn.items():
                self._subscribe(id, each)
            return
        for fault in report.faults:
            assert isinstance(fault.error, _REJECTIONS), fault.error
            del drawn[str(fault.id)]
        self.expressions |= drawn

    def _change(self, id: str) -> None:
        roll = self.rng.randrange(5) if self.can_remove and self.expressions else 0
        if roll == 4:
            gone = self.rng.choice(sorted(self.expressions))
            self.engine.unsubscribe(gone)
            del self.expressions[gone]
            return
        changed = self.rng.choice(sorted(self.expressions)) if roll == 3 else id
        self._subscribe(changed, self.generator.expression())

    def _subscribe(self, id: str, expression: Expression) -> None:
        try:
            self.engine.subscribe(id, print_expression(expression), replace=True)
            self.expressions[id] = expression
        except _REJECTIONS:
            pass

    def _check(self, events: list[RawEvent]) -> int:
        self.pairs += len(self.expressions) * len(events)
        return check(self.engine, self.expressions, events, self.judge)
