"""Events of all shapes as Arrow tables: a table holds those whose values have the same types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa


def tables_of(events: Mapping[str, Mapping[str, Any]]) -> tuple[list[pa.Table], list[str]]:
    """Tables with the names of the events as `event_name`, and the names of those that no table can hold."""
    groups: list[tuple[pa.Schema, dict[str, Mapping[str, Any]]]] = []
    left_out = []
    for name, event in events.items():
        try:
            own = pa.Table.from_pylist([dict(event)]).schema
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            left_out.append(name)
            continue
        for place, (schema, members) in enumerate(groups):
            try:
                groups[place] = pa.unify_schemas([schema, own]), {**members, name: event}
                break
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                continue
        else:
            groups.append((own, {name: event}))
    return [_table(schema, members) for schema, members in groups], left_out


def _table(schema: pa.Schema, members: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    typed = pa.schema([pa.field(each.name, _known(each.type)) for each in schema])
    rows = [{"event_name": name, **event} for name, event in members.items()]
    return pa.Table.from_pylist(rows, pa.schema([pa.field("event_name", pa.string()), *typed]))


def _known(kind: pa.DataType) -> pa.DataType:
    """The type with strings where nothing is known of it, because Spark has no tables of nothing."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_known(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _known(each.type)) for each in kind])
    return kind
