"""An engine through its life: subscribing, matching, merging, saving, crashing; against a dictionary of texts."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from harken import Engine
from harken.errors import ContradictionError
from harken.events import Event
from harken.language.sql import parse
from harken.language.sql.printer import print_expression
from harken.reference import expressions as reference
from properties.generators import Expressions, nested_events, vocabulary_of
from properties.replay import TIMES

EVENTS = nested_events(Random("events"), 40)
LAYOUTS = [None, ["cluster"], ["list"], ["pool"], ["sketch"], ["sieve"]]
VOCABULARY = vocabulary_of(EVENTS)


class EngineStates(RuleBasedStateMachine):
    """What the engine should hold is in `texts`, what its folder should hold in `saved`."""

    ids = Bundle("ids")

    @initialize(
        layouts=st.sampled_from(LAYOUTS),
        recent_rows=st.sampled_from([3, 12, 999]),
        small_rows=st.sampled_from([0, 20, 1_024]),
    )
    def start(self, layouts: list[str] | None, recent_rows: int, small_rows: int) -> None:
        options = {} if layouts is None else {"layouts": layouts}
        self.engine = Engine(recent_rows=recent_rows, small_rows=small_rows, background=False, **options)
        self.texts: dict[str, str] = {}
        self.saved: dict[str, str] | None = None
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "engine"

    @rule(target=ids, id=st.integers(0, 30).map(str), seed=st.integers(0, 10**6), times=st.integers(1, 6))
    def subscribe(self, id: str, seed: int, times: int) -> str:
        expressions = Expressions(Random(seed), VOCABULARY)
        records = []
        for number in range(times):
            where = print_expression(expressions.expression())
            records.append((id if number == 0 else f"{id}.{number}", where))
        if times == 1:
            try:
                self.engine.subscribe(id, records[0][1], replace=True)
                self.texts[id] = records[0][1]
            except ContradictionError:
                pass
            return id
        report = self.engine.subscribe_many(records, replace=True)
        rejected = {fault.id for fault in report.faults}
        self.texts.update((each, where) for each, where in records if each not in rejected)
        return id

    @rule(id=ids)
    def unsubscribe(self, id: str) -> None:
        if id in self.texts:
            self.engine.unsubscribe(id)
            del self.texts[id]

    @rule(seed=st.integers(0, 10**6))
    def match(self, seed: int) -> None:
        events = Random(seed).sample(EVENTS, 5)
        found = self.engine.match_batch(events, on_mismatch="ignore")
        assert not found.errors
        for raw, ids in zip(events, found.ids, strict=True):
            event = Event.of(raw).attributes
            expected = {id for id, where in self.texts.items() if reference.matches(parse(where), event)}
            assert len(ids) == len(set(ids))
            assert set(ids) == expected

    @rule()
    def merge(self) -> None:
        self.engine.merge()

    @rule()
    def learn(self) -> None:
        self.engine.learn(EVENTS[:20])

    @rule()
    def save(self) -> None:
        self.engine.save(self.path)
        self.saved = dict(self.texts)

    @rule()
    def crash(self) -> None:
        """What was not saved is lost; what was is there."""
        if self.saved is not None:
            self.engine = Engine.load(self.path)
            self.texts = dict(self.saved)

    @invariant()
    def it_holds_what_it_should(self) -> None:
        if hasattr(self, "texts"):
            assert len(self.engine) == len(self.texts)
            assert {each.id: each.where for each in self.engine} == self.texts

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestEngineStates = EngineStates.TestCase
TestEngineStates.settings = settings(max_examples=int(25 * TIMES), stateful_step_count=30, deadline=None)
