"""Three-valued truth of comparisons and patterns over single values, for verification."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from harken.language.ast import like_pieces
from harken.schema.domains import Domain
from harken.schema.values import COMPARISONS, KINDS, Value

Truth = bool | None


def compare(operator: str, left: Value | None, right: Value | None, domain: Domain | None = None) -> Truth:
    """`left operator right`; unknown if either is missing or their kinds differ. A domain may have its own order."""
    if left is None or right is None:
        return None
    kind = KINDS.get(type(left))
    if kind is None or kind is not KINDS.get(type(right)):
        return None
    if domain is not None:
        return domain.compare(operator, left, right)
    return COMPARISONS[operator](left, right)


def either(truths: Iterable[Truth]) -> Truth:
    """OR of any number in three-valued logic."""
    distinct = set(truths)
    return True if True in distinct else None if None in distinct else False


@lru_cache(maxsize=65_536)
def like_matcher(pattern: str, escape: str) -> Callable[[str], bool]:
    """A test of strings against the pattern, in time proportional to text × pattern at the worst.

    The pattern is cut at each `%` into segments. The first is fixed at the start of the text and the last at its end;
    each one between is taken at its first occurrence, which leaves the most room to those that follow.
    """
    segments: list[list[str]] = [[]]
    for piece in like_pieces(pattern, escape):
        if piece is None:
            segments.append([])
        else:
            segments[-1].append(piece)
    first, last = segments[0], segments[-1]
    if len(segments) == 1:
        return lambda text: len(text) == len(first) and _fits(first, text, 0)

    def matches(text: str) -> bool:
        position, end = len(first), len(text) - len(last)
        if position > end or not _fits(first, text, 0) or not _fits(last, text, end):
            return False
        for segment in segments[1:-1]:
            position = _find(segment, text, position, end)
            if position < 0:
                return False
        return True

    return matches


@lru_cache(maxsize=65_536)
def rlike_matcher(pattern: str) -> Callable[[str], bool]:
    """A test of strings for a match of a regular expression anywhere in them. Raises re2.error."""
    import re2

    options = re2.Options()
    options.log_errors = False
    search = re2.compile(pattern, options).search
    return lambda text: search(text) is not None


def _fits(segment: list[str], text: str, start: int) -> bool:
    """Whether the segment stands at this place; "" in it stands for any one character."""
    if "" not in segment:
        return text.startswith("".join(segment), start)
    return len(text) - start >= len(segment) and all(
        character in ("", text[start + offset]) for offset, character in enumerate(segment)
    )


def _find(segment: list[str], text: str, start: int, end: int) -> int:
    """The offset behind the first occurrence of the segment within text[start:end], or -1."""
    if "" not in segment:
        offset = text.find("".join(segment), start, end)
        return -1 if offset < 0 else offset + len(segment)
    for offset in range(start, end - len(segment) + 1):
        if _fits(segment, text, offset):
            return offset + len(segment)
    return -1
