"""Comparison of subscriptions with the columns of events: which attributes do they use that no event can have?

A misspelt name, or a value of another type, makes a comparison unknown for every event: the subscription never matches,
and nothing fails. `on_mismatch` says whether this is a warning, an error or ignored.

The index lists the columns that subscriptions use. Only if one of them does not fit are its subscriptions counted, with
NumPy.
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
"""At most this many subscriptions are compared, by their normal forms, if the matcher does not list its columns."""
_SHOWN = 10
_IDS = 3
_NULL, _VALUE = "null", "value"
_TURN_OFF = 'on_mismatch="ignore" silences this, "fail" makes it an error'
_AS_TEXT = {Kind.TIMESTAMP, Kind.DATE}
"""Kinds whose values may be strings in events, if a schema declares the kind."""
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
"""Hints by the kind that subscriptions compare with and the kind of the column."""
_NO_TIMES = {
    Kind.TIMESTAMP: "none is a full ISO 8601 timestamp, such as 2026-01-31T12:00:00Z",
    Kind.DATE: "none is a full ISO 8601 date, such as 2026-01-31",
}
"""Hints for columns of strings none of which can be read as this kind."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An attribute that subscriptions use and events do not have, or have with another type."""

    attribute: str
    """The attribute's name, as subscriptions write it."""
    asks: str
    """The kind of values that it is compared with, as "number"; "value": any kind; "null": IS NULL."""
    found: str | None
    """The type of the column; None if there is no such column."""
    subscriptions: int
    """The number of subscriptions that use it so."""
    ids: tuple[str, ...]
    """The ids of the first of them."""
    hint: str | None

    @property
    def root(self) -> str:
        """The name of the top-level column that has it."""
        return parse_path(self.attribute)[0]

    def __str__(self) -> str:
        ids = ", ".join(f"{id!r:.60}" for id in self.ids) + (", …" if self.subscriptions > len(self.ids) else "")
        many = "1 subscription" if self.subscriptions == 1 else f"{self.subscriptions:,} subscriptions"
        verb = "s" if self.subscriptions == 1 else ""
        what = (
            f"`{self.attribute}` is no column" if self.found is None else f"`{self.attribute}` is of type {self.found}"
        )
        if self.asks == _NULL:
            message = f"{what}, so that IS NULL is always true: {many} ask{verb} it ({ids})"
        elif self.found is None or self.asks == _VALUE:
            message = f"{what}: {many} ask{verb} for it ({ids})"
        else:
            message = f"{what}: {many} compare{verb} it with a {self.asks} ({ids})"
        return message if self.hint is None else f"{message}; {self.hint}"


@dataclass(frozen=True, slots=True)
class Mismatches(Sequence[Mismatch]):
    """All mismatches, those of most subscriptions first and IS NULL last. Empty if everything fits."""

    items: tuple[Mismatch, ...]
    never: int
    """The number of subscriptions that can match no event with these columns."""
    partly: int
    """The number of subscriptions with a mismatch that can still match by another side of an OR."""
    subscriptions: int
    """The number of subscriptions compared."""
    sample: int | None = None
    """The number of events that they were compared with; None: with columns."""

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __str__(self) -> str:
        of = f"of {self.subscriptions:,} subscription{'' if self.subscriptions == 1 else 's'}"
        these = "these events" if self.sample is None else f"events like the first {self.sample:,}"
        heads = [f"{self.never:,} {of} can never match {these}"] if self.never else []
        heads += [f"{self.partly:,} {of} can match {'them' if heads else these} only in part"] if self.partly else []
        head = ", and ".join(heads) or "subscriptions ask whether columns are null that these events do not have"
        more = [f"and {len(self) - _SHOWN:,} more such columns"] if len(self) > _SHOWN else []
        return "\n  ".join([f"{head}:", *map(str, self.items[:_SHOWN]), *more])

    def to_dict(self) -> dict[str, Any]:
        """The mismatches as plain data."""
        return {
            "never": self.never,
            "partly": self.partly,
            "subscriptions": self.subscriptions,
            "columns": [asdict(each) | {"ids": list(each.ids)} for each in self.items],
        }


NO_MISMATCHES = Mismatches((), 0, 0, 0)


def require_word(on_mismatch: str) -> None:
    """Raise HarkenError for a word that `on_mismatch` does not take."""
    if on_mismatch not in WORDS:
        hint = did_you_mean(str(on_mismatch), WORDS) or f"it is one of {', '.join(WORDS)}"
        raise HarkenError(f"there is no on_mismatch {on_mismatch!r}", hint=hint)


def tell(misfit: Mismatches, on_mismatch: str, stacklevel: int = 2) -> None:
    """Warn or raise MismatchError, as `on_mismatch` says. `stacklevel` is as for `warnings.warn`."""
    if misfit and on_mismatch == FAIL:
        raise MismatchError(str(misfit), hint='on_mismatch="warn" makes it a warning')
    if misfit and on_mismatch == WARN:
        warnings.warn(MismatchWarning(f"{misfit}\n  ({_TURN_OFF})"), stacklevel=stacklevel + 1)


def tell_of_fields(unknown: Sequence[tuple[str, str | None]], on_mismatch: str, stacklevel: int = 2) -> None:
    """As `tell`, for names of fields that no subscription has, each with a hint."""
    if not unknown:
        return
    lines = [f"no subscription has a field `{name}`" + (f"; {hint}" if hint else "") for name, hint in unknown]
    if on_mismatch == FAIL:
        raise MismatchError("\n".join(lines), hint='on_mismatch="warn" makes it a warning')
    if on_mismatch == WARN:
        text = "\n".join([*lines, f"(it is null everywhere; {_TURN_OFF})"])
        warnings.warn(MismatchWarning(text), stacklevel=stacklevel + 1)


