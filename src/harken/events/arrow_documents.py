"""Binary columns of Arrow tables: XML documents, decoded by the encodings that they state."""

from __future__ import annotations

from typing import Any

from harken.events.arrow_cells import documents, is_binary
from harken.events.canonical import Unreadable
from harken.events.encodings import is_utf8
from harken.limits import Limits

_HEAD = 256
"""Number of leading bytes that usually hold the XML declaration."""


def with_texts(table: Any, limits: Limits) -> Any:
    """The table with its binary columns as strings, not copied if all documents are UTF-8.

    A column with a document that cannot be decoded stays binary; reading it row by row then rejects the bad ones.
    """
    for place, kind in enumerate(table.schema.types):
        if is_binary(kind):
            texts = _texts(table.column(place), limits)
            if texts is not None:
                table = table.set_column(place, table.column_names[place], texts)
    return table


def _texts(column: Any, limits: Limits) -> Any:
    import pyarrow

    is_small = pyarrow.types.is_binary(column.type)
    if pyarrow.types.is_binary_view(column.type):
        column = column.cast("large_binary")
    kind = pyarrow.string() if is_small else pyarrow.large_string()
    try:
        if all(map(_are_utf8, column.chunks)):
            # `are_sound` checks later that the bytes are UTF-8, as for any string.
            return pyarrow.chunked_array([chunk.view(kind) for chunk in column.chunks], kind)
        cells = [cell for chunk in column.chunks for cell in documents(chunk, limits)]
        if any(isinstance(cell, Unreadable) for cell in cells):
            return None
        return pyarrow.chunked_array([pyarrow.array(cells, pyarrow.large_string())])
    except (pyarrow.ArrowException, UnicodeEncodeError):
        return None


def _are_utf8(chunk: Any) -> bool:
    """Whether all documents state that they are UTF-8."""
    from pyarrow import compute

    heads = compute.binary_slice(chunk, 0, _HEAD).to_pylist()
    return all(head is None or _is_utf8(head, chunk, row) for row, head in enumerate(heads))


def _is_utf8(head: bytes, chunk: Any, row: int) -> bool:
    is_cut = len(head) == _HEAD and head.startswith(b"<?xml") and b">" not in head
    return is_utf8(chunk[row].as_py() if is_cut else head)
