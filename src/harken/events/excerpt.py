"""Short excerpts of rejected input: enough to recognise it."""

from __future__ import annotations

from reprlib import Repr

from harken.errors import HarkenError
from harken.schema.paths import Path, format_path

MAX_EXCERPT = 200

_SHORT = Repr()
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = 12
_SHORT.maxlevel = 4
_SHORT.maxstring = _SHORT.maxother = 60


def shorten(text: str) -> str:
    """The text, cut to 200 characters."""
    return text if len(text) <= MAX_EXCERPT else text[: MAX_EXCERPT - 1] + "…"


def shorten_object(value: object) -> str:
    """A Python object as its shortened `repr`."""
    try:
        return shorten(_SHORT.repr(value))
    except ValueError:  # Python does not print integers of more than 4,300 digits
        return f"<{type(value).__name__}>"


def short_name(path: Path) -> str:
    """The name of an attribute for messages, shortened, in backticks."""
    return f"`{shorten(format_path(path))}`"


def settled(error: HarkenError) -> HarkenError:
    """The error without its traceback, whose frames would keep the input in memory."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)
