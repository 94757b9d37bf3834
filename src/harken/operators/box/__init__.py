"""Operators in the box: regions and distances, text, tables of reference data, ontologies.

The libraries that they need come with `harken[operators]`. Each is imported when its operator is made or first called.
"""

from harken.operators.box.ontology import ontology
from harken.operators.box.spatial import spatial
from harken.operators.box.table_operators import table_operator
from harken.operators.box.text_operators import matches, similar, similarity

__all__ = ["matches", "ontology", "similar", "similarity", "spatial", "table_operator"]
