"""Errors of Spark as ours: one sentence without Java's stack, and our own errors as a task raised them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from harken import errors
from harken.errors import HarkenError, SourceError

_OURS = re.compile(r"^(?:\S+: )?harken\.errors\.(\w+): (.+(?:\nhint: .+)?)", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?((?:(?!\n\s+at |\nCaused by:)[\s\S])+)", re.MULTILINE)
_HEAD = re.compile(r"(?:[\w.$]+(?:Exception|Error): )?((?:(?!\n\s+at |\n\n|\nCaused by:|\nJVM stacktrace)[\s\S])+)")
_CODES = re.compile(r"\[[A-Z][A-Z_.]+\]\s*|\s*SQLSTATE: \w+\.?")
# Messages of Spark whose cause says more.
_VAGUE = re.compile(r"Job aborted|Task failed while writing|Encountered error while reading|Exception thrown in")
_LONGEST = 300


@contextmanager
def spark_errors() -> Iterator[None]:
    """Raise what Spark raises in this block as a HarkenError."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise explained(error) from error


def explained(error: Exception) -> HarkenError:
    """The HarkenError for an error of Spark's: the one that a task raised, else a SourceError."""
    text = _whole_text(error)
    ours = _OURS.findall(text)
    if ours:
        name, message = ours[-1]
        kind = getattr(errors, name, HarkenError)
        message, _, hint = message.partition("\nhint: ")
        try:
            found: HarkenError = kind(message, hint=hint or None)
        except TypeError:  # one that takes more than a message
            found = HarkenError(message, hint=hint or None)
        return found
    return SourceError(f"Spark failed: {reason_of(error)}")


def reason_of(error: Exception) -> str:
    """The cause of an error, in a line."""
    if isinstance(error, HarkenError):
        return error.message
    text = _whole_text(error)
    ours = _OURS.findall(text)
    if ours:
        return str(ours[-1][1].partition("\n")[0])
    head = _HEAD.match(text.lstrip())
    causes = [each for each in map(_plain, [head[1] if head else "", *_CAUSE.findall(text)]) if each]
    if not causes:
        return type(error).__name__
    first, innermost = causes[0], causes[-1]
    if not _VAGUE.match(first) or first == innermost:
        return first
    return f"{first.rstrip('.')}: {innermost}" if "reading" in first else innermost


def _whole_text(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    return str(error) if java is None else f"{java.toString()}\n\n{error}"


def _plain(text: str) -> str:
    """A text in one line, without Spark's error codes."""
    line = " ".join(_CODES.sub("", text).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
