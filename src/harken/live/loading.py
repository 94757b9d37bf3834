"""Loading many subscriptions: from texts, tables of predicates, a log of changes, or a saved engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from harken.concurrency.collecting import collector_paused
from harken.errors import DuplicateIdError, HarkenError, LanguageError, LimitError, SegmentError, SubscriptionError
from harken.language.compiled import Compiled, Compiler
from harken.live.catalogue import Catalogue
from harken.live.changes import Change, differ, latest
from harken.live.live_set import LiveSet, Prepared
from harken.live.subscriptions import Fault, Record, Subscription, records_of
from harken.matchers import Entry
from harken.matchers.kinds import OPERATORS, Indexes
from harken.matchers.roles import AddsInBulk, CallsOperators
from harken.schema.derived import place_of

if TYPE_CHECKING:
    import pyarrow as pa

    from harken.codes.flat import Flat
    from harken.live.bulk import TableOfSubscriptions

Progress = Callable[[int], None]
Changing = Callable[[], AbstractContextManager[LiveSet]]
"""Locks an engine and yields its live set, which another may have replaced if the engine follows a folder."""
_STEP = 1_000
_PART = 16_384
"""Records compiled before they become rows: a compiled record takes about 2 kB."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of subscribing many: the number accepted, those rejected, and warnings."""

    accepted: int
    faults: list[Fault]
    warnings: list[tuple[str, str]]
    """(id, warning) of subscriptions that were accepted."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """The result of replacing all subscriptions: ids by outcome, those rejected, and warnings."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    unchanged: list[str]
    kept: list[str]
    """The ids of subscriptions that stay as they were because the new version was rejected."""
    faults: list[Fault]
    warnings: list[tuple[str, str]]
    """(id, warning) of subscriptions that were added or changed."""

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(getattr(self, name)):,} {name}" for name in self.__slots__)
        return f"<Replacement: {counts}>"


@dataclass(frozen=True, slots=True)
class Checked:
    """A compiled text and its compiler: another compiler has to compile the text again."""

    compiler: Compiler
    compiled: Compiled

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.compiled.warnings


def subscribe_records(
    now: LiveSet, changing: Changing, source: Iterable[object], replace: bool, progress: Progress | None = None
) -> Report:
    """Add subscriptions from records, pairs or mappings.

    They are read and compiled, for the live set `now`, before the engine is locked.
    """
    with collector_paused():
        records = records_of(source)
        first = list(islice(records, _PART))
        is_bulk = len(first) == _PART and isinstance(now.matcher, AddsInBulk)
        subscribe = _subscribe_in_parts if is_bulk else _subscribe_few
        return subscribe(now, changing, chain(first, records), replace, progress)


def _subscribe_few(
    now: LiveSet, changing: Changing, records: Iterable[Record | Fault], replace: bool, progress: Progress | None
) -> Report:
    """Add records as objects."""
    compiler = now.compiler
    prepared, faults = _compiled(now, records, progress)
    with changing() as live:
        rest = _put(live, prepared, compiler, replace)
    return Report(rest.accepted, _in_order([*faults, *rest.faults]), rest.warnings)


def _subscribe_in_parts(
    now: LiveSet, changing: Changing, records: Iterable[Record | Fault], replace: bool, progress: Progress | None
) -> Report:
    """Add records as rows, compiled part by part. All become visible at once."""
    from harken.live.bulk_texts import BulkTexts

    compiler, texts, faults, count = now.compiler, BulkTexts(), list[Fault](), 0
    records = iter(records)
    while part := list(islice(records, _PART)):
        prepared, part_faults = _compiled(now, part, progress, count)
        texts.add(prepared)
        count += len(part)
        faults += part_faults
    with changing() as live:
        chosen = texts.finished(live.catalogue, replace)
        live.decode_also(texts.names)
        if live.compiler is compiler and _put_rows(live, len(chosen), chosen.table, chosen.flat, chosen.replaced):
            rest = [*_compiled(live, chosen.rest(), None)[0], *texts.others]
            accepted = len(chosen)
        else:
            rest, more_faults = _compiled(live, chosen.records(), None)
            rest, faults, accepted = [*rest, *texts.others], faults + more_faults, 0
        rest.sort(key=lambda each: each[0].position)
        others = _put(live, rest, compiler, replace)
    return Report(accepted + others.accepted, _in_order([*faults, *others.faults]), others.warnings)


