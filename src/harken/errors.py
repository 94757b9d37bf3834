"""Every error that Harken raises on purpose, in one tree, and every warning that it gives, in another.

    HarkenError
    ├── LanguageError            a subscription's text is wrong
    │   ├── ParseError           it is not in the language
    │   ├── CheckError           names or types do not fit the schema
    │   ├── ContradictionError   no event can ever match it
    │   └── UnavailableError     it uses a part of the language that this build cannot evaluate
    ├── SchemaError              a schema, or its file, is wrong
    │   └── ExtensionError       an extension conflicts with what the schema says already
    ├── EventError               an event is wrong
    │   ├── DecodeError          its bytes are not valid in their format
    │   ├── InvalidValueError    a value is outside its domain, or of a type that Harken does not support
    │   ├── EventTypeError       rule R1: the event does not name its event types
    │   ├── AttributeRuleError   rule R2: a mandatory attribute is missing, or a unique one has several values
    │   └── ExtraAttributeError  rule R3: an attribute that none of its event types has
    ├── SubscriptionError        a subscription's id is wrong
    │   ├── DuplicateIdError
    │   ├── UnknownIdError
    │   └── InvalidIdError
    ├── CapabilityError          the chosen matcher cannot do this; another can
    ├── LimitError               a named limit was exceeded
    ├── OperatorError            an operator is declared wrongly, or it failed on an event
    ├── MismatchError            subscriptions use attributes that the columns of the events lack
    ├── SourceError              a file cannot be read, or its format is unknown
    ├── ConfigError              a pipeline's configuration is wrong
    ├── MissingExtraError        a library of one of Harken's extras is not installed
    ├── AccessError              a ticket or a key is missing, wrong, or does not allow this
    ├── StoreError               the store of a server cannot do this
    │   └── StoreUnavailableError  temporarily: the disk is full or read-only, the connection is lost
    └── SegmentError             a saved index cannot be read or written: torn, damaged, foreign, newer or missing
        ├── OutdatedError        it was saved by an earlier Harken, in a layout that is no longer supported
        └── FolderLockedError    another writer holds the lock of its folder

    HarkenWarning
    └── MismatchWarning          subscriptions use attributes that the columns of the events lack

An error says what is wrong, where (line, column, the line itself with a caret), and what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, Self

_EXCERPT_WIDTH = 120
_EXTRAS = {
    "spark": ("pyspark", "pandas"),
    "connect": ("grpc", "grpc_status", "google"),
    "operators": ("duckdb", "psycopg", "rapidfuzz", "rdflib", "shapely"),
    "server": ("cryptography", "fastapi", "uvicorn", "prometheus_client"),
    "client": ("httpx",),
    "dev": ("hypothesis", "pytest"),
}
"""The libraries of each of Harken's extras, by their import names."""

BOOLEAN_OF_YAML = "in YAML no and off, yes and on are booleans: put them in quotes"
"""Hint for a boolean where a string is expected."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line and a column, both from 1, in a source that may have a name."""

    line: int
    column: int | None = None
    source: str | None = None

    def __str__(self) -> str:
        parts = [f"line {self.line}"]
        if self.column is not None:
            parts.append(f"column {self.column}")
        if self.source is not None:
            parts.insert(0, self.source)
        return ", ".join(parts)


class HarkenError(Exception):
    """The root of all errors. `message` is one sentence; `place`, `excerpt` and `hint` are optional."""

    def __init__(
        self,
        message: str,
        *,
        place: Place | None = None,
        excerpt: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.excerpt = excerpt
        self.hint = hint

    def at(self, place: Place, text: str | None = None) -> Self:
        """Set the place and, given the text, the excerpt: the line with a caret below it. Returns the error."""
        self.place = place
        if text is not None and place.column is not None:
            self.excerpt = caret_excerpt(text, place.line, place.column)
        return self

    def to_dict(self) -> dict[str, Any]:
        """The error as plain data, for `--json` and for dead-letter outputs."""
        plain: dict[str, Any] = {"error": type(self).__name__, "message": self.message}
        if self.place is not None:
            if self.place.source is not None:
                plain["source"] = self.place.source
            plain["line"] = self.place.line
            if self.place.column is not None:
                plain["column"] = self.place.column
        if self.excerpt is not None:
            plain["excerpt"] = self.excerpt
        if self.hint is not None:
            plain["hint"] = self.hint
        return plain

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.message, self.__dict__)

    def __str__(self) -> str:
        lines = [self.message if self.place is None else f"{self.message} ({self.place})"]
        if self.excerpt is not None:
            lines.extend("  " + line for line in self.excerpt.split("\n"))
        if self.hint is not None:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


def _rebuilt(kind: type[HarkenError], message: str, state: dict[str, Any]) -> HarkenError:
    """Rebuild an error that was pickled or copied."""
    error = kind.__new__(kind, message)
    error.__dict__.update(state)
    return error


class LanguageError(HarkenError):
    """A subscription's text is wrong."""


class ParseError(LanguageError):
    """The text is not in the language."""


class CheckError(LanguageError):
    """Names or types do not fit the schema."""


class ContradictionError(LanguageError):
    """No event can make the expression true. `path` is the attribute whose conditions conflict, if it is one."""

    def __init__(self, message: str, *, path: tuple[str, ...] | None = None, **where: Any) -> None:
        super().__init__(message, **where)
        self.path = path


class UnavailableError(LanguageError):
    """The text uses a part of the language that this build cannot evaluate."""


class SchemaError(HarkenError):
    """A schema, or the file that it comes from, is wrong."""


class ExtensionError(SchemaError):
    """An extension conflicts with what the schema says already."""


