"""Subscriptions compared with the columns of events: what they ask for that no event can have.

A misspelt name, or a value of another type, makes a comparison unknown for every event: the subscription finds nothing,
and nothing fails. So this is told: by a warning, an error or not at all, as `on_mismatch` says.

What subscriptions ask for is known column by column, as the index has it. Only if some column does not fit are the
subscriptions that ask for it counted, with NumPy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from harken.errors import HarkenError, MismatchError, MismatchWarning, did_you_mean
from harken.schema import EventColumns, Kind, Path, Schema, format_path, parse_path
from harken.schema.derived import is_derived, needed, place_of, reading
from harken.schema.event_columns import Fields, Leaf, Node

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from harken.codes.columns import Column, ColumnPredicates
    from harken.codes.flat import Flat
    from harken.language.normal_form import NormalForm
    from harken.live.catalogue import Catalogue

OnMismatch = Literal["fail", "warn", "ignore"]
FAIL, WARN, IGNORE = WORDS = ("fail", "warn", "ignore")

MOST_COMPARED = 10_000
"""Subscriptions that are compared by their normal forms, where the matcher does not tell its columns."""
_SHOWN = 10
_IDS = 3
_NULL, _VALUE = "null", "value"
_TURN_OFF = 'on_mismatch="ignore" says nothing of this, "fail" makes it an error'
_AS_TEXT = {Kind.TIMESTAMP, Kind.DATE}
"""Kinds whose values may come as strings, if a schema says what they are."""
_HINTS = {
    (Kind.STRING, Kind.NUMBER): "write numbers without quotes",
    (Kind.STRING, Kind.BOOLEAN): "write TRUE or FALSE, without quotes",
    (Kind.STRING, Kind.TIMESTAMP): "write TIMESTAMP '…'",
    (Kind.STRING, Kind.DATE): "write DATE '…'",
    (Kind.DATE, Kind.TIMESTAMP): "write TIMESTAMP '…'",
    (Kind.TIMESTAMP, Kind.DATE): "write DATE '…'",
    (Kind.NUMBER, Kind.STRING): "cast the column, or write strings in single quotes",
    (Kind.BOOLEAN, Kind.STRING): "cast the column, or write strings in single quotes",
    (Kind.TIMESTAMP, Kind.STRING): "cast the column, or declare its type in a schema",
    (Kind.DATE, Kind.STRING): "cast the column, or declare its type in a schema",
}
"""What to do where the first kind is asked for and the second is there."""
_NO_TIMES = {
    Kind.TIMESTAMP: "none is a full ISO 8601 timestamp, such as 2026-01-31T12:00:00Z",
    Kind.DATE: "none is a full ISO 8601 date, such as 2026-01-31",
}
"""What to say of strings that were to be read as this kind."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something that subscriptions ask for and events do not have."""

    attribute: str
    """Its name, as subscriptions write it."""
    asks: str
    """"number", "string" and so on: compared with values of that kind; "value": any; "null": asked whether it is."""
    found: str | None
    """The type of the column; None if there is no such column."""
    subscriptions: int
    """How many ask for it."""
    ids: tuple[str, ...]
    """The ids of the first of these."""
    hint: str | None

    @property
    def root(self) -> str:
        """The name of the column that it is, or is inside of."""
        return parse_path(self.attribute)[0]

    def __str__(self) -> str:
        ids = ", ".join(f"{id!r:.60}" for id in self.ids) + (", …" if self.subscriptions > len(self.ids) else "")
        many = "1 subscription" if self.subscriptions == 1 else f"{self.subscriptions:,} subscriptions"
        verb = "s" if self.subscriptions == 1 else ""
        what = (
            f"`{self.attribute}` is no column" if self.found is None else f"`{self.attribute}` is of type {self.found}"
        )
        if self.asks == _NULL:
            told = f"{what}, so that IS NULL is always true: {many} ask{verb} it ({ids})"
        elif self.found is None or self.asks == _VALUE:
            told = f"{what}: {many} ask{verb} for it ({ids})"
        else:
            told = f"{what}: {many} compare{verb} it with a {self.asks} ({ids})"
        return told if self.hint is None else f"{told}; {self.hint}"


