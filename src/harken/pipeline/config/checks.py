"""Checks that involve several keys or tables of a configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harken.errors import HarkenError, did_you_mean
from harken.live.notifications import NotificationRow, names_of
from harken.pipeline.config.config_tables import ConfigTable
from harken.pipeline.config.ddl import DdlColumn, read_ddl
from harken.pipeline.config.document_columns import xml_columns
from harken.pipeline.config.locations import check_exists, check_no_overlaps, check_store
from harken.schema import check_schema
from harken.schema.paths import DOCUMENT
from harken.schema.schema_files import MAX_SCHEMA_BYTES
from harken.toml.document import needs_key, read_text

_RATE_COLUMNS = {"timestamp": "timestamp", "value": "bigint"}
_TIMES = ("timestamp", "timestamp_ntz", "timestamp_ltz", "date")
_NO_IDS = ("array", "map", "struct", "variant", "binary")
"""Types that no id can have."""
_ONLY_STREAMS = ("rate", "socket")
_WITH_IDS = ("kafka", "rate", "xml")
"""Formats whose events have an id without a column for it."""
_ENDINGS = re.compile(r".*\.(parquet|(jsonl|ndjson|json|csv)(\.gz)?)", re.IGNORECASE)
_PASSWORD = re.compile(r"[?&;]password=|//[^/@\s]*:[^/@\s]*@", re.IGNORECASE)


def check(root: ConfigTable) -> None:
    """Report every fault that involves more than one key."""
    gives_columns = _check_schema(root)
    columns: set[str] | None = None
    source = root.values.get("source")
    if source is not None:
        _check_source(source, gives_columns)
        columns = _check_columns(source)
    if "enrich" in root and "enrichments" not in root.values:
        columns = None
    for table in root.values.get("enrichments", ()):
        columns = _check_enrichment(table, columns)
    if (subscriptions := root.values.get("subscriptions")) is not None:
        _check_subscriptions(subscriptions)
    if (match := root.values.get("match")) is not None:
        _check_match(match, columns)
    _check_sinks(root.values.get("sinks", []), source)
    _check_stores(root.values.get("sinks", []), subscriptions)
    check_no_overlaps(root)


def _check_schema(root: ConfigTable) -> bool:
    """Check the schema. Returns whether it declares columns; True if it is faulty, to report no missing columns."""
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
        message = f"{needs_key(source.title, 'columns')}: a stream of {kind} cannot infer them"
        source.fault(None, message, hint)
    if kind is not None and kind not in _WITH_IDS and "event_id" not in source:
        source.fault(None, needs_key(source.title, "event_id"), "name the column that identifies an event")
    if "late_after" in source and "event_time" not in source:
        source.fault("late_after", "`late_after` needs `event_time`")
    if "late" in source and "late_after" not in source:
        source.fault("late", "`late` needs `late_after`")
    if kind is not None and mode is not None:
        check_exists(source, "path", folder=mode == "stream", may_be_glob=True)


def _check_columns(source: ConfigTable) -> set[str] | None:
    """Check the id and time columns. Returns the columns of events before enrichment, or None if not declared."""
    types = _source_columns(source)
    if types is None:
        return None
    for name in ("event_id", "event_time"):
        column = source[name]
        if column is None:
            continue
        if column not in types:
            source.fault(name, f"events have no column `{column}`", _among(column, types))
        elif name == "event_time" and types[column] not in _TIMES:
            hint = f"declare it as `{column} TIMESTAMP`"
            source.fault(name, f"column `{column}` has the type {types[column].upper()}, which is no time", hint)
        elif name == "event_id" and types[column] in _NO_IDS:
            source.fault(name, f"column `{column}` has the type {types[column].upper()}, which is no id")
    return set(types)


def _source_columns(source: ConfigTable) -> Mapping[str, str] | None:
    """The types of the source's columns by name; None if the file does not declare them."""
    if source.choice("format") == "rate":
        return _RATE_COLUMNS
    if source.choice("format") == "xml":
        return xml_columns("row_tag" in source)
    if source["columns"] is None:
        return None
    columns: list[DdlColumn] = read_ddl(source["columns"])[0]
    return {column.name: column.type for column in columns}