class EventError(HarkenError):
    """An event is wrong."""


class DecodeError(EventError):
    """The bytes of an event are not valid in their format."""


class InvalidValueError(EventError):
    """A value is outside its domain, or of a type that Harken does not support."""


class EventTypeError(EventError):
    """Rule R1 is broken: an event must carry the set of its event types."""


class AttributeRuleError(EventError):
    """Rule R2 is broken: an event must have every mandatory attribute, and one value for each unique one."""


class ExtraAttributeError(EventError):
    """Rule R3 is broken: an event must have only attributes of its event types."""


class SubscriptionError(HarkenError):
    """A subscription's id is wrong; its text may be valid."""


class DuplicateIdError(SubscriptionError):
    """Another subscription has this id."""


class UnknownIdError(SubscriptionError):
    """No subscription has this id."""


class InvalidIdError(SubscriptionError):
    """The value is not a valid id."""


class CapabilityError(HarkenError):
    """The chosen matcher cannot do this; the hint names one that can."""


class LimitError(HarkenError):
    """A limit was exceeded. `limit` is its name in `harken.Limits`, which the message contains."""

    def __init__(self, message: str, *, limit: str, **where: Any) -> None:
        named = message if f"`{limit}`" in message else f"{message}; the limit is `{limit}`"
        super().__init__(named, **where)
        self.limit = limit

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"limit": self.limit}


class OperatorError(HarkenError):
    """An operator is declared wrongly, or failed on an event, where its predicates are then unknown."""


class MismatchError(HarkenError):
    """Subscriptions use attributes that the columns of the events lack."""


class HarkenWarning(UserWarning):
    """The root of all warnings that Harken gives."""


class MismatchWarning(HarkenWarning):
    """Subscriptions use attributes that the columns of the events lack, and so cannot match as written."""


class SourceError(HarkenError):
    """A file cannot be read, or its format is unknown."""


class ConfigError(HarkenError):
    """A pipeline's configuration is wrong. `faults` lists all faults if there are several."""

    def __init__(self, message: str, *, faults: Sequence[ConfigError] = (), **where: Any) -> None:
        super().__init__(message, **where)
        self.faults = tuple(faults)

    def to_dict(self) -> dict[str, Any]:
        plain = super().to_dict()
        return plain | {"faults": [fault.to_dict() for fault in self.faults]} if self.faults else plain


class MissingExtraError(HarkenError, ImportError):
    """A library of one of Harken's extras is not installed. The hint says what to install."""


class AccessError(HarkenError):
    """A ticket or a key is missing, wrong, or does not allow this. `is_known`: the caller is known but not allowed."""

    def __init__(self, message: str, *, is_known: bool = False, **where: Any) -> None:
        super().__init__(message, **where)
        self.is_known = is_known


class StoreError(HarkenError):
    """The store of a server cannot do this."""


class StoreUnavailableError(StoreError):
    """The store cannot be used at present: its disk is full or read-only, or the connection to it is lost."""


class SegmentError(HarkenError):
    """A saved index cannot be read or written. The message names the file and what is wrong with it."""


class OutdatedError(SegmentError):
    """A saved index is of an earlier Harken, in a layout that is no longer supported."""


class FolderLockedError(SegmentError):
    """Another writer holds the lock of a saved index's folder."""


def require_extra(extra: str) -> None:
    """Raise MissingExtraError unless all libraries of an extra are installed."""
    require_libraries(f"harken[{extra}]", _EXTRAS[extra])


def require_libraries(brought_by: str, libraries: Iterable[str]) -> None:
    """Raise MissingExtraError unless all libraries are installed. `brought_by` is the package that contains them."""
    missing = [library for library in libraries if find_spec(library) is None]
    if missing:
        raise _missing(brought_by, missing)


def missing_extra(error: Exception) -> MissingExtraError | None:
    """The error for an import that failed because an extra is not installed; None for any other."""
    library = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return next((_missing(f"harken[{extra}]", [library]) for extra, known in _EXTRAS.items() if library in known), None)


def reason_of(error: Exception) -> str:
    """The first line of what an error says, or its name if it says nothing."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


@contextmanager
def needing_extra() -> Iterator[None]:
    """Imports of libraries that an extra brings. Raises MissingExtraError."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None


def _missing(brought_by: str, libraries: list[str]) -> MissingExtraError:
    are = "are" if len(libraries) > 1 else "is"
    message = f"this needs {' and '.join(libraries)}, which {are} not installed"
    return MissingExtraError(message, hint=f"pip install '{brought_by}'")


def caret_excerpt(text: str, line: int, column: int) -> str:
    """The line of the text, cut to a readable width around the column, with a caret below it."""
    lines = text.split("\n")
    shown = lines[line - 1] if line <= len(lines) else ""
    start = max(0, column - 1 - _EXCERPT_WIDTH // 2)
    cut = "".join(c if c.isprintable() else " " for c in shown[start : start + _EXCERPT_WIDTH])
    return f"{cut}\n{' ' * (column - 1 - start)}^"


def did_you_mean(word: str, known: Iterable[str], *, case_sensitive: bool = True) -> str | None:
    """A hint with the most similar known names, None if none is similar."""
    names = {name if case_sensitive else name.upper(): name for name in known}
    near = get_close_matches(word if case_sensitive else word.upper(), names, n=3, cutoff=0.6)
    if not near:
        return None
    quoted = [in_backticks(names[name]) for name in near]
    return f"did you mean {' or '.join(quoted)}?"


def in_backticks(name: str) -> str:
    """A name for messages. A name that already has backticks stays as it is."""
    return name if "`" in name else f"`{name}`"
