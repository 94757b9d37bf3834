"""SQL texts that mix `xpath_boolean` with predicates on plain attributes, against the reference, by every algorithm."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harken import Engine
from harken.errors import ContradictionError
from harken.language.ast import Expression
from harken.language.sql import parse
from harken.language.sql.printer import print_expression
from harken.matchers import ALGORITHMS
from properties.agreement import Judge, check
from properties.generators import RawEvent
from properties.replay import Bulk
from properties.xpaths import random_document, random_expression


def random_events(rng: Random, documents: list[str], count: int) -> list[RawEvent]:
    """Events with documents: none, one, or several, also inside objects of an array, and numbers in their place."""
    events = []
    for _ in range(count):
        event: RawEvent = {}
        if rng.random() < 0.8:
            event["region"] = rng.choice(("EU", "US", "AS"))
        if rng.random() < 0.8:
            event["n"] = rng.randrange(5) if rng.random() < 0.7 else [rng.randrange(5) for _ in range(rng.randrange(3))]
        draw = rng.random()
        if draw < 0.6:
            event["doc"] = rng.choice(documents)
        elif draw < 0.8:
            event["doc"] = rng.choices(documents, k=rng.randrange(4))
        elif draw < 0.9:
            event["doc"] = rng.choice((None, 5, True))
        if rng.random() < 0.4:
            event["lines"] = [random_line(rng, documents) for _ in range(rng.randrange(4))]
        events.append(event)
    return events


def random_line(rng: Random, documents: list[str]) -> dict[str, Any]:
    line: dict[str, Any] = {"sku": rng.choice("ab")}
    if rng.random() < 0.8:
        line["doc"] = rng.choice(documents)
    return line


def random_text(rng: Random, documents: list[bytes], depth: int = 0) -> str:
    """A condition of AND, OR and NOT. At least one of its leaves is an `xpath_boolean`."""
    draw = rng.random()
    if depth > 2 or draw < 0.3:
        return xpath_boolean(rng, documents)
    if draw < 0.45:
        return f"NOT ({random_text(rng, documents, depth + 1)})"
    if draw < 0.5:
        return f"({random_text(rng, documents, depth + 1)}) IS {rng.choice(('', 'NOT '))}TRUE"
    parts = [random_text(rng, documents, depth + 1)]
    for _ in range(rng.choice((1, 1, 2))):
        parts.append(flat(rng) if rng.random() < 0.6 else random_text(rng, documents, depth + 1))
    rng.shuffle(parts)
    return rng.choice((" AND ", " AND ", " OR ")).join(f"({part})" for part in parts)


def xpath_boolean(rng: Random, documents: list[bytes]) -> str:
    xpath = random_expression(rng, documents).replace("'", "''")
    return f"xpath_boolean({rng.choice(('doc', 'doc', 'doc', 'lines.doc'))}, '{xpath}')"


def flat(rng: Random) -> str:
    return rng.choice(
        (
            f"region = '{rng.choice(('EU', 'US'))}'",
            "region <> 'EU'",
            "region LIKE '%U%'",
            f"n {rng.choice(('=', '<', '>=', '<>'))} {rng.randrange(5)}",
            f"n CONTAINS {rng.randrange(5)}",
            f"lines.sku = '{rng.choice('ab')}'",
            f"doc IS {rng.choice(('', 'NOT '))}NULL",
            "doc LIKE '%<b%'",
            "lines IS NULL",
            "lines.doc IS NOT NULL",
        )
    )


def subscribed(rng: Random, documents: list[bytes], count: int, engines: list[Engine]) -> dict[str, Expression]:
    """Texts that all engines take, by id. What can never be true they reject."""
    taken = {}
    for number in range(count):
        text = random_text(rng, documents)
        try:
            for engine in engines:
                engine.subscribe(f"s{number}", text)
            taken[f"s{number}"] = parse(text)
        except ContradictionError:
            assert f"s{number}" not in engines[0]
    return taken


@pytest.mark.seconds
def test_every_algorithm_agrees_with_the_reference(bulk: Bulk):
    found_true = 0
    for rng in bulk.rounds(20):
        documents = [random_document(rng) for _ in range(8)]
        engines = [Engine(), Engine(algorithm=rng.choice(sorted(ALGORITHMS)))]
        taken = subscribed(rng, documents, 30, engines)
        events = random_events(rng, [document.decode() for document in documents], 12)
        judge = Judge(None)
        for engine in engines:
            found_true += check(engine, taken, events, judge)
            bulk.pairs += len(taken) * len(events)
    assert 5 * found_true >= bulk.pairs


def test_parsing_undoes_printing(bulk: Bulk):
    for rng in bulk.rounds(100):
        documents = [random_document(rng) for _ in range(2)]
        expression = parse(random_text(rng, documents))
        assert parse(print_expression(expression)) == expression
