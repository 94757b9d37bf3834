"""The plan of an XPath text, for the index of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from harken.language.capabilities import Capability
from harken.language.xpath.ast import Expression
from harken.schema.paths import DOCUMENT


@dataclass(slots=True)
class DocumentPlan:
    """An expression on the document of an event. Immutable by convention."""

    expression: Expression
    kind: ClassVar[str] = "documents"

    @property
    def always(self) -> bool:
        """Never: an event without a document does not match."""
        return False

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset()

    def names(self) -> set[str]:
        return set(DOCUMENT)
