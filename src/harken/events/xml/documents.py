"""The XML documents of a batch as arrays, read by a kernel, or by expat where the kernel is not sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.errors import HarkenError
from harken.events.xml.expat import ParsedNodes, check_size, read_by_expat
from harken.events.xml.tag_paths import TagPaths, current_tag_paths, workspace
from harken.kernels import scanning
from harken.kernels import xml as kernels
from harken.kernels.frozen import frozen
from harken.limits import DEFAULT_LIMITS, Limits

_NON_CHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a batch. Nodes are in document order: element, attributes, child elements and texts."""

    paths: TagPaths
    owner: NDArray[np.int32]
    """The event of each document, ascending."""
    first: NDArray[np.int64]
    """The index of each document's first node, its root node; at the end the number of nodes."""
    path: NDArray[np.int32]
    """The tag path of each node."""
    parent: NDArray[np.int32]
    """The index of each node's parent; -1 for root nodes."""
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    """The string-value of each node: `text[begin:end]`."""
    text: NDArray[np.uint8]
    errors: tuple[tuple[int, HarkenError], ...]
    """The rejected documents: the event and the reason."""

    def __len__(self) -> int:
        return len(self.owner)

    def part(self, begin: int, end: int) -> Documents:
        """The documents from `begin` to `end`."""
        first, last = self.first[begin], self.first[end]
        parent = self.parent[first:last]
        return Documents(
            self.paths,
            self.owner[begin:end],
            self.first[begin : end + 1] - first,
            self.path[first:last],
            np.where(parent < 0, parent, parent - np.int32(first)),
            self.begin[first:last],
            self.end[first:last],
            self.text,
            (),
        )


class _Read(NamedTuple):
    """The kernel's result: whether all documents were read, their statuses, their first nodes, and all nodes."""

    is_complete: bool
    status: NDArray[np.uint8]
    first: NDArray[np.int64]
    nodes: ParsedNodes


