"""Regular expressions against Python's own, likeness against its definition, and both through an engine."""

from __future__ import annotations

import pickle
import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harken
from harken.errors import CheckError, OperatorError
from harken.operators.box import matches, similar, similarity

LETTERS = st.text("abc", max_size=8)


def patterns() -> st.SearchStrategy[str]:
    """Regular expressions that RE2 and Python read alike: no references, no look-around, no empty repetitions."""
    atoms = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]"])
    plain = st.builds("".join, st.lists(st.builds("".join, st.tuples(atoms, st.sampled_from(["", "*", "+", "?"])))))
    several = st.lists(plain, min_size=1, max_size=3).map(lambda parts: "(?:" + "|".join(parts) + ")")
    return st.builds(
        "".join,
        st.tuples(
            st.sampled_from(["", "^"]), st.lists(several | plain, max_size=3).map("".join), st.sampled_from(["", "$"])
        ),
    )


@given(patterns(), st.lists(LETTERS, min_size=1, max_size=5))
def test_matches_as_pythons_own_regular_expressions(pattern: str, texts: list[str]) -> None:
    answers = matches([{}] * len(texts), texts, [pattern] * len(texts))
    assert answers == [re.search(pattern, text) is not None for text in texts]


def likeness(one: str, other: str) -> float:
    """By the definition: the longest common subsequence is what neither has to delete nor to insert."""

    @cache
    def common(i: int, j: int) -> int:
        if i == len(one) or j == len(other):
            return 0
        if one[i] == other[j]:
            return 1 + common(i + 1, j + 1)
        return max(common(i + 1, j), common(i, j + 1))

    both = len(one) + len(other)
    return 100.0 * 2 * common(0, 0) / both if both else 100.0


@given(st.lists(st.tuples(LETTERS, LETTERS), min_size=1, max_size=6))
def test_similar_is_what_neither_inserts_nor_deletes(pairs: list[tuple[str, str]]) -> None:
    texts, others = zip(*pairs, strict=True)
    answers = similar([{}] * len(pairs), texts, others, harken.FREE)
    assert answers == [[pytest.approx(likeness(*pair))] for pair in pairs]
    assert all(isinstance(score, float) for (score,) in answers)


def test_an_engine_with_operators_on_text() -> None:
    engine = harken.Engine(operators=[matches, similar])
    engine.subscribe("flu", r"matches(note, '(?i)\bflu\b')")
    engine.subscribe("not flu", r"NOT matches(note, '(?i)\bflu\b')")
    engine.subscribe("smith", "similar(name, 'Jon Smith', ?score) AND ?score > 90 AND ?score < 100")
    engine.subscribe("own", "matches(note, wanted)")
    batch = engine.match_batch(
        [
            {"note": "a case of FLU", "name": "john smith"},
            {"note": "influenza", "name": "JON SMITH", "wanted": "enz"},
            {"name": "nobody"},
        ]
    )
    assert [sorted(ids) for ids in batch.ids] == [["flu", "smith"], ["not flu", "own"], []]
    assert not batch.errors


def test_one_bad_pattern_or_text_fails_alone() -> None:
    engine = harken.Engine(operators=[matches, similar])
    engine.subscribe("good", "matches(note, 'a')")
    with pytest.raises(CheckError, match=r"the regular expression `\(a` cannot be read: missing"):
        engine.subscribe("bad", "matches(note, '(a')")
    engine.subscribe("bad", "matches(note, pattern)")
    engine.subscribe("alike", "similar(note, 'ab', ?score) AND ?score > 50")
    batch = engine.match_batch([{"note": "a", "pattern": "(a"}, {"note": 7}, {"note": "\ud800"}, {"note": "ba"}] * 5)
    assert [sorted(ids) for ids in batch.ids] == [["alike", "good"], [], [], ["good"]] * 5
    messages = {(index, id): str(error) for index, id, error in batch.errors}
    assert "the regular expression `(a` cannot be read: missing )" in messages[0, "bad"]
    assert "7 is no string" in messages[1, "good"]
    assert "7 is no string" in messages[1, "alike"]
    assert "half of a surrogate pair" in messages[2, "good"]
    assert len(messages) == 5 * (1 + 2 + 2)
    assert engine.stats()["operators"]["matches"]["is_paused"] is False


def test_a_score_is_a_variable() -> None:
    engine = harken.Engine(operators=[similar])
    engine.subscribe("a", "similar(note, 'ab', 90)")
    batch = engine.match_batch([{"note": "ab"}])
    assert "write similar(text, 'other', ?score) AND ?score >= 90" in str(batch.errors[0][2])


def test_other_scorers() -> None:
    of_words = similarity("token_sort_ratio", name="same_words")
    assert of_words([{}], ["smith JON"], ["jon smith"], harken.FREE) == [[100.0]]
    exact = similarity(ignore_case=False)
    assert exact([{}], ["AB"], ["ab"], harken.FREE) == [[0.0]]
    assert pickle.loads(pickle.dumps(exact))([{}], ["AB"], ["ab"], harken.FREE) == [[0.0]]
    with pytest.raises(OperatorError, match="there is no scorer of rapidfuzz `token_sort`: did you mean"):
        similarity("token_sort")


def test_signatures_are_checked_when_subscribing() -> None:
    engine = harken.Engine(operators=[matches, similar])
    with pytest.raises(harken.HarkenError, match="the pattern of `matches` is a string, and this is the number 5"):
        engine.subscribe("a", "matches(note, 5)")
    with pytest.raises(harken.HarkenError, match="the text of `similar` cannot be a variable"):
        engine.subscribe("a", "similar(?note, 'x', ?score)")