def _put(live: LiveSet, prepared: list[Prepared], compiler: Compiler, replace: bool) -> Report:
    """Add compiled subscriptions: of those that share an id the first or, with `replace`, the last."""
    accepted: dict[str, Prepared] = {}
    faults: list[Fault] = []
    for record, form in prepared:
        try:
            if not replace:
                live.reject_taken(record.id, accepted)
            accepted[record.id] = (record, form)
        except HarkenError as error:
            faults.append(record.fault(error))
    rejected = live.put_fitting(list(accepted.values()), compiler)
    return _report(accepted, [*faults, *rejected], rejected)


def _put_rows(
    live: LiveSet,
    count: int,
    table: Callable[[], pa.Table],
    flat: Callable[[int], Flat],
    replaced: Iterable[str],
) -> bool:
    """Add rows that replace the subscriptions with the ids `replaced`. If the matcher has no room, return False.

    `flat(first)` returns the conjunctions, numbered from `first` on.
    """
    leaving = [each for each in map(live.catalogue.get, replaced) if each is not None]
    first = live.numbering.take_row(count)
    live.catalogue.add_columns(first, table())
    try:
        rows = flat(first)
        live.decode_also({place_of(each.column.path)[0] for each in rows.columns if len(each.rows)})
        live.index.add_flat(rows, [each.number for each in leaving])
    except HarkenError as error:
        live.catalogue.drop_columns()
        for number in range(first, first + count):
            live.numbering.give_back(number)
        if not isinstance(error, LimitError):
            raise
        return False
    live.is_changed = True
    live.forget(leaving)
    return True


def subscribe_table(
    changing: Changing, source: TableOfSubscriptions, replace: bool, progress: Progress | None = None
) -> Report:
    """Add subscriptions from a table of predicates: without their texts if the matcher takes rows in bulk."""
    with changing() as live:
        if live.schema is not None or not isinstance(live.matcher, AddsInBulk):
            return subscribe_records(live, changing, source.records(), replace, progress)
        duplicates = source.duplicates(live.catalogue)
        direct = source.direct(() if replace else duplicates.rows)
        if not _put_rows(live, len(direct), direct.table, direct.flat, duplicates.ids if replace else ()):
            return subscribe_records(live, changing, source.records(), replace, progress)
        if progress is not None:
            progress(len(direct))
        rest = subscribe_records(live, changing, source.remaining(direct.rows), replace)
    return Report(len(direct) + rest.accepted, rest.faults, rest.warnings)


def replace_records(changing: Changing, source: Iterable[object], progress: Progress | None = None) -> Replacement:
    """Replace all subscriptions by these. The index does not touch unchanged ones.

    Texts are compiled before the engine is locked. If the engine changes meanwhile, this starts over.
    """
    records = list(records_of(source))
    with changing() as now:
        before, moment = {each.id: each for each in now.catalogue}, now.catalogue.changes
    compiler = now.compiler
    with collector_paused():
        accepted, unchanged, faults = _differing(now, records, before, progress)
        if faults and len(faults) == len(records):
            message = f"none of the {len(records):,} subscriptions can be used, so nothing is replaced"
            raise SubscriptionError(f"{message}: {faults[0].error.message}", hint=faults[0].error.hint)
        with changing() as live:
            if live is not now or live.compiler is not compiler or live.catalogue.changes != moment:
                return replace_records(changing, records)
            stays = {*unchanged, *accepted}
            kept = dict.fromkeys(str(each.id) for each in faults if each.id in before and each.id not in stays)
            gone = [each for id, each in before.items() if id not in stays and id not in kept]
            if accepted or gone:
                live.put(list(accepted.values()), compiler, gone)
    report = _report(accepted, faults, [])
    return Replacement(
        added=[id for id in accepted if id not in before],
        changed=[id for id in accepted if id in before],
        removed=[each.id for each in gone],
        unchanged=unchanged,
        kept=list(kept),
        faults=report.faults,
        warnings=report.warnings,
    )


def _differing(
    live: LiveSet, records: Iterable[Record | Fault], before: Mapping[str, Subscription], progress: Progress | None
) -> tuple[dict[str, Prepared], list[str], list[Fault]]:
    """New and changed records, by id; the ids of unchanged ones; and faults.

    Of several valid records with the same id, the first counts.
    """
    compiler = live.compiler
    accepted: dict[str, Prepared] = {}
    unchanged: dict[str, None] = {}
    faults: list[Fault] = []
    for count, record in enumerate(records, 1):
        if progress is not None and count % _STEP == 0:
            progress(count)
        if isinstance(record, Fault):
            faults.append(record)
            continue
        current = before.get(record.id)
        try:
            if record.id in accepted or record.id in unchanged:
                raise DuplicateIdError(f"another subscription before it has the id {record.id!r}")
            if current is not None and not differ(current, record):
                unchanged[record.id] = None
            else:
                accepted[record.id] = (record, live.compile(record, compiler))
        except HarkenError as error:
            faults.append(record.fault(error))
    return accepted, list(unchanged), faults