@dataclass(frozen=True, slots=True)
class Mismatches(Sequence[Mismatch]):
    """All that subscriptions ask for and events do not have, what most ask for first. Empty if everything fits."""

    found: tuple[Mismatch, ...]
    never: int
    """Subscriptions that can match no event with these columns."""
    partly: int
    """Subscriptions that ask for something that is not there, but also match in another way, by an OR."""
    subscriptions: int
    """Subscriptions that were compared."""
    sample: int | None = None
    """The events that they were compared with; None: their columns."""

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, index: Any) -> Any:
        return self.found[index]

    def __str__(self) -> str:
        of = f"of {self.subscriptions:,} subscription{'' if self.subscriptions == 1 else 's'}"
        these = "these events" if self.sample is None else f"events like the first {self.sample:,}"
        heads = [f"{self.never:,} {of} can never match {these}"] if self.never else []
        heads += [f"{self.partly:,} {of} can match {'them' if heads else these} only in part"] if self.partly else []
        head = ", and ".join(heads) or "subscriptions ask whether columns are null that these events do not have"
        more = [f"and {len(self) - _SHOWN:,} more such columns"] if len(self) > _SHOWN else []
        return "\n  ".join([f"{head}:", *map(str, self.found[:_SHOWN]), *more])

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "never": self.never,
            "partly": self.partly,
            "subscriptions": self.subscriptions,
            "columns": [asdict(each) | {"ids": list(each.ids)} for each in self.found],
        }


NO_MISMATCHES = Mismatches((), 0, 0, 0)


def require_word(on_mismatch: str) -> None:
    """Raise HarkenError if this is none of the words of `on_mismatch`."""
    if on_mismatch not in WORDS:
        hint = did_you_mean(str(on_mismatch), WORDS) or f"it is one of {', '.join(WORDS)}"
        raise HarkenError(f"there is no on_mismatch {on_mismatch!r}", hint=hint)


def tell(found: Mismatches, on_mismatch: str, stacklevel: int = 2) -> None:
    """Warn of what was found, or raise MismatchError, as is asked for. `stacklevel` is as for `warnings.warn`."""
    if found and on_mismatch == FAIL:
        raise MismatchError(str(found), hint='on_mismatch="warn" goes on all the same')
    if found and on_mismatch == WARN:
        warnings.warn(MismatchWarning(f"{found}\n  ({_TURN_OFF})"), stacklevel=stacklevel + 1)


def tell_of_fields(unknown: Sequence[tuple[str, str | None]], on_mismatch: str, stacklevel: int = 2) -> None:
    """The same of names of fields that no subscription has, each with a hint."""
    if not unknown:
        return
    lines = [f"no subscription has a field `{name}`" + (f"; {hint}" if hint else "") for name, hint in unknown]
    if on_mismatch == FAIL:
        raise MismatchError("\n".join(lines), hint='on_mismatch="warn" goes on all the same')
    if on_mismatch == WARN:
        text = "\n".join([*lines, f"(it is null everywhere; {_TURN_OFF})"])
        warnings.warn(MismatchWarning(text), stacklevel=stacklevel + 1)


@runtime_checkable
class Asking(Protocol):
    """What tells the columns that subscriptions ask for: a matcher that has such, or `FirstSubscriptions`."""

    def columns(self) -> tuple[Column, ...]:
        """The columns that are asked for: the same tuple as long as they are the same."""

    def flats(self) -> list[Flat]:
        """The rows of the subscriptions."""


class FirstSubscriptions:
    """The same for matchers that do not tell it: by the normal forms of the first subscriptions."""

    def __init__(self, catalogue: Catalogue, form_of: Callable[[int], NormalForm | None]) -> None:
        self._catalogue = catalogue
        self._form_of = form_of
        self._changes = -1
        self._rows: Flat | None = None
        self._columns: tuple[Column, ...] = ()

    def columns(self) -> tuple[Column, ...]:
        self.flats()
        return self._columns

    def flats(self) -> list[Flat]:
        from harken.codes.flat import Flat

        changes = self._catalogue.changes
        if self._rows is None or changes != self._changes:
            first = islice(self._catalogue, MOST_COMPARED)
            forms = ((each.number, self._form_of(each.number)) for each in first)
            self._rows = Flat.of_forms((number, form) for number, form in forms if form is not None)
            self._changes = changes
            found = tuple(each.column for each in self._rows.columns)
            self._columns = self._columns if found == self._columns else found
        return [self._rows]


