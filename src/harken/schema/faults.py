"""How faults are reported: the first of several, and a hint where it is cheap to find."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

from harken.errors import HarkenError, did_you_mean

E = TypeVar("E", bound=HarkenError)

_LONGEST_WORD = 100
_MOST_NAMES = 200


def first_of(faults: Sequence[E]) -> E:
    """The first fault; if there are others, its hint says how many."""
    first = faults[0]
    others = len(faults) - 1
    if others:
        more = f"and {others} more fault{'s' if others > 1 else ''}"
        first.hint = more if first.hint is None else f"{first.hint} ({more})"
    return first


def quick_hint(word: str, known: Collection[str]) -> str | None:
    """`did_you_mean` for words in events, of which there may be millions: no hint where the search would be slow."""
    if len(word) > _LONGEST_WORD or len(known) > _MOST_NAMES:
        return None
    return did_you_mean(word, known)
