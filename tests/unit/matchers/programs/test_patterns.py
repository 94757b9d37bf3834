"""Which patterns a text fits, found in one pass: against the reference's LIKE, which knows no tables."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from harken import Engine
from harken.language.ast import like_pieces
from harken.reference.expressions import _like

PIECES = (
    "a",
    "b",
    "ab",
    "abc",
    "abcd",
    "abcde",
    "bcdefgh",
    "é",
    "ß",
    "😀",
    "😀😀",
    "\U0010ffff",
    "\0",
    " ",
    "'",
    "%",
    "_",
)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def engine_of(patterns: Sequence[str]) -> Engine:
    """One subscription a pattern; AND keeps a pattern that is a prefix from being an interval."""
    engine = Engine()
    report = engine.subscribe_many((f"{place}", f"t LIKE {quoted(each)}") for place, each in enumerate(patterns))
    assert not report.faults
    return engine


def check(patterns: Sequence[str], texts: Sequence[str]) -> int:
    engine = engine_of(patterns)
    found = engine.match_batch([{"t": text} for text in texts]).ids
    alone = [engine.match({"t": text}).ids for text in texts]
    pieces = [like_pieces(each, "\\") for each in patterns]
    for text, ids, one in zip(texts, found, alone, strict=True):
        expected = {str(place) for place, each in enumerate(pieces) if _like(text, each)}
        assert set(ids) == expected, f"{text!r}: {[patterns[int(id)] for id in expected ^ set(ids)]}"
        assert len(ids) == len(expected)
        assert set(one) == expected
    return sum(map(len, found))


def drawn_text(rng: Random, most: int) -> str:
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(0, most)))


def drawn_pattern(rng: Random) -> str:
    parts = [rng.choice(("%", "_", "", escaped(drawn_text(rng, 3)), escaped(rng.choice(PIECES)))) for _ in range(4)]
    return rng.choice(("", "%")) + "".join(parts) + rng.choice(("", "%"))


@pytest.mark.parametrize("seed", range(4))
def test_patterns_of_any_form(seed: int) -> None:
    rng = Random(seed)
    patterns = list(dict.fromkeys(drawn_pattern(rng) for _ in range(300)))
    assert check(patterns, [drawn_text(rng, 8) for _ in range(60)]) > 500


def test_patterns_that_are_parts_of_each_other() -> None:
    word = "abcabcabc"
    parts = {word[begin:end] for begin in range(len(word)) for end in range(begin + 1, len(word) + 1)}
    patterns = [
        form.format(part) for part in sorted(parts) for form in ("%{}%", "%{}", "{}%", "%{}%{}%".format("{}", "a"))
    ]
    check(patterns, ["", "a", "abc", word, word * 3, "c" + word, word + "a", "xabcabcx"])


def test_patterns_of_one_byte_and_of_one_character() -> None:
    patterns = ["%a%", "a%", "%a", "_", "%_", "_%", "__", "%é%", "_é", "%😀", "😀_%", "%", "", "%%", "%a_"]
    assert check(patterns, ["", "a", "é", "😀", "aé", "é😀", "😀a", "😀😀", "baab", "xaé"])


def test_ten_thousand_patterns_on_one_attribute() -> None:
    patterns = [f"%number {place} of many%" for place in range(10_000)]
    engine = engine_of(patterns)
    texts = [f"this is number {place} of many, and number {place + 1} of many" for place in range(0, 9_000, 37)]
    for place, ids in zip(range(0, 9_000, 37), engine.match_batch([{"t": text} for text in texts]).ids, strict=True):
        assert set(ids) == {str(place), str(place + 1)}
    (index,) = engine.stats()["programs"]["indexes"]
    assert index["seen_programs"] < 20


def test_a_text_of_a_megabyte() -> None:
    engine = engine_of(["%needle%", "%needle", "a%z", "%a%a%a%b%", "%missing%", "%" + "a%" * 60 + "c%"])
    text = "a" * 1_000_000 + "needle"
    assert set(engine.match({"t": text}).ids) == {"0", "1"}
    assert set(engine.match_batch([{"t": text}, {"t": text + "z"}]).ids[1]) == {"0", "2"}


def test_needles_that_share_their_beginning() -> None:
    """A gram is chosen that few share: else each text would be compared with every pattern."""
    patterns = [f"%https://www.example.org/{place:05}/%" for place in range(3_000)]
    assert check(patterns[:50], [f"see https://www.example.org/{place:05}/x" for place in range(0, 60, 7)]) == 8
    engine = engine_of(patterns)
    assert engine.match({"t": "https://www.example.org/01234/"}).ids == ["1234"]
