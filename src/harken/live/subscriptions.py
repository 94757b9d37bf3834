"""Subscriptions, as given and as the engine keeps them: id, text, language and further fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from numbers import Integral
from typing import Any
from uuid import UUID

from harken.errors import BOOLEAN_OF_YAML, HarkenError, InvalidIdError, SubscriptionError
from harken.events.arrow_rows import is_arrow, rows_from_arrow, schema_of
from harken.events.row import Row
from harken.schema.domains import shortened
from harken.schema.values import INT64_MAX, INT64_MIN

_RESERVED = frozenset({"id", "where", "language"})
_FOR_WHERE = ("condition", "expression", "expr", "query", "filter", "rule", "predicate", "sql", "xpath", "text")
"""What other systems call the text of a subscription."""
_LIKE_WHERE = 0.7
"""Similarity from which a name counts as a misspelt `where`. `owner`, a common field, is below."""
NO_FIELDS: Mapping[str, Any] = {}
"""The fields of most subscriptions, shared by them: do not change it."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription of an engine."""

    id: str
    where: str
    language: str
    number: int
    """What the matcher calls it."""
    fields: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)
    warnings: tuple[str, ...] = ()

    def record(self) -> Record:
        """The subscription as a record."""
        return Record(0, self.id, self.where, self.language, self.fields)


@dataclass(frozen=True, slots=True)
class Record:
    """A subscription as it was given, not compiled yet."""

    position: int
    id: str
    where: str
    language: str = "sql"
    fields: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)
    line: int | None = None

    def fault(self, error: HarkenError) -> Fault:
        """The fault by which this record is rejected."""
        return Fault(self.position, self.id, error, self.line)


@dataclass(frozen=True, slots=True)
class Fault:
    """A subscription that was rejected: its position in the input, its id if it has one, and the reason."""

    position: int
    id: str | None
    error: HarkenError
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fault as plain data."""
        plain: dict[str, Any] = {"position": self.position, "id": self.id}
        if self.line is not None:
            plain["file_line"] = self.line
        return plain | self.error.to_dict()


def has_predicates(source: object) -> bool:
    """Whether the source is an Arrow table, or a data frame at rest, with `predicates` and no `where`."""
    if not is_arrow(source):
        return False
    names = schema_of(source).names
    return "predicates" in names and "where" not in names


def records_of(source: Iterable[Any]) -> Iterator[Record | Fault]:
    """Records from (id, where) pairs, mappings or an Arrow table, and faults. Records and faults pass unchanged."""
    if is_arrow(source):
        yield from records_of_rows(rows_from_arrow(source))
        return
    is_texts = type(source).__name__ == "Series" and isinstance(next(iter(source), None), str)
    if isinstance(source, Mapping | str | bytes) or is_texts or not isinstance(source, Iterable):
        hint = "pass a list, even for one subscription; for a dict of ids and texts, pass its items()"
        if is_texts:
            hint = "pass its items(), which are pairs of an id and a text"
        what = "None" if source is None else f"a {type(source).__name__}"
        raise SubscriptionError(f"subscriptions come as a list or a table, not as {what}", hint=hint)
    for position, item in enumerate(source):
        if isinstance(item, Record | Fault):
            yield item
        elif isinstance(item, Mapping):
            yield record_of(item, position)
        elif hasattr(item, "keys"):  # a row of a database, such as sqlite3.Row
            yield record_of({name: item[name] for name in item.keys()}, position)  # noqa: SIM118
        elif isinstance(item, tuple | list) and len(item) == 2:
            yield record_of({"id": item[0], "where": item[1]}, position)
        else:
            message = "a subscription is an (id, where) pair or a mapping with `id` and `where`"
            yield Fault(position, None, SubscriptionError(message))


def records_of_rows(rows: Iterable[Row]) -> Iterator[Record | Fault]:
    """Records from the rows of a file."""
    for row in rows:
        if row.error is not None:
            yield Fault(row.position, None, row.error, row.line)
        else:
            yield record_of(row.content or {}, row.position, row.line)


def record_of(content: Mapping[str, Any], position: int, line: int | None = None) -> Record | Fault:
    """The record that a mapping describes, or its fault."""
    raw_id = content.get("id")
    try:
        where = content.get("where")
        if where is None:
            lacking = "`where`" if raw_id is not None else "`id` and no `where`"
            raise SubscriptionError(f"the subscription has no {lacking}", hint=_fields_hint(content))
        if not isinstance(where, str):
            hint = BOOLEAN_OF_YAML if isinstance(where, bool) else None
            raise SubscriptionError(f"`where` is a text, not {type(where).__name__}", hint=hint)
        language = content.get("language")
        if not isinstance(language, str | None):
            hint = BOOLEAN_OF_YAML if isinstance(language, bool) else "leave it out for SQL"
            raise SubscriptionError(f"`language` is a name such as sql or xpath, not {language!r:.40}", hint=hint)
        fields = {name: value for name, value in content.items() if name not in _RESERVED} or NO_FIELDS
        return Record(position, checked_id(raw_id), where, language or "sql", fields, line)
    except HarkenError as error:
        return Fault(position, _id_of_rejected(raw_id), error, line)


def _fields_hint(content: Mapping[Any, Any]) -> str | None:
    """A hint at the field that was probably meant to be `where`, or at the fields there are."""
    names = [name for name in content if isinstance(name, str) and name != "id"]
    near = [name for name in names if name.lower() in _FOR_WHERE]
    near = near or get_close_matches("where", names, n=1, cutoff=_LIKE_WHERE)
    if near and len(near[0]) <= 2 * len("where"):
        return f"is `{near[0]}` meant to be `where`?"
    return f"it has {', '.join(f'`{name}`' for name in names[:8])}" if names else None


def _id_of_rejected(given: object) -> str | None:
    """The id of a rejected record, if it is valid or at least a string."""
    try:
        return checked_id(given)
    except InvalidIdError:
        return given if isinstance(given, str) else None


def checked_id(given: object) -> str:
    """An id as a string. Integers become their decimal digits, because many tables number their rows."""
    if isinstance(given, int) and not isinstance(given, bool) and INT64_MIN <= given <= INT64_MAX:
        return str(given)
    if given is None:
        raise InvalidIdError("the subscription has no `id`")
    if not isinstance(given, str) or not given:
        message = f"an id is a string that is not empty, or an integer, not {shortened(given)}"
        raise InvalidIdError(message, hint=_id_to_pass(given))
    try:
        given.encode()
    except UnicodeEncodeError:
        raise InvalidIdError(f"the id {given!r:.60} has a lone surrogate, which UTF-8 cannot encode") from None
    return given


def _id_to_pass(given: object) -> str | None:
    """A hint what to pass instead of a value that is not an id."""
    if isinstance(given, bool):
        return BOOLEAN_OF_YAML
    if isinstance(given, UUID | date):
        return "pass str(id)"
    if isinstance(given, Integral) and not isinstance(given, int):  # one of NumPy's
        return "pass int(id)"
    return "pass id.decode()" if isinstance(given, bytes) else None
