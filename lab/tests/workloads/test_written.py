"""Workloads of which only texts can say the subscriptions: their shares, lengths and matches are what they promise."""

from __future__ import annotations

import re
from collections import Counter
from statistics import median

import numpy as np
import pyarrow as pa
import pytest

from harken import Engine
from harken_lab.workloads import generate
from harken_lab.workloads.detections import MOST_USED
from harken_lab.workloads.words import WORDS, word

from .brute_force import BruteForce

STRING = r"'(?:[^']|'')*'"


# Ranges


def test_ranges() -> None:
    workload = generate("ranges", 5_000, 200)
    widths = [upper.constants[upper.operands] - lower.constants[lower.operands] + 1 for lower, upper in pairs(workload)]
    assert {int(width) for each in widths for width in each} == {500_000}
    assert sum(map(len, widths)) == 10 * 5_000
    assert len(widths) == 20
    brute_force = BruteForce(workload)
    found = np.mean([len(brute_force.matches(event)) for event in workload.events.to_pylist()])
    assert found == pytest.approx(5_000 / 2**10, rel=0.15)


def pairs(workload):  # type: ignore[no-untyped-def]
    return zip(workload.conditions[::2], workload.conditions[1::2], strict=True)


# Many attributes


def test_many_attributes() -> None:
    workload = generate("attributes-many", 4_000, 50)
    assert workload.events.num_columns == 5_000
    assert {sum(value is not None for value in event.values()) for event in workload.events.to_pylist()} == {30}
    counts = np.zeros(4_000, np.int64)
    for each in workload.conditions:
        counts[each.rows] += 1
    assert (counts.min(), counts.max()) == (3, 8)


# Text


def test_words_are_different_and_the_same_again() -> None:
    words = [word(number) for number in range(2_000)]
    assert len(set(words)) == 2_000
    assert all(re.fullmatch("[a-z]{6}", each) for each in words)
    assert word(7) == word(7 + WORDS)


def test_text_has_one_like_each() -> None:
    workload = generate("text", 3_000, 300)
    texts = workload.texts().to_pylist()
    assert all(re.fullmatch(rf"(title|body) LIKE {STRING}", text) for text in texts)
    contain = sum("LIKE '%" in text and text.endswith("%'") for text in texts) / 3_000
    assert contain == pytest.approx(0.8, abs=0.03)
    engine = Engine()
    assert not engine.subscribe_many(enumerate(texts)).faults
    assert 0.1 < np.mean(engine.match_batch(workload.events).counts) < 5


# Disjunctive


def test_disjunctive() -> None:
    workload = generate("disjunctive", 2_000, 300, string_values=50)
    texts = workload.texts().to_pylist()
    counts = Counter(text.count("s") for text in texts)
    assert set(counts) == set(range(2, 9))
    assert min(counts.values()) > 200
    engine = Engine()
    assert not engine.subscribe_many(enumerate(texts)).faults
    assert np.mean(engine.match_batch(workload.events).counts) > 1
    missing = sum(column.null_count for column in workload.events.columns) / (12 * 300)
    assert missing == pytest.approx(0.2, abs=0.03)


# Detections


@pytest.fixture(scope="module")
def rules() -> list[str]:
    found: list[str] = generate("detections", 3_500, 0).texts().to_pylist()
    return found


def lists(rule: str) -> list[tuple[str, list[str]]]:
    """The attributes and patterns of every list, and of every pattern by itself."""
    found = re.finditer(rf"(\w+) ILIKE (ANY \({STRING}(?:, {STRING})*\)|{STRING})", rule)
    return [(each[1], re.findall(STRING, each[2])) for each in found]


def test_how_many_patterns_rules_have(rules: list[str]) -> None:
    counts = np.array([sum(len(patterns) for _, patterns in lists(rule)) for rule in rules])
    assert (counts == 0).mean() == pytest.approx(0.1, abs=0.02)
    assert np.median(counts) == 4
    assert (counts >= 18).mean() == pytest.approx(0.1, abs=0.02)
    assert (counts >= 80).mean() == pytest.approx(0.01, abs=0.005)


def test_what_patterns_look_like(rules: list[str]) -> None:
    found = [(name, pattern[1:-1]) for rule in rules for name, patterns in lists(rule) for pattern in patterns]
    patterns = [pattern for _, pattern in found]
    begin, end = (np.array([pattern[place] == "%" for pattern in patterns]) for place in (0, -1))
    shares = [(begin & end).mean(), (begin & ~end).mean(), (~begin & end).mean()]
    assert shares == pytest.approx([0.69, 0.23, 0.08], abs=0.02)
    assert len(set(patterns)) / len(patterns) == pytest.approx(2 / 3, abs=0.03)
    assert median(len(pattern.strip("%").replace("\\\\", "\\")) for pattern in patterns) == pytest.approx(16, abs=1)
    assert np.mean([name in MOST_USED for name, _ in found]) == pytest.approx(0.75, abs=0.04)


def test_how_rules_are_built(rules: list[str]) -> None:
    def share(condition: str) -> float:
        return sum(re.search(condition, rule) is not None for rule in rules) / len(rules)

    assert share(r" OR | ANY ") == pytest.approx(2 / 3, abs=0.03)
    assert share(r"NOT \(") == pytest.approx(0.2, abs=0.03)
    assert share(r"RLIKE") == pytest.approx(1 / 30, abs=0.01)
    assert share(r"^Channel = '\w+/Operational' AND EventID = \d+ AND ") == 1


def test_events_of_detections() -> None:
    events = generate("detections", 0, 500).events
    assert events.num_columns == 32
    assert not any(column.null_count for column in events.columns)
    lengths = pa.compute.utf8_length(events["CommandLine"]).to_numpy()
    assert 20 <= lengths.min() < 40
    assert 300 < lengths.max() <= 400
    assert (events["EventID"].to_numpy() == 1).mean() == pytest.approx(0.6, abs=0.06)
