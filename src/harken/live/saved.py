"""An engine on disk: index and subscriptions in memory-mapped files, published as one version."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harken.errors import CapabilityError, OutdatedError, SegmentError
from harken.events.utf8 import utf8_of
from harken.limits import Limits
from harken.live.catalogue import Catalogue, CatalogueColumns
from harken.live.live_set import LiveSet, new_index
from harken.live.numbering import Numbering
from harken.matchers.algorithm_registry import load_matcher, load_others
from harken.matchers.document_algorithms import DATABASE_MOMENT, DEFAULT_MATCHING, DocumentMatching
from harken.matchers.kinds import DOCUMENTS, OPERATORS, Indexes
from harken.operators.operating import Operating
from harken.schema import Schema
from harken.schema.schema_files import format_schema, parse_schema
from harken.versions.array_file import ArrayFile
from harken.versions.folder import Folder, VersionDraft

log = logging.getLogger(__name__)
_SUBSCRIPTIONS = "subscriptions"
_DATABASE = "database"
_MOST_FIELD_NAMES = 10_000
"""With more names, their counts are not saved but computed from the fields when needed."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The settings of an engine."""

    schema: Schema | None
    algorithm: str
    limits: Limits
    options: Mapping[str, Any]
    documents: DocumentMatching


@dataclass(frozen=True, slots=True)
class Calling:
    """Numbers of the subscriptions that call operators, which are indexed again, and statistics of the outcomes."""

    numbers: list[int]
    learnt: dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved engine."""

    version: int
    sequence: int | None
    """Sequence number of the last change of a log that was applied."""
    settings: EngineSettings
    catalogue: Catalogue
    numbering: Numbering
    index: Indexes | None
    """None if the algorithm saves no index, or an earlier Harken saved it: then it is built from the texts."""
    calling: Calling
    operating: Operating


class SavedAlgorithms(NamedTuple):
    """The algorithms of a saved engine, read without loading it."""

    flat: str
    without_url: str | None
    """The algorithm that needs the URL of its database again, which is not saved; None if none does."""


def saved_algorithms(path: str | PathLike[str]) -> SavedAlgorithms:
    """The algorithms of the engine in a folder. Raises SegmentError."""
    meta = Folder(path).current().meta
    try:
        without = [each["algorithm"] for each in (meta, _documents(meta)) if each["options"].get(_DATABASE, "") is None]
        return SavedAlgorithms(meta["algorithm"], without[0] if without else None)
    except (KeyError, TypeError, AttributeError) as problem:
        raise _no_engine(path, problem) from None


def save(folder: Folder, seen: int | None, live: LiveSet) -> int:
    """Publish a version, and return its number. `seen` is the last version of the folder that the caller saw.

    Raises SegmentError if another version was published since, which would be lost.
    """
    with folder.publishing() as draft:
        if seen is not None and draft.version != seen + 1:
            hint = "load it again, or save under another path"
            raise SegmentError(f"{folder.path} was changed by another writer (version {draft.version - 1})", hint=hint)
        live.index.save(draft.write)
        _write_catalogue(live.catalogue, live.numbering.size, draft)
        schema, used_names = live.schema, live.catalogue.used_names
        draft.meta.update(
            algorithm=live.algorithm,
            schema=None if schema is None else format_schema(schema),
            schema_version=None if schema is None else schema.version,
            limits=asdict(live.limits),
            options=_without_urls(live.options),
            documents={"algorithm": live.documents.algorithm, "options": _without_urls(live.documents.options)},
            names=None if used_names is None else sorted(used_names),
            sequence=live.sequence,
        )
        return draft.version


def load(folder: Folder, options: Mapping[str, Any], operating: Operating, rebuild: bool = True) -> Saved:
    """Load the current version. `options` override the saved ones. Raises SegmentError.

    With `rebuild` an index of an earlier Harken is left out; without, OutdatedError is raised.
    """
    contents = folder.open()
    meta = contents.meta
    try:
        schema = None if meta["schema"] is None else parse_schema(meta["schema"])
        for_documents = _documents(meta)
        every = {**for_documents["options"], **meta["options"], **options}
        if every.get(_DATABASE, "") is None:
            message = f"{folder.path} was saved with the URL of a database, which is not kept: it may hold a password"
            raise CapabilityError(message, hint="pass `database` again: Engine.load(path, database=...)")
        documents, for_flat = DocumentMatching.chosen(for_documents["algorithm"], every, meta["algorithm"])
        settings = EngineSettings(schema, meta["algorithm"], Limits(**meta["limits"]), for_flat, documents)
        file = contents.files[_SUBSCRIPTIONS]
        columns = CatalogueColumns(0, _read_catalogue(file.arrays), file.meta.get("field_counts"))
    except (KeyError, TypeError) as problem:
        raise _no_engine(folder.path, problem) from None
    operating = operating.within(settings.limits)
    ids = columns.table.column(0)
    free = np.flatnonzero(ids.is_null().to_numpy()).tolist() if ids.null_count else []
    try:
        chosen = {name for name in settings.options if name in options or name == _DATABASE}
        given = {name: settings.options[name] for name in chosen}
        index = _read_index(settings, contents.files, given, operating)
    except OutdatedError:
        if not rebuild:
            raise
        index = None
        log.warning(
            "%s: the index of an earlier Harken is rebuilt from the texts, without what it learnt from events; "
            "save to keep it",
            folder.path,
        )
    names = meta.get("names")  # missing if an earlier Harken saved it
    used_names = None if names is None else frozenset(names)
    catalogue = Catalogue([columns] if len(columns) else [], used_names=used_names)
    numbering = Numbering(len(columns), free)
    calling = _read_calling(contents.files)
    return Saved(contents.version, meta.get("sequence"), settings, catalogue, numbering, index, calling, operating)


def _read_calling(files: Mapping[str, ArrayFile]) -> Calling:
    file = files.get(OPERATORS)
    if file is None:
        return Calling([], {})
    return Calling(file.arrays["numbers"].tolist(), file.meta["learnt"])


def _read_index(
    settings: EngineSettings, files: Mapping[str, ArrayFile], options: Mapping[str, Any], operating: Operating
) -> Indexes | None:
    flat = load_matcher(settings.algorithm, files, settings.limits, options)
    if flat is None:
        return None
    others = load_others(files, settings.limits)
    if DATABASE_MOMENT in files:
        documents = settings.documents.load(files, settings.limits)
        if documents is None:
            return None
        others[DOCUMENTS] = documents
    with_numbers = {kind: (matcher, matcher.numbers()) for kind, matcher in others.items()}
    return new_index(flat, settings.limits, operating, settings.documents, with_numbers)


def _documents(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """The algorithm for documents and its options; the defaults if an earlier Harken wrote none."""
    return meta.get("documents") or asdict(DEFAULT_MATCHING)


def _no_engine(path: str | PathLike[str], problem: Exception) -> SegmentError:
    return SegmentError(f"{path} does not hold an engine: {problem}")


def _without_urls(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with None for a database's URL, which may hold a password: `load` needs it again."""
    return {name: None if _is_url(name, value) else value for name, value in options.items()}


