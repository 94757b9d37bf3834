"""Saving the index of XPath subscriptions as an array file, which is mapped into memory when loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.codes.saved_arrays import SavedArrays
from harken.errors import OutdatedError, SegmentError
from harken.kernels.documents import Postings, Vocabulary
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.documents.index import PostedIndex, ValueFrequencies
from harken.matchers.documents.matcher import XPathMatcher
from harken.matchers.documents.node_conditions import NodeCondition
from harken.matchers.documents.program_writing import NodePrograms
from harken.matchers.documents.vocabulary import GrowingVocabulary, Name
from harken.matchers.roles import Write
from harken.versions.array_file import ArrayFile

DOCUMENTS = "documents"
LAYOUT = 2
"""Increment when the meaning of the saved arrays changes."""


def save_index(index: PostedIndex, vocabulary: GrowingVocabulary, learnt: ValueFrequencies, write: Write) -> None:
    """Write an index without removed subscriptions, and the frequencies learnt from documents."""
    meta = {
        "kind": DOCUMENTS,
        "layout": LAYOUT,
        "documents": learnt.documents,
        "expected": index.expected,
        "names": _plain(vocabulary.names),
        "keys": _plain(vocabulary.keys),
    }
    saved = SavedArrays(meta)
    saved.put_named("vocabulary", vocabulary.used())
    saved.put_named("postings", index.postings)
    saved.put("programs", numbers=index.programs.numbers)
    saved.put("conditions", **_saved_conditions(index.programs.conditions))
    saved.put("learnt", values=learnt.values, keys=learnt.keys)
    write(DOCUMENTS, saved.arrays, saved.meta)


def load_documents(files: Mapping[str, ArrayFile], limits: Limits = DEFAULT_LIMITS) -> XPathMatcher | None:
    """The saved matcher, or None if none was saved. Raises OutdatedError."""
    file = files.get(DOCUMENTS)
    if file is None:
        return None
    layout = file.meta.get("layout", 0)
    if layout != LAYOUT:
        message = f"the index of documents was saved in layout {layout}, and this Harken reads layout {LAYOUT}"
        raise (OutdatedError if layout < LAYOUT else SegmentError)(message, hint="save or publish the engine again")
    saved = SavedArrays(dict(file.meta), dict(file.arrays))
    postings: Postings = saved.named("postings", Postings)
    arrays: Vocabulary = saved.named("vocabulary", Vocabulary)
    vocabulary = GrowingVocabulary(arrays, _names(saved.meta["names"]), _names(saved.meta["keys"]))
    conditions = _conditions(*(saved.arrays[f"conditions/{name}"] for name in ("numbers", "ends", "texts")))
    programs = NodePrograms(saved.arrays["programs/numbers"], postings.starts, postings.code, conditions)
    learnt = ValueFrequencies(saved.meta["documents"], saved.arrays["learnt/values"], saved.arrays["learnt/keys"])
    index = PostedIndex(programs, postings, saved.meta["expected"])
    return XPathMatcher(limits).holding(index, vocabulary, learnt)


def _plain(names: Mapping[Name, int]) -> list[list[object]]:
    return [[kind, name.decode()] for kind, name in names]


def _names(plain: list[tuple[int, str]]) -> list[Name]:
    return [(kind, name.encode()) for kind, name in plain]


def _saved_conditions(conditions: Mapping[int, NodeCondition]) -> dict[str, NDArray[Any]]:
    texts = [condition.text.encode() for condition in conditions.values()]
    ends = np.cumsum(list(map(len, texts)), dtype=np.int64)
    joined = np.frombuffer(bytearray(b"".join(texts)), np.uint8)
    return {"numbers": np.array(list(conditions), np.int32), "ends": ends, "texts": joined}


def _conditions(
    numbers: NDArray[np.int32], ends: NDArray[np.int64], texts: NDArray[np.uint8]
) -> dict[int, NodeCondition]:
    """The conditions by number. They are parsed when they are first needed."""
    text = texts.tobytes()
    bounds = zip([0, *ends.tolist()], ends.tolist(), strict=False)
    pairs = zip(numbers.tolist(), bounds, strict=True)
    return {number: NodeCondition(text[begin:end].decode()) for number, (begin, end) in pairs}
