"""One XPath expression on one document, for verification."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from harken.events.xml.documents import read_documents
from harken.language.xpath.parser import parse_accepted
from harken.limits import Limits
from harken.matchers.documents.matcher import XPathMatcher

_FIRST = np.zeros(1, np.int32)
# The document was within the limits when its event was read.
_NO_LIMITS = Limits(max_event_bytes=sys.maxsize, max_event_depth=sys.maxsize, max_document_nodes=2**31 - 2)


@lru_cache(maxsize=4_096)
def evaluator(text: str) -> Callable[[str], bool]:
    """A test of documents. It raises DecodeError for an unreadable document, and LimitError."""
    matcher = XPathMatcher()
    matcher.add_expressions({0: parse_accepted(text)})

    def holds(document: str) -> bool:
        data = document.encode()
        offsets = np.array([0, len(data)], np.int64)
        read = read_documents(np.frombuffer(data, np.uint8), offsets, _FIRST, _NO_LIMITS, is_text=True)
        for _, error in read.errors:
            raise error
        matches = matcher.find(read)
        for *_, failure in matches.errors:
            raise failure
        return bool(len(matches.numbers))

    return holds
