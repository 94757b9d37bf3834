"""The columns of events that are read from files of XML."""

from __future__ import annotations

from harken.schema.paths import DOCUMENT

PATH, MODIFIED, POSITION = "path", "modified", "position"
"""The file, when it was changed, and the document's place in it, from 0."""


def xml_columns(is_split: bool) -> dict[str, str]:
    """The names of the columns, with their types in Spark's DDL. Files that are not split have no positions."""
    position = {POSITION: "bigint"} if is_split else {}
    return {PATH: "string", MODIFIED: "timestamp", **position, DOCUMENT[0]: "string"}