@runtime_checkable
class Asking(Protocol):
    """A source of the columns that subscriptions use: a matcher that lists them, or `FirstSubscriptions`."""

    def columns(self) -> tuple[Column, ...]:
        """The columns that subscriptions use: the same object while they are the same."""

    def flats(self) -> list[Flat]:
        """The rows of the subscriptions."""


class FirstSubscriptions:
    """`Asking` for matchers that do not list their columns: from the normal forms of the first subscriptions."""

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
            columns = tuple(each.column for each in self._rows.columns)
            self._columns = self._columns if columns == self._columns else columns
        return [self._rows]


class Compared:
    """Cache of earlier comparisons: a table with the same columns is neither compared nor warned of again."""

    _MOST = 16

    def __init__(self) -> None:
        self._seen: list[tuple[pa.Schema, tuple[Column, ...], tuple[Column, ...]]] = []
        """(columns of a table, columns that subscriptions used, those of them that did not fit)"""
        self._warned: set[tuple[Column, str | None]] = set()
        """The columns that were warned of, each with its type in the table."""

    def tell(
        self, table: pa.Schema, asking: Asking, catalogue: Catalogue, schema: Schema | None, on_mismatch: str
    ) -> None:
        """Warn of columns that subscriptions use and a table does not have, or raise, as `on_mismatch` says."""
        if on_mismatch == IGNORE or not len(catalogue):
            return
        wrong = self._wrong(table, asking.columns(), schema)
        if not wrong:
            return
        if on_mismatch == WARN:
            types = {field.name: str(field.type) for field in table}
            faults = {(each, types.get(each.path[0])) for each in wrong}
            if faults <= self._warned:
                return
            self._warned |= faults
        tell(counted(asking, catalogue, wrong, EventColumns.from_arrow(table)), on_mismatch, stacklevel=3)

    def _wrong(self, table: pa.Schema, columns: tuple[Column, ...], schema: Schema | None) -> tuple[Column, ...]:
        for earlier_table, earlier_columns, wrong in self._seen:
            if earlier_columns is columns and earlier_table == table:
                return wrong
        wrong = misfits(columns, EventColumns.from_arrow(table), schema)
        self._seen = [*self._seen[1 - self._MOST :], (table, columns, wrong)]
        return wrong


def mismatches(asking: Asking, catalogue: Catalogue, events: EventColumns, schema: Schema | None = None) -> Mismatches:
    """The mismatches between subscriptions and events with these columns."""
    wrong = misfits(asking.columns(), events, schema)
    return counted(asking, catalogue, wrong, events) if wrong else NO_MISMATCHES


def misfits(columns: Iterable[Column], events: EventColumns, schema: Schema | None = None) -> tuple[Column, ...]:
    """The columns that subscriptions use and events with these columns do not have.

    Attributes are read as a schema declares them: a string may be a timestamp. With event types nothing is compared,
    because each event is checked against its type.
    """
    if schema is not None and schema.event_types:
        return ()
    return tuple(each for each in columns if not _fits(each.path, each.kind, events, schema))


def may_mismatch(asks: Iterable[tuple[Path, Kind | None]], events: EventColumns) -> bool:
    """Whether there may be a mismatch. False is certain, also for an index with a schema."""
    return not all(_fits(path, kind, events, None) for path, kind in asks)


class AttributeTypes(Protocol):
    """The types of attributes, by path: those of columns (`EventColumns`) or of some events."""

    def at(self, path: Path) -> Node | None:
        """The type at a path; None if no event has it."""

    def leaves(self) -> Iterator[tuple[Path, Leaf]]:
        """Every leaf with its path."""


def counted(
    asking: Asking, catalogue: Catalogue, wrong: Sequence[Column], events: AttributeTypes, sample: int | None = None
) -> Mismatches:
    """The mismatches of the columns `wrong`, with their subscriptions.

    With a `sample`, a subscription that also compares the attribute with a kind that fits is left out.
    """
    import numpy

    askers: dict[tuple[Path, str], list[NDArray[np.int32]]] = {}
    failing, others = [numpy.empty(0, numpy.int32)], [numpy.empty(0, numpy.int32)]
    takers: dict[Path, list[NDArray[np.int32]]] = {}
    for flat in asking.flats():
        fails = numpy.zeros(len(flat), numpy.bool_)
        for predicates in flat.columns:
            if predicates.column in wrong:
                for path, asks, rows in _misfit_rows(predicates, events):
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
    mismatched = _distinct(failing)
    if sample is not None:
        mismatched = numpy.intersect1d(mismatched, _distinct(list(named.values())))
    never = numpy.setdiff1d(mismatched, _distinct(others), assume_unique=True)
    names = [format_path(path) for path, _ in events.leaves()]
    misfit = [
        _mismatch(path, asks, events.at(path), numbers, names, lambda number: catalogue.of(number).id)
        for (path, asks), numbers in named.items()
        if len(numbers)
    ]
    misfit.sort(key=lambda each: (each.asks == _NULL, -each.subscriptions, each.attribute))
    is_whole = not isinstance(asking, FirstSubscriptions)
    compared = len(catalogue) if is_whole else min(len(catalogue), MOST_COMPARED)
    return Mismatches(tuple(misfit), len(never), len(mismatched) - len(never), compared, sample)


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


def _misfit_rows(predicates: ColumnPredicates, events: AttributeTypes) -> Iterator[tuple[Path, str, NDArray[np.int32]]]:
    """(attribute, `Mismatch.asks`, rows) for the predicates of a column that does not fit."""
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
    """The distinct numbers, ascending. They are small, so that marking them is quicker than sorting."""
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