class Compared:
    """What an engine compared before: a table with the same columns costs next to nothing, and is not told again."""

    _MOST = 16

    def __init__(self) -> None:
        self._seen: list[tuple[pa.Schema, tuple[Column, ...], tuple[Column, ...]]] = []
        """The columns of tables, what was asked for, and what of that was wrong."""
        self._told: set[tuple[Column, str | None]] = set()
        """The columns that were told of, each with the type that was found."""

    def tell(
        self, table: pa.Schema, asking: Asking, catalogue: Catalogue, schema: Schema | None, on_mismatch: str
    ) -> None:
        """Tell of what subscriptions ask for and a table does not have. Raises MismatchError if that is asked for."""
        if on_mismatch == IGNORE or not len(catalogue):
            return
        wrong = self._wrong(table, asking.columns(), schema)
        if not wrong:
            return
        if on_mismatch == WARN:
            types = {field.name: str(field.type) for field in table}
            faults = {(each, types.get(each.path[0])) for each in wrong}
            if faults <= self._told:
                return
            self._told |= faults
        tell(counted(asking, catalogue, wrong, EventColumns.from_arrow(table)), on_mismatch, stacklevel=3)

    def _wrong(self, table: pa.Schema, asked: tuple[Column, ...], schema: Schema | None) -> tuple[Column, ...]:
        for known, asked_then, wrong in self._seen:
            if asked_then is asked and known == table:
                return wrong
        wrong = misfits(asked, EventColumns.from_arrow(table), schema)
        self._seen = [*self._seen[1 - self._MOST :], (table, asked, wrong)]
        return wrong


def mismatches(asking: Asking, catalogue: Catalogue, events: EventColumns, schema: Schema | None = None) -> Mismatches:
    """What subscriptions ask for and events with these columns do not have."""
    wrong = misfits(asking.columns(), events, schema)
    return counted(asking, catalogue, wrong, events) if wrong else NO_MISMATCHES


def misfits(asked: Iterable[Column], events: EventColumns, schema: Schema | None = None) -> tuple[Column, ...]:
    """Those columns that subscriptions ask for and events with these columns do not have.

    What a schema declares is read as it says: a string may be a timestamp. With event types nothing is compared: these
    say which attributes an event has, and each event is judged by them.
    """
    if schema is not None and schema.event_types:
        return ()
    return tuple(each for each in asked if not _fits(each.path, each.kind, events, schema))


def may_mismatch(asks: Iterable[tuple[Path, Kind | None]], events: EventColumns) -> bool:
    """Whether something may be wrong: False is certain, also of an index with a schema."""
    return not all(_fits(path, kind, events, None) for path, kind in asks)


class AttributeTypes(Protocol):
    """The attributes of events, by path: `EventColumns`, or what some events had."""

    def at(self, path: Path) -> Node | None:
        """What is at a path; None if there is nothing."""

    def leaves(self) -> Iterator[tuple[Path, Leaf]]:
        """Every leaf with its path."""


def counted(
    asking: Asking, catalogue: Catalogue, wrong: Sequence[Column], events: AttributeTypes, sample: int | None = None
) -> Mismatches:
    """Who asks for the columns that are wrong. By a sample of events, who also takes what is there is left out."""
    import numpy

    askers: dict[tuple[Path, str], list[NDArray[np.int32]]] = {}
    failing, others = [numpy.empty(0, numpy.int32)], [numpy.empty(0, numpy.int32)]
    takers: dict[Path, list[NDArray[np.int32]]] = {}
    for flat in asking.flats():
        fails = numpy.zeros(len(flat), numpy.bool_)
        for predicates in flat.columns:
            if predicates.column in wrong:
                for path, asks, rows in _asked_by(predicates, events):
                    askers.setdefault((path, asks), []).append(flat.numbers[rows])
                    fails[rows] |= asks != _NULL
            elif sample is not None and predicates.column.kind is not None:
                takers.setdefault(place_of(predicates.column.path), []).append(flat.numbers[predicates.rows])
        failing.append(flat.numbers[fails])
        others.append(flat.numbers[~fails])
    named = {
        (path, asks): numpy.setdiff1d(_distinct(several), _distinct(takers.get(path, [])))
        for (path, asks), several in askers.items()
    }
    asked_in_vain = _distinct(failing)
    if sample is not None:
        asked_in_vain = numpy.intersect1d(asked_in_vain, _distinct(list(named.values())))
    never = numpy.setdiff1d(asked_in_vain, _distinct(others), assume_unique=True)
    names = [format_path(path) for path, _ in events.leaves()]
    found = [
        _mismatch(path, asks, events.at(path), numbers, names, lambda number: catalogue.of(number).id)
        for (path, asks), numbers in named.items()
        if len(numbers)
    ]
    found.sort(key=lambda each: (each.asks == _NULL, -each.subscriptions, each.attribute))
    is_whole = not isinstance(asking, FirstSubscriptions)
    compared = len(catalogue) if is_whole else min(len(catalogue), MOST_COMPARED)
    return Mismatches(tuple(found), len(never), len(asked_in_vain) - len(never), compared, sample)


