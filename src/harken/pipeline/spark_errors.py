"""Turns Spark's errors into Harken's: one sentence without Java's stack, or the error of Harken that a task raised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from harken import errors
from harken.errors import HarkenError, SourceError

_HARKEN_ERROR = re.compile(r"^(?:\S+: )?harken\.errors\.(\w+): (.+(?:\nhint: .+)?)", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?((?:(?!\n\s+at |\nCaused by:)[\s\S])+)", re.MULTILINE)
_HEAD = re.compile(r"(?:[\w.$]+(?:Exception|Error): )?((?:(?!\n\s+at |\n\n|\nCaused by:|\nJVM stacktrace)[\s\S])+)")
_CODES = re.compile(r"\[[A-Z][A-Z_.]+\]\s*|\s*SQLSTATE: \w+\.?")
# Messages of Spark that say less than their cause.
_VAGUE = re.compile(r"Job aborted|Task failed while writing|Encountered error while reading|Exception thrown in")
_MAX_REASON = 300


@contextmanager
def spark_errors() -> Iterator[None]:
    """Convert errors that Spark raises in this block to HarkenError."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise explained(error) from error


def explained(error: Exception) -> HarkenError:
    """The HarkenError that a task raised; for any other error of Spark, a SourceError with the cause."""
    text = _whole_text(error)
    raised = _HARKEN_ERROR.findall(text)
    if raised:
        name, message = raised[-1]
        kind = getattr(errors, name, HarkenError)
        message, _, hint = message.partition("\nhint: ")
        try:
            harken_error: HarkenError = kind(message, hint=hint or None)
        except TypeError:  # a class that takes more than a message
            harken_error = HarkenError(message, hint=hint or None)
        return harken_error
    return SourceError(f"Spark failed: {reason_of(error)}")


def reason_of(error: Exception) -> str:
    """The cause of an error, in one line."""
    if isinstance(error, HarkenError):
        return error.message
    text = _whole_text(error)
    raised = _HARKEN_ERROR.findall(text)
    if raised:
        return str(raised[-1][1].partition("\n")[0])
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
    """A text in one line, shortened and without Spark's error codes."""
    line = " ".join(_CODES.sub("", text).split())
    return line if len(line) <= _MAX_REASON else f"{line[:_MAX_REASON]}…"
