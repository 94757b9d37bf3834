"""The default: codes, keyed clusters, bit-sliced pools, and a cost model that chooses among them."""

from __future__ import annotations

from harken.matchers.columnar.matcher import Columnar

__all__ = ["Columnar"]
