"""Defaults that depend on other keys: names of sinks, formats from file endings, folders below the checkpoint."""

from __future__ import annotations

from itertools import count

from harken.pipeline.config.config_tables import ConfigTable
from harken.toml.document import needs_key

_ENDINGS = {"parquet": "parquet", "json": "json", "jsonl": "json", "ndjson": "json", "csv": "csv"}


def fill_in(root: ConfigTable, stem: str) -> None:
    """Fill in omitted keys whose defaults depend on others. `stem` is the file's name without its ending."""
    if "name" not in root:
        root.values["name"] = stem
    for table in root.values.get("enrichments", ()):
        _fill_in_format(table)
    _fill_in_names(root.values.get("sinks", []))
    _fill_in_stores(root)
    _fill_in_keep(root)
    _fill_in_dead_letters(root)


def below(location: str, name: str) -> str:
    """The location of `name` inside a folder."""
    return f"{location.rstrip('/')}/{name}"


def _fill_in_format(table: ConfigTable) -> None:
    path = table["path"]
    if path is None or "format" in table:
        return
    parts = path.rstrip("/").lower().removesuffix(".gz").rsplit(".", 1)
    format = _ENDINGS.get(parts[-1]) if len(parts) > 1 else None
    if format is None:
        table.fault(
            "path", "the ending of `path` does not tell its format", 'write format = "parquet", "json" or "csv"'
        )
    else:
        table.values["format"] = format


def _fill_in_names(sinks: list[ConfigTable]) -> None:
    """Name each unnamed sink after its format, with a number if that name is in use."""
    names = {name for sink in sinks if isinstance(name := sink["name"], str)}
    for sink in sinks:
        kind = sink["format"]
        if "name" not in sink and kind is not None:
            name = next(
                name for number in count(1) if (name := kind if number == 1 else f"{kind}-{number}") not in names
            )
            sink.values["name"] = name
            names.add(name)


def _fill_in_stores(root: ConfigTable) -> None:
    """Fill in the store of sinks: the one of the subscriptions."""
    subscriptions = root.values.get("subscriptions")
    for sink in root.values.get("sinks", ()):
        if sink["format"] != "store" or "store" in sink or subscriptions is None:
            continue
        if subscriptions["store"] is not None:
            sink.values["store"] = subscriptions["store"]
        elif "store" not in subscriptions:
            hint = "write store = …, or take the subscriptions from a store"
            sink.fault(None, needs_key(sink.title, "store"), hint)


def _fill_in_keep(root: ConfigTable) -> None:
    subscriptions, checkpoint = root.values.get("subscriptions"), root["checkpoint"]
    if subscriptions is not None and checkpoint is not None and not {"keep", "index"} & subscriptions.names:
        subscriptions.values["keep"] = below(checkpoint, "index")


def _fill_in_dead_letters(root: ConfigTable) -> None:
    table = root.values.get("dead_letters")
    if "dead_letters" in root and (table is None or "path" in table):
        return
    location = _dead_letter_location(root)
    if table is not None and location is None:
        table.fault(None, needs_key(table.title, "path"))
    elif location is not None:
        table = table or root.inner("dead_letters")
        table.values["path"] = location
        root.values["dead_letters"] = table


def _dead_letter_location(root: ConfigTable) -> str | None:
    checkpoint, mode = root["checkpoint"], root.choice("mode")
    if mode != "batch":
        return None if checkpoint is None else below(checkpoint, "dead-letters")
    paths = [path for sink in root.values.get("sinks", ()) if (path := sink["path"]) is not None]
    return f"{paths[0].rstrip('/')}-dead-letters" if paths else None
