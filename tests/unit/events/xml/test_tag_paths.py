"""Tag paths: numbers that stay, exact names, growth, threads, and a fresh start when there are too many."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from harken.events.xml import TagPaths, current_tag_paths, read_document, read_documents, tag_paths
from harken.events.xml.tag_paths import _FIRST_PATHS
from harken.limits import Limits


def documents_of(pieces: list[bytes]):
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in pieces])]).astype(np.int64)
    return read_documents(np.frombuffer(b"".join(pieces), np.uint8), offsets, np.arange(len(pieces), dtype=np.int32))


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tag_paths, "_current", None)


def test_a_path_has_one_number() -> None:
    paths = TagPaths()
    assert (len(paths), paths.parent.tolist(), paths.kind.tolist(), paths.name(0)) == (1, [-1], [0], b"")
    a = paths.number(0, 1, b"a")
    assert paths.number(0, 1, b"a") == a == 1
    others = [paths.number(a, 1, b"a"), paths.number(a, 2, b"a"), paths.number(a, 3, b""), paths.number(0, 1, b"b")]
    assert others == [2, 3, 4, 5]
    assert paths.parent.tolist() == [-1, 0, 1, 1, 1, 0]
    assert paths.kind.tolist() == [0, 1, 1, 2, 3, 1]
    assert [paths.name(each) for each in range(6)] == [b"", b"a", b"a", b"a", b"", b"b"]
    with pytest.raises(IndexError):
        paths.name(6)


def test_numbers_stay_while_it_grows() -> None:
    paths = TagPaths()
    names = [f"{{urn:x}}n{each}".encode() * (1 + each % 3) for each in range(5 * _FIRST_PATHS)]
    numbers = [paths.number(0, 1, name) for name in names]
    assert numbers == list(range(1, len(names) + 1))
    paths._numbers.clear()  # now by the table alone
    assert [paths.number(0, 1, name) for name in names] == numbers
    assert [paths.name(each) for each in numbers] == names


def test_a_long_name() -> None:
    paths = TagPaths()
    name = b"n" * 200_000
    assert paths.name(paths.number(0, 1, name)) == name


def test_kernel_and_expat_share_numbers(fresh) -> None:
    by_expat = read_document("<a b='1'><c>é</c><é/></a>".encode())
    by_kernel = read_document(b"<a b='1'><c>e</c><d/></a>")
    assert by_kernel.paths is by_expat.paths
    assert by_kernel.path[:5].tolist() == by_expat.path[:5].tolist()


def test_a_document_with_very_many_new_names(fresh) -> None:
    names = [f"n{each}" for each in range(20_000)]
    document = "<r>" + "".join(f"<{name}/>" for name in names) + "</r>"
    read = read_document(document.encode())
    assert [read.paths.name(path).decode() for path in read.path[2:].tolist()] == names


def test_a_new_instance_when_it_is_full(fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tag_paths, "MOST_PATHS", 100)
    before = current_tag_paths()
    read = read_document(b"<r>" + b"".join(b"<n%d/>" % each for each in range(200)) + b"</r>")
    assert read.paths is before, "a batch has one"
    assert not read.errors
    after = current_tag_paths()
    assert after is not before
    assert len(after) == 1
    assert before.name(int(read.path[-1])) == b"n199", "and what was read stays"


def test_names_of_many_bytes_fill_it_too(fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tag_paths, "MOST_NAME_BYTES", 1_000)
    before = current_tag_paths()
    read_document(b"<" + b"n" * 1_001 + b"/>")
    assert current_tag_paths() is not before


def test_random_names_do_not_fill_the_memory(fresh) -> None:
    most = 0
    for turn in range(8):
        pieces = [
            b"<r>" + b"".join(b"<x%d_%d_%d/>" % (turn, each, n) for n in range(100)) + b"</r>" for each in range(400)
        ]
        most = max(most, len(documents_of(pieces).paths))
    assert most < tag_paths.MOST_PATHS + 100_000


def test_threads_that_read_new_documents_at_once(fresh) -> None:
    shared = [f"s{each}" for each in range(300)]
    faults: list[BaseException] = []
    seen: list[dict[bytes, int]] = [{} for _ in range(4)]
    gate = threading.Barrier(4)

    def work(thread: int) -> None:
        try:
            gate.wait()
            for turn in range(300):
                names = [
                    shared[turn],
                    f"t{thread}_{turn}",
                    shared[(turn * 7) % 300],
                    f"é{turn % 10}" if turn % 20 == 0 else "e",
                ]
                read = read_document(
                    ("<r>" + "".join(f"<{name} a='{name}'>{name}</{name}>" for name in names) + "</r>").encode()
                )
                paths = read.paths
                assert read.path.max() < len(paths)
                for at, path in enumerate(read.path.tolist()):
                    parent = int(read.parent[at])
                    assert paths.parent[path] == (read.path[parent] if at else -1)
                    value = read.text[read.begin[at] : read.end[at]].tobytes()
                    if paths.kind[path] == 1 and parent > 0:
                        assert paths.name(path) == value
                        assert seen[thread].setdefault(value, path) == path
                    elif paths.kind[path] == 2:
                        assert paths.name(int(paths.parent[path])) == value
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(each,)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    for name in shared:
        assert len({each[name.encode()] for each in seen}) == 1, "all threads have one number for a path"


def test_the_limits_know_documents() -> None:
    assert Limits().max_document_nodes == 1_000_000
