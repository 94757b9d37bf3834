"""One XPath expression on one document: for what is verified one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from harken.events.xml.documents import read_documents
from harken.language.xpath.parser import parse
from harken.limits import DEFAULT_LIMITS
from harken.matchers.documents.matcher import XPathMatcher

_FIRST = np.zeros(1, np.int32)


@lru_cache(maxsize=4_096)
def evaluator(text: str) -> Callable[[str], bool]:
    """A test of documents. It raises DecodeError or LimitError for one that cannot be read."""
    matcher = XPathMatcher()
    matcher.add_expressions({0: parse(text)})

    def holds(document: str) -> bool:
        data = document.encode()
        offsets = np.array([0, len(data)], np.int64)
        read = read_documents(np.frombuffer(data, np.uint8), offsets, _FIRST, DEFAULT_LIMITS, is_text=True)
        for _, error in read.errors:
            raise error
        return bool(len(matcher.find(read)[1]))

    return holds
