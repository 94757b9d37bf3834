"""What the tests of XML share: documents as plain nodes, and the records of NASA."""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from harken.events.xml import Documents, current_tag_paths
from harken.events.xml.documents import _by_kernel
from harken.events.xml.expat import read_by_expat
from harken.events.xml.splitting import split
from harken.limits import DEFAULT_LIMITS, Limits


class Node(NamedTuple):
    path: int
    parent: int
    value: bytes


def plain_nodes(path: Any, parent: Any, begin: Any, end: Any, text: Any, first: int, last: int) -> list[Node]:
    """The nodes of one document, with parents counted from its root."""
    data = text.tobytes()
    return [
        Node(int(path[at]), max(-1, int(parent[at]) - first), data[begin[at] : end[at]]) for at in range(first, last)
    ]


def joined(pieces: list[bytes]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Documents as `read_documents` takes them."""
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in pieces])]).astype(np.int64)
    return np.frombuffer(b"".join(pieces), np.uint8), offsets, np.arange(len(pieces), dtype=np.int32)


@pytest.fixture(scope="session")
def by_kernel() -> Callable[..., list[list[Node] | None]]:
    """Reads documents by the kernel alone: None for each that it is not sure of."""

    def read(pieces: list[bytes], limits: Limits = DEFAULT_LIMITS) -> list[list[Node] | None]:
        data, offsets, _ = joined(pieces)
        read = _by_kernel(data, offsets, current_tag_paths(), limits)
        path, parent, begin, end, text = (each.tolist() for each in read.nodes)
        data_of = bytes(text)
        answers: list[list[Node] | None] = []
        for place, (first, last) in enumerate(zip(read.first.tolist(), read.first[1:].tolist(), strict=False)):
            if read.status[place]:
                assert first == last
                answers.append(None)
            else:
                answers.append(
                    [
                        Node(path[at], max(-1, parent[at] - first), data_of[begin[at] : end[at]])
                        for at in range(first, last)
                    ]
                )
        return answers

    return read


@pytest.fixture(scope="session")
def by_expat() -> Callable[..., list[Node]]:
    """Reads one document by expat alone. Raises what it raises."""

    def read(piece: bytes, limits: Limits = DEFAULT_LIMITS) -> list[Node]:
        nodes = read_by_expat(piece, current_tag_paths(), limits)
        return plain_nodes(*nodes, 0, len(nodes.path))

    return read


@pytest.fixture(scope="session")
def shown() -> Callable[[Documents], list[list[tuple[str, int, str]]]]:
    """Documents as the way to each node (`/a/@b`, `/a/text()`), its parent and its string-value."""

    def show(documents: Documents) -> list[list[tuple[str, int, str]]]:
        paths = documents.paths

        def way(path: int) -> str:
            if path == 0:
                return ""
            kind = paths.kind[path]
            name = "text()" if kind == 3 else ("@" if kind == 2 else "") + paths.name(path).decode()
            return way(int(paths.parent[path])) + "/" + name

        return [
            [
                (way(node.path), node.parent, node.value.decode())
                for node in plain_nodes(
                    documents.path,
                    documents.parent,
                    documents.begin,
                    documents.end,
                    documents.text,
                    int(documents.first[place]),
                    int(documents.first[place + 1]),
                )
            ]
            for place in range(len(documents))
        ]

    return show


@pytest.fixture(scope="session")
def nasa() -> list[bytes]:
    """The records of NASA's data set."""
    if "HARKEN_DATA" not in os.environ:
        pytest.skip("HARKEN_DATA is not set")
    with lzma.open(Path(os.environ["HARKEN_DATA"]) / "nasa.xml.xz") as stream:
        return [piece.data for piece in split(stream, "dataset")]