def read_document(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Documents:
    """One document, as a batch of one."""
    offsets = np.array([0, len(data)], np.int64)
    return read_documents(np.frombuffer(data, np.uint8), offsets, np.zeros(1, np.int32), limits)


def read_documents(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    owner: NDArray[np.int32],
    limits: Limits = DEFAULT_LIMITS,
    *,
    is_text: bool = False,
) -> Documents:
    """Consecutive documents in one buffer. Rejected documents are in `errors`.

    With `is_text`, documents were strings and are UTF-8, whatever encoding they declare.
    """
    paths = current_tag_paths()
    read = _by_kernel(data, offsets, paths, limits)
    if read.is_complete:
        return Documents(paths, owner, read.first, *read.nodes, errors=())
    return _completed(data, offsets, owner, paths, read, limits, is_text)


def _by_kernel(data: NDArray[np.uint8], offsets: NDArray[np.int64], paths: TagPaths, limits: Limits) -> _Read:
    """Read the documents with the kernel."""
    data, offsets = _read_only(data), _read_only(offsets)
    count = len(offsets) - 1
    status, is_ascii = np.empty(count, np.uint8), np.empty(count, np.bool_)
    max_nodes, flags = kernels.survey(data, offsets, limits.max_event_bytes, status, is_ascii)
    if max_nodes < 0:
        raise ValueError("offsets ascend, and lie within the data")
    if flags & scanning.HAS_HIGH:
        for document in np.flatnonzero(~is_ascii & (status == kernels.DONE)).tolist():
            if not _is_sound(data[offsets[document] : offsets[document + 1]].tobytes()):
                status[document] = kernels.UNSURE
    if flags & scanning.HAS_RETURN:
        ended, ended_offsets = np.empty(len(data), np.uint8), np.empty(count + 1, np.int64)
        kernels.end_lines(data, offsets, ended, ended_offsets)
        data, offsets = ended, ended_offsets
    max_nodes = min(max_nodes, count * (limits.max_document_nodes + 1))
    size = int(offsets[-1] - offsets[0])
    # The arrays have the largest size needed: unwritten pages take no memory, and the rest is cut off at the end.
    job = kernels.Job(
        data=data,
        offsets=offsets,
        status=status,
        first=np.zeros(count + 1, np.int64),
        path=np.empty(max_nodes, np.int32),
        parent=np.empty(max_nodes, np.int32),
        begin=np.empty(max_nodes, np.int64),
        end=np.empty(max_nodes, np.int64),
        text=np.empty(size + 2 * scanning.WIDTH, np.uint8),
    )
    nodes, front, back, unread = _run(job, paths, limits)
    begin, end = job.begin[:nodes], job.end[:nodes]
    kernels.close_gap(begin, end, front, back - front)
    text = np.concatenate([job.text[:front], job.text[back:]])
    return _Read(unread == 0, status, job.first, ParsedNodes(job.path[:nodes], job.parent[:nodes], begin, end, text))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous read-only view: the kernels are compiled for read-only arrays only."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _is_sound(data: bytes) -> bool:
    """Whether bytes are UTF-8 without the non-characters that XML excludes."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return not any(each in data for each in _NON_CHARACTERS)


def _run(job: kernels.Job, paths: TagPaths, limits: Limits) -> tuple[int, int, int, int]:
    """Run the kernel over all documents. Returns the number of nodes, the begin and end of the gap in the text, and the
    number of documents that were not read.

    Tag paths are looked up without a lock. A document with a new one is read again under the lock.
    """
    space = workspace()
    cursor = space.buffers.cursor
    cursor[:] = 0
    cursor[kernels.BACK] = len(job.text)
    words = frozen(job)
    count = len(job.status)
    bounds = limits.max_document_nodes, min(limits.max_event_depth, kernels.MOST_LEVELS)
    while True:
        paths.set_cursor(space)
        if kernels.read(paths.state.words, space.words, words, count, False, *bounds) == kernels.DONE:
            nodes, front, back, *_, unread, _ = cursor.tolist()
            return nodes, front, back, unread
        stop = int(cursor[kernels.DOCUMENT]) + 1
        with paths.lock:
            while True:
                paths.set_cursor(space)
                answer = kernels.read(paths.state.words, space.words, words, stop, True, *bounds)
                paths.publish(space)
                if answer == kernels.DONE:
                    break
                paths.grow()


def _completed(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    owner: NDArray[np.int32],
    paths: TagPaths,
    read: _Read,
    limits: Limits,
    is_text: bool,
) -> Documents:
    """The documents that the kernel read, merged in order with the others, which expat reads here."""
    parts: list[ParsedNodes] = []
    firsts: list[NDArray[np.int64]] = []
    is_read = np.ones(len(owner), np.bool_)
    errors: list[tuple[int, HarkenError]] = []
    done = 0

    def add_until(document: int) -> None:
        if done < document:
            parts.append(_part(read, done, document))
            firsts.append(read.first[done:document] - read.first[done])

    for document in np.flatnonzero(read.status).tolist():
        add_until(document)
        done = document + 1
        begin, end = int(offsets[document]), int(offsets[document + 1])
        try:
            check_size(end - begin, limits)
            parts.append(read_by_expat(data[begin:end].tobytes(), paths, limits, is_text=is_text))
            firsts.append(np.zeros(1, np.int64))
        except HarkenError as error:
            is_read[document] = False
            errors.append((int(owner[document]), error))
    add_until(len(owner))
    return _joined(paths, owner[is_read], parts, firsts, tuple(errors))


def _part(read: _Read, begin: int, end: int) -> ParsedNodes:
    """The nodes of consecutive documents. They share the text of all documents."""
    path, parent, starts, ends, text = read.nodes
    first, last = int(read.first[begin]), int(read.first[end])
    nodes = slice(first, last)
    parents = parent[nodes]
    return ParsedNodes(
        path[nodes], np.where(parents < 0, parents, parents - np.int32(first)), starts[nodes], ends[nodes], text
    )


def _joined(
    paths: TagPaths,
    owner: NDArray[np.int32],
    parts: Sequence[ParsedNodes],
    firsts: Sequence[NDArray[np.int64]],
    errors: tuple[tuple[int, HarkenError], ...],
) -> Documents:
    """Concatenate parts. A text that several parts share is included once."""
    texts: list[NDArray[np.uint8]] = []
    places: dict[int, int] = {}
    size = nodes = 0
    begins, ends, parents, starts = [], [], [], []
    for part, first in zip(parts, firsts, strict=True):
        if id(part.text) not in places:
            places[id(part.text)] = size
            texts.append(part.text)
            size += len(part.text)
        shift = places[id(part.text)]
        begins.append(part.begin + shift)
        ends.append(part.end + shift)
        parents.append(np.where(part.parent < 0, part.parent, part.parent + np.int32(nodes)))
        starts.append(first + nodes)
        nodes += len(part.path)
    starts.append(np.array([nodes], np.int64))
    return Documents(
        paths,
        owner,
        np.concatenate(starts),
        np.concatenate([np.zeros(0, np.int32), *(part.path for part in parts)]),
        np.concatenate([np.zeros(0, np.int32), *parents]),
        np.concatenate([np.zeros(0, np.int64), *begins]),
        np.concatenate([np.zeros(0, np.int64), *ends]),
        np.concatenate([np.zeros(0, np.uint8), *texts]),
        errors,
    )


def numbers(documents: Documents, wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """number(string-value), as XPath 1.0 defines it, of nodes whose tag path is wanted; NaN for all others."""
    values = np.empty(len(documents.path), np.float64)
    path, begin, end, text = documents.path, documents.begin, documents.end, documents.text
    if kernels.read_numbers(path, begin, end, text, wanted, values):
        for node in np.flatnonzero(np.isinf(values)).tolist():
            values[node] = float(text[begin[node] : end[node]].tobytes())
    return values
