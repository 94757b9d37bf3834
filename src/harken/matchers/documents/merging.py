"""Translate programs into another vocabulary: a compacted one, or the one of another engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harken.kernels.documents import FIRST_KEY, NUMERIC, operands, translate
from harken.matchers.documents.index import ValueFrequencies
from harken.matchers.documents.program_writing import NodePrograms
from harken.matchers.documents.vocabulary import GrowingVocabulary


def compacted(
    programs: NodePrograms, vocabulary: GrowingVocabulary, learnt: ValueFrequencies
) -> tuple[NodePrograms, GrowingVocabulary, ValueFrequencies]:
    """The same programs in a vocabulary without unused entries, with the frequencies of the remaining entries."""
    new = GrowingVocabulary()
    moved, paths, values, keys = _translated(programs, vocabulary, new)
    del paths
    return moved, new, ValueFrequencies(learnt.documents, _carried(learnt.values, values, new.values),
                                   _carried(learnt.keys, keys, new.key_count))  # fmt: skip


def translated(programs: NodePrograms, vocabulary: GrowingVocabulary, into: GrowingVocabulary) -> NodePrograms:
    """The same programs in another vocabulary, which gets the entries that it lacks."""
    return _translated(programs, vocabulary, into)[0]


def _translated(
    programs: NodePrograms, source: GrowingVocabulary, target: GrowingVocabulary
) -> tuple[NodePrograms, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The programs, and the new numbers of paths, values and keys by the old ones; -1 for unused ones."""
    used = source.used()
    is_path, is_value = np.zeros(source.paths, np.bool_), np.zeros(source.values, np.bool_)
    is_number = np.zeros(len(used.numbers), np.bool_)
    operands(programs.code, is_path, is_value, is_number)
    paths, keys = _move_paths(source, target, is_path)
    wanted = np.flatnonzero(is_value)
    values = np.full(source.values, -1, np.int64)
    if len(wanted):
        values[wanted] = _move_values(source, target, wanted, keys)
    chosen = np.flatnonzero(is_number)
    numbers = np.full(len(used.numbers), -1, np.int64)
    numbers[chosen] = target.add_numbers(used.numbers[chosen])
    code = programs.code.copy()
    translate(code, paths, values, numbers)
    return replace(programs, code=code), paths, values, keys


def _move_paths(
    source: GrowingVocabulary, target: GrowingVocabulary, wanted: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The new numbers of paths and of keys. The ways in which keys are looked up are copied."""
    used = source.used()
    needed = wanted.copy()
    for path in range(len(needed) - 1, 0, -1):  # parents stand before their children
        if needed[path]:
            needed[used.path_parent[path]] = True
    names = [b"", *(name for _, name in source.names)]
    paths, keys = np.full(len(needed), -1, np.int64), np.full(source.key_count, -1, np.int64)
    paths[0] = 0
    keys[:FIRST_KEY] = np.arange(FIRST_KEY)
    for path in np.flatnonzero(needed).tolist():
        if path:
            number = int(used.path_name[path])
            kind, above = int(used.path_kind[path]), int(paths[used.path_parent[path]])
            paths[path] = target.step(above, bool(used.path_descends[path]), kind, names[number] if number else None)
        if wanted[path]:
            key = int(used.path_key[path])
            keys[key] = int(target.arrays.path_key[paths[path]])
            target.use(int(paths[path]), int(used.key_asked[key]), int(used.key_longest[key]))
    return paths, keys


def _move_values(
    source: GrowingVocabulary, target: GrowingVocabulary, wanted: NDArray[np.int64], keys: NDArray[np.int64]
) -> NDArray[np.int32]:
    used = source.used()
    packed, begin = used.values[wanted, 0], used.values[wanted, 1]
    length = packed & 0xFFFFFFFF
    at = np.zeros(len(wanted) + 1, np.int64)
    np.cumsum(length, out=at[1:])
    text = used.texts[np.repeat(begin - at[:-1], length) + np.arange(int(at[-1]))]
    old = packed >> 32
    new = keys[old & ~NUMERIC] | (old & NUMERIC)
    return target.intern_all(text, at, new.astype(np.int32))


def _carried(counts: NDArray[np.int64], places: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The counts at their new places; 0 elsewhere."""
    moved = np.zeros(size, np.int64)
    kept = np.flatnonzero(places[: len(counts)] >= 0)
    moved[places[kept]] = counts[kept]
    return moved
