"""Saving trees and learnt frequencies as an array file. Loading rebuilds the index from them, in a fraction of the time
of parsing the texts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harken.codes.conjunctions import CodedPredicates, Conjunctions, code
from harken.codes.flat import Flat
from harken.codes.saved_arrays import SavedArrays
from harken.errors import OutdatedError, SegmentError
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.programs.index import LearntFrequencies
from harken.matchers.programs.matcher import ProgramMatcher
from harken.matchers.programs.patterns import PatternTable
from harken.matchers.programs.program_trees import Trees
from harken.matchers.roles import Write
from harken.schema.paths import Path
from harken.versions.array_file import ArrayFile

PROGRAMS = "programs"
LAYOUT = 2
"""Increment when the meaning of the saved arrays changes."""
_ARRAYS = ("numbers", "starts", "nodes", "ends", "leaf_kind", "leaf_of")
_PATTERNS = ("column", "kind", "globs", "glob_at", "needle", "needle_length")


def save_trees(trees: Trees, learnt: LearntFrequencies, write: Write) -> None:
    """Write trees, and the frequencies learnt by their index."""
    coded = code(np.arange(len(trees.leaf_kind)), trees.columns)
    saved = SavedArrays(
        {"kind": PROGRAMS, "layout": LAYOUT, "texts": trees.texts, "sets": trees.sets, "events": learnt.events}
    )
    saved.put("trees", **{name: getattr(trees, name) for name in _ARRAYS})
    saved.put("patterns", **{name: getattr(trees.patterns, name) for name in _PATTERNS})
    saved.put("learnt", codes=learnt.codes, hits=learnt.hits)
    saved.put_columns("columns", tuple(coded.columns), tuple(coded.dictionaries))
    for place, predicates in enumerate(coded.predicates):
        saved.put(f"intervals/{place}", rows=predicates.rows, low=predicates.low, high=predicates.high)
    write(PROGRAMS, saved.arrays, saved.meta)


def load_programs(files: Mapping[str, ArrayFile], limits: Limits = DEFAULT_LIMITS) -> ProgramMatcher | None:
    """The saved matcher, or None if none was saved. Raises OutdatedError."""
    file = files.get(PROGRAMS)
    if file is None:
        return None
    layout = file.meta.get("layout", 0)
    if layout != LAYOUT:
        message = f"the programs were saved in layout {layout}, and this Harken reads layout {LAYOUT}"
        raise (OutdatedError if layout < LAYOUT else SegmentError)(message, hint="save or publish the engine again")
    saved = SavedArrays(dict(file.meta), dict(file.arrays))
    columns, dictionaries = saved.columns("columns")
    predicates = []
    for place, (column, dictionary) in enumerate(zip(columns, dictionaries, strict=True)):
        rows, low, high = (saved.arrays[f"intervals/{place}/{name}"] for name in ("rows", "low", "high"))
        predicates.append(CodedPredicates(column, dictionary, rows, low, high))
    arrays = {name: saved.arrays[f"trees/{name}"] for name in _ARRAYS}
    leaves = len(arrays["leaf_kind"])
    coded = Conjunctions(np.arange(leaves, dtype=np.int32), tuple(predicates), np.zeros(leaves, np.bool_))
    trees = Trees(
        **arrays,
        columns=Flat.of_codes(coded, np.zeros(leaves, np.bool_)).columns,
        texts=tuple(_path(each) for each in saved.meta["texts"]),
        sets=tuple(_path(each) for each in saved.meta["sets"]),
        patterns=PatternTable(**{name: saved.arrays[f"patterns/{name}"] for name in _PATTERNS}),
    )
    learnt = LearntFrequencies(saved.meta["events"], saved.arrays["learnt/codes"], saved.arrays["learnt/hits"])
    return ProgramMatcher(limits).made_of(trees, learnt=learnt)


def _path(keys: list[str]) -> Path:
    return tuple(keys)
