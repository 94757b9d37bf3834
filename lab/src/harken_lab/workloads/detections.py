"""Rules that look for attacks in the logs of many machines: lists of patterns, most of which occur in no event.

No paper has this workload: its shares and lengths are those of a public set of such rules. Rules match because the
texts of events are made of the same pieces as some patterns. The more rules, the smaller is the share of such patterns.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from harken_lab.workloads.words import WORDS, word
from harken_lab.workloads.workload import WrittenModel

COMMAND, PATH, HASHES = "command", "path", "hashes"
MOST_USED = {"CommandLine": COMMAND, "Image": PATH, "ParentImage": PATH, "TargetFilename": PATH, "Hashes": HASHES}
"""The text attributes on which three quarters of the patterns are, with the style of their texts."""
LESS_USED = {
    **dict.fromkeys(("ParentCommandLine", "ScriptBlockText", "Description", "QueryName", "ServiceName"), COMMAND),
    **dict.fromkeys(("OriginalFileName", "CurrentDirectory", "TargetObject", "Details", "PipeName"), PATH),
}
_STYLES = MOST_USED | LESS_USED
_WORDS = ("Computer", "User", "LogonId", "Company", "Product", "Protocol", "DestinationIp", "SourceIp", "RuleName")
_NUMBERS = ("ProcessId", "ParentProcessId", "DestinationPort", "SourcePort", "LogonType", "Initiated")
CONTAINS, ENDS, STARTS = "contains", "ends", "starts"
_KINDS = ((CONTAINS, 0.69), (ENDS, 0.23), (STARTS, 0.08))
_POOLS = {CONTAINS: 400, ENDS: 100, STARTS: 30}
"""Pieces of each kind that the texts of an attribute are made of."""

_COUNTS = ((0.1, 1.0), (0.5, 4.4), (0.9, 18.0), (0.99, 80.0), (1.0, 300.0))
"""Share of the rules, and the most patterns that this share has. A tenth of the rules has none, the median is 4."""
_FRESH = 0.49
"""Share of the patterns that only one rule has. As the others recur, two thirds of all patterns are distinct."""
_COMMON = 0.072
"""Of the patterns that several rules have, the share that occurs in events, with _RULES rules or fewer."""
_RULES = 3_500
_LESS = 0.23
"""Share of the lists that are on the less used attributes."""
_PLAIN = 0.19
"""Share of the rules of two to four patterns that have no OR."""
_NEGATED = 0.34
"""Share of the rules of three and more patterns that have NOT of a list."""
_REGULAR = 1 / 30
_MAIN = 0.6
"""Share of the events that have the first pair of channel and number."""
_PAIRS = 40
_LENGTHS = (20, 400)
_MEDIAN_PIECE = 15.0
_SLASH = "\\"


@dataclass(frozen=True)
class Detections(WrittenModel):
    """`Channel` and `EventID`, fifteen texts such as `CommandLine` and `Image`, and fifteen more attributes."""

    def texts(self, rows: int, rng: np.random.Generator) -> Iterator[str]:
        drawn = random.Random(int(rng.integers(2**63)))
        shares, logs = zip(*((share, np.log(count)) for share, count in _COUNTS), strict=True)
        at = rng.random(rows)
        counts = np.where(at < _COUNTS[0][0], 0, np.exp(np.interp(at, shares, logs)) + 1e-9).astype(np.int64)
        common = _COMMON * min(1.0, (_RULES / max(rows, 1)) ** 0.5)
        for count in counts.tolist():
            yield _Rule(drawn, common).text(count)

    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        drawn = random.Random(int(rng.integers(2**63)))
        events = [_event(drawn) for _ in range(rows)]
        names = ("Channel", "EventID", *_STYLES, *_WORDS, *_NUMBERS)
        numbers = ("EventID", *_NUMBERS)
        types = [(name, pa.int64() if name in numbers else pa.string()) for name in names]
        return pa.Table.from_pylist(events, pa.schema(types))


class _Rule:
    """Draws one rule."""

    def __init__(self, drawn: random.Random, common: float) -> None:
        self.drawn = drawn
        self.common = common

    def text(self, count: int) -> str:
        """A rule with this number of patterns."""
        channel, number = _pair(self.drawn)
        parts = [f"Channel = '{channel}'", f"EventID = {number}"]
        if count == 0:
            parts.append(f"User = '{_user(self.drawn)}'")
            parts.append(f"LogonType IN ({self.drawn.randrange(4)}, {self.drawn.randrange(4, 8)})")
        names = self._attributes()
        for size, is_negated in self._lists(count):
            alternatives = self._list(next(names), size)
            parts.append(f"NOT ({alternatives})" if is_negated else alternatives)
        if self.drawn.random() < _REGULAR:
            first, second = word(self.drawn.randrange(WORDS)), word(self.drawn.randrange(WORDS))
            parts.append(f"CommandLine RLIKE '(?i)({first}|{second}|[0-9]{{4,}}).*\\s[-/][a-z]+'")
        return " AND ".join(parts)

    def _lists(self, count: int) -> Iterator[tuple[int, bool]]:
        """The number of patterns of each list, and whether the list is negated."""
        drawn = self.drawn
        if count <= 1 or (count <= 4 and drawn.random() < _PLAIN):
            yield from [(1, False)] * count
            return
        negated = 0
        if count >= 3 and drawn.random() < _NEGATED:
            negated = drawn.randint(2, max(2, count // 2))
            count -= negated
        lists = min(drawn.choices((1, 2, 3, 4), (40, 35, 20, 5))[0], max(1, count - 1))
        ends = sorted(drawn.sample(range(1, count), lists - 1)) if lists > 1 else []
        for begin, end in zip([0, *ends], [*ends, count], strict=True):
            yield end - begin, False
        if negated:
            yield negated, True

    def _attributes(self) -> Iterator[str]:
        """An attribute for each list, without repetition; three quarters of the lists get a most used one."""
        groups = [
            random.Random(self.drawn.random()).sample(list(group), len(group)) for group in (MOST_USED, LESS_USED)
        ]
        while True:
            yield groups[self.drawn.random() < _LESS].pop()

    def _list(self, name: str, size: int) -> str:
        patterns = [self._pattern(name) for _ in range(size)]
        if size == 1:
            return f"{name} ILIKE {patterns[0]}"
        if size <= 3 and self.drawn.random() < 0.5:
            return "(" + " OR ".join(f"{name} ILIKE {each}" for each in patterns) + ")"
        return f"{name} ILIKE ANY ({', '.join(patterns)})"

    def _pattern(self, name: str) -> str:
        drawn = self.drawn
        kind = drawn.choices([each for each, _ in _KINDS], [share for _, share in _KINDS])[0]
        if drawn.random() < _FRESH:
            piece = _made(_STYLES[name], kind, drawn)
        else:
            number = drawn.randrange(_POOLS[kind])
            piece = _piece(name, kind, number if drawn.random() < self.common else number + _POOLS[kind])
        escaped = piece.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("'", "''")
        return {CONTAINS: f"'%{escaped}%'", ENDS: f"'%{escaped}'", STARTS: f"'{escaped}%'"}[kind]


def _event(drawn: random.Random) -> dict[str, str | int]:
    channel, number = _pair(drawn)
    event: dict[str, str | int] = {"Channel": channel, "EventID": number}
    for name, style in _STYLES.items():
        event[name] = _value(name, style, drawn)
    event |= {name: word(drawn.randrange(1_000)) for name in _WORDS}
    event |= {name: drawn.randrange(8) if name == "LogonType" else drawn.randrange(50_000) for name in _NUMBERS}
    event["User"] = _user(drawn)
    return event


def _value(name: str, style: str, drawn: random.Random) -> str:
    """A text made of the pieces of its attribute, some of which occur more often than others."""

    def piece(kind: str) -> str:
        return _piece(name, kind, int(_POOLS[kind] * drawn.random() ** 2))

    least, most = _LENGTHS
    begin, end = piece(STARTS), piece(ENDS)
    wanted = least * (most / least) ** drawn.random() if style == COMMAND else 40.0
    middle = ""
    while len(begin) + len(middle) + len(end) < wanted:
        middle += piece(CONTAINS) + (" " if style == COMMAND else "")
    text = (begin + middle)[: most - len(end)] + end
    how = drawn.random()
    return text.lower() if how < 0.1 else text.upper() if how < 0.15 else text


@cache
def _piece(name: str, kind: str, number: int) -> str:
    """A piece by its number. Numbers beyond the pool are used by rules only."""
    return _made(_STYLES[name], kind, random.Random(f"{name} {kind} {number}"))


def _made(style: str, kind: str, drawn: random.Random) -> str:
    """A piece of a text, of about 16 characters."""
    length = int(np.clip(_MEDIAN_PIECE * 2 ** drawn.gauss(0, 0.75), 8, 60))
    text = _MAKING[style](length, drawn)
    if style == PATH:
        return {CONTAINS: f"\\{text}", ENDS: f"\\{text[:-4].rstrip(_SLASH)}.exe", STARTS: f"C:\\{text}"}[kind]
    return text


def _command(length: int, drawn: random.Random) -> str:
    joints = (" -", " /", " ", "=", ".", "://")
    words = (drawn.choice(joints) + word(drawn.randrange(WORDS)) for _ in range(length // 7 + 1))
    return "".join(words)[:length]


def _path(length: int, drawn: random.Random) -> str:
    return "\\".join(word(drawn.randrange(WORDS)).capitalize() for _ in range(length // 7 + 1))[:length].rstrip(_SLASH)


def _hashes(length: int, drawn: random.Random) -> str:
    return drawn.choice(("MD5=", "SHA256=", "IMPHASH=")) + f"{drawn.getrandbits(256):064X}"[:length] + ","


_MAKING: dict[str, Callable[[int, random.Random], str]] = {COMMAND: _command, PATH: _path, HASHES: _hashes}


def _pair(drawn: random.Random) -> tuple[str, int]:
    number = 0 if drawn.random() < _MAIN else drawn.randrange(1, _PAIRS)
    return f"{word(number // 4).capitalize()}/Operational", 1 + number


def _user(drawn: random.Random) -> str:
    return f"svc-{drawn.randrange(300)}"
