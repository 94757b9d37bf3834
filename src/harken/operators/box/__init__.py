"""Operators in the box, on real libraries: where, what text, which row of a table, what kind of thing.

The libraries come with `harken[operators]`, and each is imported when its operator is made or first called.
"""

from harken.operators.box.ontology import ontology
from harken.operators.box.spatial import spatial
from harken.operators.box.table_operators import table_operator
from harken.operators.box.text_operators import matches, similar, similarity

__all__ = ["matches", "ontology", "similar", "similarity", "spatial", "table_operator"]
