"""The NASA workload of XML publish/subscribe on a relational database (Tian et al., section 5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pyarrow as pa

from harken_lab.workloads.workload import WrittenModel
from harken_lab.workloads.xml_collections import COLLECTIONS, DATA, has_nasa
from harken_lab.workloads.xpaths import Tags, XPaths, XPathShape

AT_HAND = "at hand"


@dataclass(frozen=True)
class Nasa(XPathShape, WrittenModel):
    """Documents of a collection, and branching XPath subscriptions drawn from all of its documents."""

    language: ClassVar[str] = "xpath"

    documents: str = AT_HAND
    """`nasa`, or `records`, which are made up. The default is `nasa` if that data set is at hand, else `records`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.documents == AT_HAND:
            object.__setattr__(self, "documents", "nasa" if has_nasa() else "records")
        if self.documents not in COLLECTIONS:
            raise ValueError(f"`documents` is one of {', '.join(COLLECTIONS)}, not {self.documents}")
        if self.documents == "nasa" and not has_nasa():
            raise ValueError(f"there is no nasa.xml.xz in the folder that the environment variable {DATA} names")

    def collection(self) -> tuple[bytes, ...]:
        """All documents, each once."""
        return COLLECTIONS[self.documents]()

    def xpaths(self) -> XPaths:
        """The generator of subscriptions."""
        return XPaths(_tags(self.documents, self.longest), self)

    def texts(self, rows: int, rng: np.random.Generator) -> Iterator[str]:
        return self.xpaths().texts(rows, rng)

    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        """Documents in random order. Each occurs once before any occurs again."""
        collection = self.collection()
        turns = [rng.permutation(len(collection)) for _ in range(-(-rows // len(collection)))]
        chosen = np.concatenate([np.empty(0, np.int64), *turns])[:rows]
        return pa.table({"document": pa.array([collection[each].decode() for each in chosen.tolist()], pa.string())})


@lru_cache(2)
def _tags(documents: str, longest: int) -> Tags:
    return Tags(COLLECTIONS[documents](), longest)
