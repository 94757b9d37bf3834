"""Checks across the keys of a configuration: what one table requires of another."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harken.errors import HarkenError, did_you_mean
from harken.live.notifications import NotificationRow, names_of
from harken.pipeline.config.config_tables import ConfigTable
from harken.pipeline.config.ddl import DdlColumn, read_ddl
from harken.pipeline.config.document_columns import xml_columns
from harken.pipeline.config.locations import check_apart, check_store, check_there
from harken.schema import check_schema
from harken.schema.paths import DOCUMENT
from harken.schema.schema_files import MAX_SCHEMA_BYTES
from harken.toml.document import needs_key, read_text

_OF_RATE = {"timestamp": "timestamp", "value": "bigint"}
_TIMES = ("timestamp", "timestamp_ntz", "timestamp_ltz", "date")
_NO_IDS = ("array", "map", "struct", "variant", "binary")
_ONLY_STREAMS = ("rate", "socket")
_NUMBER_THEMSELVES = ("kafka", "rate", "xml")
_ENDINGS = re.compile(r".*\.(parquet|(jsonl|ndjson|json|csv)(\.gz)?)", re.IGNORECASE)
_PASSWORD = re.compile(r"[?&;]password=|//[^/@\s]*:[^/@\s]*@", re.IGNORECASE)


def check(root: ConfigTable) -> None:
    """Report to the document every fault that involves more than one key."""
    gives_columns = _check_schema(root)
    known: set[str] | None = None
    source = root.values.get("source")
    if source is not None:
        _check_source(source, gives_columns)
        known = _check_columns(source)
    if "enrich" in root and "enrichments" not in root.values:
        known = None
    for table in root.values.get("enrichments", ()):
        known = _check_enrichment(table, known)
    if (subscriptions := root.values.get("subscriptions")) is not None:
        _check_subscriptions(subscriptions)
    if (match := root.values.get("match")) is not None:
        _check_match(match, known)
    _check_sinks(root.values.get("sinks", []), source)
    _check_stores(root.values.get("sinks", []), subscriptions)
    check_apart(root)


def _check_schema(root: ConfigTable) -> bool:
    """Whether the schema declares columns. True if it is faulty, so that missing columns are not reported too."""
    path = root["schema"]
    if path is None:
        return "schema" in root
    try:
        text = read_text(path, "schema", MAX_SCHEMA_BYTES)
    except HarkenError as error:
        root.document.foreign_fault(root.spot("schema").keys, error)
        return True
    schema, faults = check_schema(text, path)
    for fault in faults:
        root.document.foreign_fault(root.spot("schema").keys, fault)
    return schema is None or bool(schema.attributes)


def _check_source(source: ConfigTable, gives_columns: bool) -> None:
    kind, mode = source.choice("format"), source.choice("mode")
    if kind in _ONLY_STREAMS and mode == "batch":
        source.fault("format", f"a source of format {kind} has no end", 'write mode = "stream"')
    if kind == "kafka" and mode == "batch" and source["starting_offsets"] == "latest":
        source.fault("starting_offsets", "a batch that starts at the latest offsets reads nothing")
    needs_columns = kind in ("kafka", "socket") and mode == "stream"
    if needs_columns and "columns" not in source and not gives_columns:
        hint = 'write columns = "id STRING, price DOUBLE", or name a schema that has attributes'
        message = f"{needs_key(source.title, 'columns')}: a stream of {kind} cannot tell them by itself"
        source.fault(None, message, hint)
    if kind is not None and kind not in _NUMBER_THEMSELVES and "event_id" not in source:
        source.fault(None, needs_key(source.title, "event_id"), "name the column that tells one event from another")
    if "late_after" in source and "event_time" not in source:
        source.fault("late_after", "`late_after` needs `event_time`")
    if "late" in source and "late_after" not in source:
        source.fault("late", "`late` needs `late_after`")
    if kind is not None and mode is not None:
        check_there(source, "path", folder=mode == "stream", wild=True)


def _check_columns(source: ConfigTable) -> set[str] | None:
    """The columns of events before they are enriched; None if the file does not declare them."""
    known = _source_columns(source)
    if known is None:
        return None
    for name in ("event_id", "event_time"):
        column = source[name]
        if column is None:
            continue
        if column not in known:
            source.fault(name, f"events have no column `{column}`", _among(column, known))
        elif name == "event_time" and known[column] not in _TIMES:
            hint = f"declare it as `{column} TIMESTAMP`"
            source.fault(name, f"column `{column}` has the type {known[column].upper()}, which is no time", hint)
        elif name == "event_id" and known[column] in _NO_IDS:
            source.fault(name, f"column `{column}` has the type {known[column].upper()}, which is no id")
    return set(known)


def _source_columns(source: ConfigTable) -> Mapping[str, str] | None:
    if source.choice("format") == "rate":
        return _OF_RATE
    if source.choice("format") == "xml":
        return xml_columns("row_tag" in source)
    if source["columns"] is None:
        return None
    columns: list[DdlColumn] = read_ddl(source["columns"])[0]
    return {column.name: column.type for column in columns}


def _check_enrichment(table: ConfigTable, known: set[str] | None) -> set[str] | None:
    """The columns of events after the enrichment; None if the file does not declare them."""
    _check_one_of(table, ("path", "table"))
    if "format" in table and "table" in table:
        table.fault("format", "`format` belongs to `path`, not to `table`")
    check_there(table, "path", wild=True)
    if "document_key" in table:
        _check_document_key(table, known)
        return known
    if "element" in table:
        table.fault("element", "`element` needs `document_key`")
    on, columns, prefix = table["on"], table["columns"], table["prefix"]
    for index, name in enumerate(on or ()):
        if known is not None and name not in known:
            table.fault("on", f"events have no column `{name}`", _among(name, known), within=(index,))
        if columns is not None and name in columns:
            message = f"column `{name}` is one of `on`, which events have already"
            table.fault("columns", message, within=(columns.index(name),))
    if known is None or columns is None or prefix is None or on is None:
        return None
    for index, name in enumerate(columns):
        if prefix + name in known and name not in on:
            hint = "write prefix = …, to be put before the names of the columns that are added"
            table.fault("columns", f"events have a column `{prefix + name}` already", hint, within=(index,))
    return known | {prefix + name for name in columns}


def _check_document_key(table: ConfigTable, known: set[str] | None) -> None:
    """Check an enrichment of documents."""
    from harken.events.xml.enriching import DocumentKey, require_name

    if table["document_key"] is not None:
        try:
            DocumentKey(table["document_key"])
        except HarkenError as error:
            table.fault("document_key", error.message, error.hint)
    if len(table["on"] or ()) > 1:
        table.fault("on", "a document has one key", "name the one column of the reference table that has it")
    if "prefix" in table:
        table.fault("prefix", "`prefix` belongs to columns, and a document gets elements", 'write element = "…"')
    for index, name in enumerate(table["columns"] or ()):
        try:
            require_name(name)
        except HarkenError as error:
            table.fault("columns", error.message, error.hint, within=(index,))
    if known is not None and DOCUMENT[0] not in known:
        hint = "declare it in `columns`, as `document STRING`"
        table.fault("document_key", f"events have no column `{DOCUMENT[0]}`", hint)


def _check_subscriptions(table: ConfigTable) -> None:
    _check_one_of(table, ("path", "index", "table", "store"))
    if "index" in table:
        for name in ("keep", "on_fault"):
            if name in table:
                table.fault(name, f"`{name}` belongs to path, table and store, not to `index`, which is built already")
    check_there(table, "path")
    check_store(table)
    check_there(table, "index", folder=True)
    path = table["path"]
    # A path without an ending may be a folder.
    if path is not None and "." in path.rstrip("/").rsplit("/", 1)[-1] and not _ENDINGS.fullmatch(path.rstrip("/")):
        hint = "the known ones are .jsonl, .ndjson, .json, .csv and .parquet, and .gz after those of text"
        table.fault("path", "the ending of `path` does not tell its format", hint)


def _check_match(table: ConfigTable, known: set[str] | None) -> None:
    for index, name in enumerate(table["columns"] or ()):
        if name in names_of(NotificationRow):
            message = f"every notification has a column `{name}` of its own"
            table.fault("columns", message, within=(index,))
        elif known is not None and name not in known:
            table.fault("columns", f"events have no column `{name}`", _among(name, known), within=(index,))


def _check_sinks(sinks: list[ConfigTable], source: ConfigTable | None) -> None:
    names: set[str] = set()
    targets: dict[tuple[str, ...], str] = {}
    if source is not None and source.choice("format") == "kafka" and source["topic"] is not None:
        targets[_target(source)] = "the source"
    for sink in sinks:
        name = sink["name"]
        if name is not None and name in names:
            sink.fault("name", f"two sinks have the name `{name}`")
        names.add(name)
        url = sink["url"]
        if url is not None and _PASSWORD.search(url):
            sink.fault("url", "a password stands in `url`, where it is shown", 'write password = "${NAME}" beside it')
        target = _target(sink)
        if target in targets and None not in target:
            kind = sink["format"]
            key = {"kafka": "topic", "jdbc": "table"}.get(kind, "format")
            sink.fault(key, f"sink `{name}` and {targets[target]} have one {'topic' if kind == 'kafka' else kind}")
        elif target:
            targets[target] = f"sink `{name}`"


def _check_stores(sinks: list[ConfigTable], subscriptions: ConfigTable | None) -> None:
    known = None if subscriptions is None else subscriptions["store"]
    for sink in sinks:
        if "store" not in sink:
            continue
        check_store(sink)
        if known is not None and sink["store"] not in (None, known):
            hint = "leave it out, to write to the store of [subscriptions]"
            sink.fault("store", "`store` is not that of [subscriptions]: nobody would ask there", hint)


def _target(table: ConfigTable) -> tuple[str, ...]:
    """What identifies the target of a sink, or the topic of a source; empty for files, which `locations` checks."""
    keys = {"kafka": ("servers", "topic"), "jdbc": ("url", "table"), "store": ("store",), "console": ()}
    kind = table.choice("format")
    return () if kind not in keys else (kind, *(table[key] for key in keys[kind]))


def _check_one_of(table: ConfigTable, names: tuple[str, ...]) -> None:
    there = [name for name in names if name in table]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    if not there:
        table.fault(None, f"{table.title} needs one of {listed}")
    for name in there[1:]:
        table.fault(name, f"{table.title} has one of {listed}; `{there[0]}` is there already")


def _among(name: str, known: set[str] | Mapping[str, str]) -> str:
    return did_you_mean(name, known) or f"they have {', '.join(sorted(known))}"
