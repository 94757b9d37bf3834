"""The documents of an XML file in batches: the whole file, or each element of a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from harken.events.batch import Decoded, EventBatch, RejectedEvent, collect, without_bad_documents
from harken.events.document_views import DocumentViews
from harken.events.excerpt import settled, shorten
from harken.events.pieces import Piece, place_in
from harken.events.row import Row
from harken.limits import Limits
from harken.schema.paths import DOCUMENT

if TYPE_CHECKING:
    from harken.schema import Schema

_BYTES = 1 << 26
"""Approximate limit on the bytes of a batch, whose documents are in memory together."""


def document_pieces(stream: BinaryIO, split: str | None, limits: Limits) -> Iterator[Piece]:
    """The documents of a stream, each with its place. `split` names the elements that are documents; None: the file."""
    from harken.events.xml import splitting

    return splitting.documents_of(stream, limits) if split is None else splitting.split(stream, split, limits)


def document_batches(
    pieces: Iterable[Piece],
    source: str,
    schema: Schema | None,
    limits: Limits,
    batch_size: int,
    names: frozenset[str] | None,
) -> Iterator[Decoded]:
    """Batches of documents as events. Documents that cannot be read are rejected, with their places in the source."""
    first, size = 0, 0
    waiting: list[Piece] = []
    for piece in pieces:
        waiting.append(piece)
        size += len(piece.data)
        if len(waiting) == batch_size or size >= _BYTES:
            yield _decoded(waiting, first, source, schema, limits, names)
            first, size, waiting = first + len(waiting), 0, []
    if waiting:
        yield _decoded(waiting, first, source, schema, limits, names)


def _decoded(
    pieces: list[Piece],
    first: int,
    source: str,
    schema: Schema | None,
    limits: Limits,
    names: frozenset[str] | None,
) -> Decoded:
    good = [place for place, piece in enumerate(pieces) if piece.error is None]
    is_read = names is None or DOCUMENT[0] in names
    if schema is None and is_read:
        raw = [pieces[place].data for place in good]
        batch = EventBatch(DocumentViews(raw, limits, names), tuple(first + place for place in good), names)
        decoded = Decoded(batch, ())
    else:
        rows = (Row(first + place, None, pieces[place].data, None, None) for place in good)  # type: ignore[arg-type]
        decoded = collect(rows, schema, limits, names)
    if is_read:
        decoded = without_bad_documents(decoded, (DOCUMENT,), limits)
    bad = [
        RejectedEvent(first + place, piece.error, None) for place, piece in enumerate(pieces) if piece.error is not None
    ]
    rejected = sorted([*decoded.rejected, *bad], key=lambda each: each.position)
    return Decoded(decoded.batch, tuple(_located(each, pieces[each.position - first], source) for each in rejected))


def _located(rejected: RejectedEvent, piece: Piece, source: str) -> RejectedEvent:
    """The rejection with its place in the source, and the beginning of the document."""
    error = rejected.error
    error.place = place_in(piece, error.place, source, is_exact=piece.error is not None)
    return replace(rejected, error=settled(error), raw=shorten(piece.excerpt))