def _is_url(name: str, value: object) -> bool:
    return name == _DATABASE and "://" in str(value)


def _write_catalogue(catalogue: Catalogue, size: int, draft: VersionDraft) -> None:
    table = catalogue.table(size)
    arrays: dict[str, NDArray[Any]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        whole = column.combine_chunks()
        arrays[f"{name}/valid"] = whole.is_valid().to_numpy(zero_copy_only=False)
        data, offsets = utf8_of(whole.fill_null(""))
        arrays[f"{name}/data"] = np.ascontiguousarray(data[offsets[0] : offsets[-1]])
        arrays[f"{name}/offsets"] = offsets - offsets[0]
    counts = catalogue.field_counts()
    saved_counts = {"field_counts": counts} if len(counts) <= _MOST_FIELD_NAMES else {}
    draft.write(_SUBSCRIPTIONS, arrays, {"columns": table.column_names, **saved_counts})


def _read_catalogue(arrays: Mapping[str, NDArray[Any]]) -> pa.Table:
    columns = {}
    for name in ("id", "where", "language", "fields"):
        valid, offsets, data = (arrays[f"{name}/{part}"] for part in ("valid", "offsets", "data"))
        bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        columns[name] = pa.LargeStringArray.from_buffers(
            len(valid), pa.py_buffer(offsets), pa.py_buffer(data), null_bitmap=bits
        )
    return pa.table(columns)
