"""The columns of events that are read from XML files."""

from __future__ import annotations

from harken.schema.paths import DOCUMENT

PATH, MODIFIED, POSITION = "path", "modified", "position"
"""The file's path, the time at which it was last modified, and the document's position in it, from 0."""


def xml_columns(is_split: bool) -> dict[str, str]:
    """The types of the columns, in Spark's DDL, by name. `is_split`: a file has several documents, with positions."""
    position = {POSITION: "bigint"} if is_split else {}
    return {PATH: "string", MODIFIED: "timestamp", **position, DOCUMENT[0]: "string"}
