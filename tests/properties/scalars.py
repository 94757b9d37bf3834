"""Single values at random: the ordinary ones, those at the edges of their type, and neighbours of a given one.

Everything here draws from a `random.Random`. The simplest choices come first, so that Hypothesis can shrink to them.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from math import inf, isfinite, nextafter
from random import Random

from harken.schema.values import Value

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
EXACT = 2**53 - 1
"""Up to here binary64 holds every integer, so that SQL may compare integers with floats as floats."""

LEAST_TIME, GREATEST_TIME = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_TICK, _DAY = timedelta(microseconds=1), timedelta(days=1)
_TIMES = (
    datetime(2024, 2, 29, 12, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1582, 10, 10, 1, 2, 3, 400_000, tzinfo=UTC),  # a day that the Gregorian reform left out
    datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
    LEAST_TIME,
    GREATEST_TIME,
)
_DATES = (date(2024, 2, 29), date(1970, 1, 1), date(1969, 12, 31), date(1582, 10, 10), date.min, date.max)
_INTEGERS = (0, 1, -1, 7, EXACT, EXACT + 1, EXACT + 2, -EXACT - 2, INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1)
_FLOATS = (
    *(0.0, 1.0, -1.0, 0.5, -0.0, 0.1, 1 / 3, 1e16, -1e-7, 2.0**53, -(2.0**63), 5e-324, -5e-324),
    *(2.2250738585072009e-308, 1e308, -1e308, 1.7976931348623157e308, inf, -inf),
)
# Beyond U+FFFF the order by code points and that by UTF-16 units differ; é is there as one character and as two.
_PIECES = (
    *("a", "b", "ab", "A", "z", "0", " ", "é", "e\u0301", "ß", "İ", "\uffee", "😀", "𝒳", "\U0010ffff", "\u200d"),
    *(
        "'",
        "''",
        '"',
        "\\",
        "%",
        "_",
        "\\%",
        "\n",
        "\r\n",
        "\t",
        "`",
        "--",
        "/*",
        "*/",
        ";",
        "?",
        "$",
        "${x}",
        "[a]",
        "^.*$",
        "\0",
    ),
)


def one_in(rng: Random, count: int) -> bool:
    """True about once in so many times; False is the simpler."""
    return rng.randrange(count) == count - 1


def integer(rng: Random) -> int:
    """A 64-bit integer."""
    if one_in(rng, 2):
        return rng.randrange(-10, 11)
    return rng.randrange(INT64_MIN, INT64_MAX + 1) if one_in(rng, 4) else rng.choice(_INTEGERS)


def floating(rng: Random) -> float:
    """A float, infinities included, NaN not."""
    return rng.randrange(-40, 41) / 4 if one_in(rng, 2) else rng.choice(_FLOATS)


def string(rng: Random) -> str:
    """A short text that holds what quoting and matching trip over, or a timestamp or a date."""
    if one_in(rng, 6):
        return written_time(rng)
    return "".join([rng.choice(_PIECES) for _ in range(rng.randrange(5))])


def written_time(rng: Random) -> str:
    """A timestamp or a date as text, in one of the ways in which it is written; now and then nearly one."""
    if one_in(rng, 3):
        return str(day(rng))
    moment = timestamp(rng)
    fraction = rng.choice((f"{moment:.%f}", "", ",5", ".1234567"))
    clock = rng.choice((f"{moment:%H:%M:%S}{fraction}", f"{moment:%H:%M}", f"{moment:%H}"))
    zone = rng.choice(("Z", "", "+01:00", "-0530", "+14", "+24:00", "z"))
    return f"{moment.date()}{rng.choice('T T_')}{clock}{zone}"


def boolean(rng: Random) -> bool:
    return one_in(rng, 2)


def timestamp(rng: Random) -> datetime:
    if one_in(rng, 2):
        return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.randrange(10**14))
    return rng.choice(_TIMES)


def day(rng: Random) -> date:
    return date(2024, 1, 1) + timedelta(days=rng.randrange(100)) if one_in(rng, 2) else rng.choice(_DATES)


SCALARS = {
    "integer": integer,
    "float": floating,
    "string": string,
    "boolean": boolean,
    "timestamp": timestamp,
    "date": day,
}
_TYPES = tuple(SCALARS)


def scalar(rng: Random) -> Value:
    """A value of any type."""
    return SCALARS[rng.choice(_TYPES)](rng)


def near(rng: Random, value: Value) -> Value:
    """The value, or one just beside it, of the same type and fit to be a constant."""
    step = rng.choice((0, 0, 0, 1, -1))
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return min(max(value + step, INT64_MIN), INT64_MAX)
    if isinstance(value, float):
        return _near_float(value, step)
    if isinstance(value, str):
        return value if step == 0 else value + rng.choice(_PIECES) if step > 0 else value[:-1]
    if isinstance(value, datetime):
        return min(max(value, LEAST_TIME + _TICK), GREATEST_TIME - _TICK) + step * _TICK if step else value
    return min(max(value, date.min + _DAY), date.max - _DAY) + step * _DAY if step else value


def _near_float(value: float, step: int) -> float:
    moved = nextafter(value, step * inf) if step else value
    return moved if isfinite(moved) else nextafter(moved, 0.0)


def small_number(rng: Random, value: int | float) -> int | float:
    """A number like the given one, an integer or a float, which BIGINT and binary64 hold exactly and compare alike."""
    whole = min(max(int(value) if isfinite(value) else 0, -EXACT), EXACT)
    return whole if one_in(rng, 2) else float(whole) + rng.choice((0.0, 0.5, -0.5)) * (abs(whole) < 2**40)


def pattern(rng: Random, text: str, escapes: tuple[str, ...]) -> tuple[str, str]:
    """A LIKE pattern that the text fits, or nearly, and its escape."""
    escape = rng.choice(escapes)
    pieces: list[str] = []
    for character in text:
        wildcard = rng.choice(("", "", "", "", "", "_", "%"))
        if wildcard and wildcard != escape:
            pieces.append(wildcard)
        else:
            pieces.append(escape + character if character in ("%", "_", escape) else character)
    if escape != "%" and one_in(rng, 2):
        pieces = [*pieces[: rng.randrange(len(pieces) + 1)], "%"]
    if escape != "%" and one_in(rng, 2):
        pieces = ["%", *pieces[rng.randrange(len(pieces) + 1) :]]
    return "".join(pieces), escape


def regular(rng: Random, text: str) -> str:
    """A regular expression that is found in the text, or nearly."""
    part = text[rng.randrange(len(text) + 1) :][: 1 + rng.randrange(3)]
    plain = "".join(f"\\x{{{ord(each):x}}}" if not each.isalnum() else each for each in part)
    return (
        rng.choice(("", "^", "(?i)"))
        + rng.choice((plain, plain, f"[{plain}x]", f"{plain or 'a'}+", "."))
        + rng.choice(("", "$"))
    )