def _fits(path: Path, kind: Kind | None, events: AttributeTypes, schema: Schema | None) -> bool:
    read = reading(path)
    if read is not None:
        node = events.at(read.path)
        is_text = _fits(read.path, Kind.STRING, events, schema) and not (isinstance(node, Leaf) and node.has_no_times)
        return is_text or _fits(read.path, kind, events, schema)
    if is_derived(path):
        return all(_fits(*need, events, schema) for need in needed(path, kind))
    node = events.at(path)
    if node is None or kind is None:  # any value will do, also a struct
        return node is not None
    if not isinstance(node, Leaf):
        return False
    if node.kind is None or node.kind is kind:
        return True
    is_declared = schema is not None and schema.domain_of(path) is not None
    return is_declared and node.kind is Kind.STRING and kind in _AS_TEXT


def _asked_by(predicates: ColumnPredicates, events: AttributeTypes) -> Iterator[tuple[Path, str, NDArray[np.int32]]]:
    """What the predicates of a column ask for, of which attribute, and the rows that ask it."""
    import numpy

    from harken.codes.constants import Pairs, constants_of

    column = predicates.column
    if is_derived(column.path):
        for path, kind in needed(column.path, column.kind):
            if not _fits(path, kind, events, None):
                yield path, _VALUE if kind is None or events.at(path) is None else str(kind), predicates.rows
        return
    if column.kind is not None:
        is_missing = events.at(column.path) is None
        yield column.path, _VALUE if is_missing else str(column.kind), predicates.rows
        return
    constants = constants_of(column, predicates.constants)
    assert isinstance(constants, Pairs), "presence is False or True"
    is_null = numpy.asarray(constants.whole)[predicates.low] == 0
    for asks, rows in ((_NULL, predicates.rows[is_null]), (_VALUE, predicates.rows[~is_null])):
        if len(rows):
            yield column.path, asks, rows


def _distinct(numbers: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The different numbers, ascending. They are small, so that marking them is quicker than sorting."""
    import numpy

    every = numpy.concatenate([numpy.empty(0, numpy.int32), *numbers])
    marked = numpy.zeros(every.max(initial=-1) + 1, numpy.bool_)
    marked[every] = True
    return numpy.flatnonzero(marked).astype(numpy.int32)


def _mismatch(
    path: Path,
    asks: str,
    node: Node | None,
    numbers: NDArray[np.int32],
    names: Sequence[str],
    id_of: Callable[[int], str],
) -> Mismatch:
    name = format_path(path)
    ids = tuple(id_of(number) for number in numbers[:_IDS].tolist())
    if node is None:
        hint = did_you_mean(name, names, case_sensitive=False)
        if any(name.upper() == each.upper() for each in names):
            hint = f"{hint} Names are case-sensitive"
        return Mismatch(name, asks, None, len(numbers), ids, hint)
    if isinstance(node, Leaf):
        hint = None if node.kind is None else _HINTS.get((Kind(asks), node.kind))
        if node.has_no_times:
            hint = _NO_TIMES.get(Kind(asks), hint)
        return Mismatch(name, asks, node.type, len(numbers), ids, hint)
    if isinstance(node, Fields):
        inner = next((each for each in names if each.startswith(f"{name}.")), None)
        hint = None if inner is None else f"ask for a field of it, such as `{inner}`"
        return Mismatch(name, asks, "struct", len(numbers), ids, hint)
    return Mismatch(name, asks, "map", len(numbers), ids, f"ask for one of its keys, such as `{name}.key`")
