"""Made-up words by number: each number below WORDS has a word of its own."""

from __future__ import annotations

_SYLLABLES = [first + second for first in "bcdfghjklmnprstvwxyz" for second in "aeiou"]
WORDS = len(_SYLLABLES) ** 3
_STEP = 387_420_489  # a power of 3, so that it shares no divisor with the number of words


def word(number: int) -> str:
    """The word of a number modulo WORDS: six letters, unlike those of the next number."""
    left = number * _STEP % WORDS
    first, rest = divmod(left, len(_SYLLABLES) ** 2)
    second, third = divmod(rest, len(_SYLLABLES))
    return _SYLLABLES[third] + _SYLLABLES[second] + _SYLLABLES[first]