def _check_enrichment(table: ConfigTable, event_columns: set[str] | None) -> set[str] | None:
    """Check an enrichment. Returns the columns of events after it, or None if the file does not declare them."""
    _check_one_of(table, ("path", "table"))
    if "format" in table and "table" in table:
        table.fault("format", "`format` belongs to `path`, not to `table`")
    check_exists(table, "path", may_be_glob=True)
    if "document_key" in table:
        _check_document_key(table, event_columns)
        return event_columns
    if "element" in table:
        table.fault("element", "`element` needs `document_key`")
    on, columns, prefix = table["on"], table["columns"], table["prefix"]
    for index, name in enumerate(on or ()):
        if event_columns is not None and name not in event_columns:
            table.fault("on", f"events have no column `{name}`", _among(name, event_columns), within=(index,))
        if columns is not None and name in columns:
            message = f"column `{name}` is in `on`: events have it already"
            table.fault("columns", message, within=(columns.index(name),))
    if event_columns is None or columns is None or prefix is None or on is None:
        return None
    for index, name in enumerate(columns):
        if prefix + name in event_columns and name not in on:
            hint = "write prefix = …, which is put before the names of the added columns"
            table.fault("columns", f"events have a column `{prefix + name}` already", hint, within=(index,))
    return event_columns | {prefix + name for name in columns}


def _check_document_key(table: ConfigTable, event_columns: set[str] | None) -> None:
    """Check an enrichment that adds elements to documents."""
    from harken.events.xml.enriching import DocumentKey, require_name

    if table["document_key"] is not None:
        try:
            DocumentKey(table["document_key"])
        except HarkenError as error:
            table.fault("document_key", error.message, error.hint)
    if len(table["on"] or ()) > 1:
        table.fault("on", "a document has one key", "name only the column of the reference table that holds the key")
    if "prefix" in table:
        table.fault("prefix", "`prefix` is for columns, and a document gets elements", 'write element = "…"')
    for index, name in enumerate(table["columns"] or ()):
        try:
            require_name(name)
        except HarkenError as error:
            table.fault("columns", error.message, error.hint, within=(index,))
    if event_columns is not None and DOCUMENT[0] not in event_columns:
        hint = "declare it in `columns`, as `document STRING`"
        table.fault("document_key", f"events have no column `{DOCUMENT[0]}`", hint)


def _check_subscriptions(table: ConfigTable) -> None:
    _check_one_of(table, ("path", "index", "table", "store"))
    if "index" in table:
        for name in ("keep", "on_fault"):
            if name in table:
                table.fault(name, f"`{name}` belongs to path, table and store, not to `index`, which is built already")
    check_exists(table, "path")
    check_store(table)
    check_exists(table, "index", folder=True)
    path = table["path"]
    # A path without an ending may be a folder.
    if path is not None and "." in path.rstrip("/").rsplit("/", 1)[-1] and not _ENDINGS.fullmatch(path.rstrip("/")):
        hint = "the known ones are .jsonl, .ndjson, .json, .csv and .parquet; all but .parquet may be followed by .gz"
        table.fault("path", "the ending of `path` does not tell its format", hint)


def _check_match(table: ConfigTable, event_columns: set[str] | None) -> None:
    for index, name in enumerate(table["columns"] or ()):
        if name in names_of(NotificationRow):
            message = f"every notification already has a column `{name}`"
            table.fault("columns", message, within=(index,))
        elif event_columns is not None and name not in event_columns:
            table.fault("columns", f"events have no column `{name}`", _among(name, event_columns), within=(index,))


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
            sink.fault("url", "`url` has a password, which would be shown", 'write password = "${NAME}" instead')
        target = _target(sink)
        if target in targets and None not in target:
            kind = sink["format"]
            key = {"kafka": "topic", "jdbc": "table"}.get(kind, "format")
            what = "topic" if kind == "kafka" else kind
            sink.fault(key, f"sink `{name}` and {targets[target]} have the same {what}")
        elif target:
            targets[target] = f"sink `{name}`"


def _check_stores(sinks: list[ConfigTable], subscriptions: ConfigTable | None) -> None:
    store = None if subscriptions is None else subscriptions["store"]
    for sink in sinks:
        if "store" not in sink:
            continue
        check_store(sink)
        if store is not None and sink["store"] not in (None, store):
            hint = "leave `store` out, to write to the store of [subscriptions]"
            sink.fault("store", "`store` is not that of [subscriptions], where the subscribers look", hint)


def _target(table: ConfigTable) -> tuple[str, ...]:
    """A key for the target of a sink or the topic of a source. Empty for files, which `check_no_overlaps` checks."""
    keys = {"kafka": ("servers", "topic"), "jdbc": ("url", "table"), "store": ("store",), "console": ()}
    kind = table.choice("format")
    return () if kind not in keys else (kind, *(table[key] for key in keys[kind]))


def _check_one_of(table: ConfigTable, names: tuple[str, ...]) -> None:
    present = [name for name in names if name in table]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    if not present:
        table.fault(None, f"{table.title} needs one of {listed}")
    for name in present[1:]:
        table.fault(name, f"{table.title} takes only one of {listed}, and has `{present[0]}` already")


def _among(name: str, columns: set[str] | Mapping[str, str]) -> str:
    """A hint for a name that is none of the columns."""
    return did_you_mean(name, columns) or f"they have {', '.join(sorted(columns))}"