def apply_changes(
    now: LiveSet, changing: Changing, changes: Iterable[Change], checked: Mapping[str, Checked]
) -> Report:
    """Apply the new changes of a log, all at once.

    If a record is rejected, the subscription that it replaces is removed. `checked` has compiled texts, by id.
    """
    compiler, applied = now.compiler, now.sequence
    new = [each for each in changes if applied is None or each.sequence > applied]
    wanted = latest(new)
    with collector_paused():
        records = [each for each in wanted.values() if each is not None]
        prepared, faults = _compiled(now, (each for each in records if not _fits(each, checked, compiler)), None)
        prepared += [(each, checked[each.id].compiled) for each in records if _fits(each, checked, compiler)]
        kept = {record.id: (record, form) for record, form in prepared}
        with changing() as live:
            if live is not now or live.sequence != applied:  # a later version was loaded, or another thread was faster
                return apply_changes(live, changing, new, checked)
            removed = (live.catalogue.get(id) for id in wanted if id not in kept)
            gone = [each for each in removed if each is not None]
            rejected = live.put_fitting(list(kept.values()), compiler, gone)
            for fault in rejected:
                older = live.catalogue.get(str(fault.id))
                if older is not None:
                    live.remove(older)
            if new:
                live.sequence = max(each.sequence for each in new)
                live.is_changed = True
    return _report(kept, [*faults, *rejected], rejected)


def restore(index: Indexes, compiler: Compiler, subscriptions: Iterable[Subscription]) -> None:
    """Fill an index from the texts of saved subscriptions. Raises SegmentError."""
    with collector_paused():
        index.restore(_entry(each, compiler) for each in subscriptions)


def restore_calling(
    index: Indexes, compiler: Compiler, catalogue: Catalogue, numbers: Iterable[int], learnt: Mapping[str, list[int]]
) -> None:
    """Index again the subscriptions that call operators. Raises UnavailableError if an operator is missing."""
    subscriptions = [catalogue.of(number) for number in numbers]
    try:
        with collector_paused():
            index.add([Entry(each.number, compiler.compile(each.where, each.language)) for each in subscriptions])
    except LanguageError as error:
        error.hint = "pass the operators: Engine.load(path, operators=[…])"
        raise
    matcher = index.others().get(OPERATORS)
    if isinstance(matcher, CallsOperators):
        matcher.recall(learnt)


def _fits(record: Record, checked: Mapping[str, Checked], compiler: Compiler) -> bool:
    """Whether this compiler has compiled the text of a record already."""
    result = checked.get(record.id)
    if result is None or result.compiler is not compiler:
        return False
    return result.compiled.text == record.where and result.compiled.language == record.language


def _compiled(
    live: LiveSet, records: Iterable[Record | Fault], progress: Progress | None, before: int = 0
) -> tuple[list[Prepared], list[Fault]]:
    """Compiled records, and faults of the others. `before` is the number of records in earlier parts."""
    compiler = live.compiler
    prepared: list[Prepared] = []
    faults: list[Fault] = []
    for count, record in enumerate(records, before + 1):
        if progress is not None and count % _STEP == 0:
            progress(count)
        if isinstance(record, Fault):
            faults.append(record)
            continue
        try:
            prepared.append((record, live.compile(record, compiler)))
        except HarkenError as error:
            faults.append(record.fault(error))
    return prepared, faults


def _report(accepted: dict[str, Prepared], faults: list[Fault], rejected: list[Fault]) -> Report:
    for fault in rejected:
        del accepted[str(fault.id)]
    warnings = [(id, warning) for id, (_, form) in accepted.items() for warning in form.warnings]
    return Report(len(accepted), _in_order(faults), warnings)


def _in_order(faults: Iterable[Fault]) -> list[Fault]:
    return sorted(faults, key=lambda fault: fault.position)


def _entry(subscription: Subscription, compiler: Compiler) -> Entry:
    try:
        return Entry(subscription.number, compiler.compile(subscription.where, subscription.language))
    except HarkenError as problem:
        raise SegmentError(f"subscription {subscription.id} cannot be compiled any more: {problem}") from problem
