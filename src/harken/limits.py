"""The named limits. An input that exceeds one is rejected with a `LimitError` that names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Every limit on input. Pass your own to `harken.Engine(limits=…)` to change them."""

    max_text_length: int = 1_048_576
    """Characters in the text of a subscription."""
    max_nesting: int = 100
    """Levels of nested AND, OR and NOT."""
    max_values: int = 10_000
    """Constants in the text of a subscription."""
    max_xpath_steps: int = 60
    """Steps from the root to any node of an XPath expression. At most 1,000."""
    max_xpath_visits: int = 10_000_000
    """Nodes that one XPath expression visits in one document, if the index alone cannot decide it."""
    max_conjunctions: int = 1_024
    """Conjunctions in the normal form of a subscription."""
    max_bindings: int = 200_000
    """Tests of interdependent array elements, for one subscription on one event."""
    max_event_bytes: int = 16_777_216
    """Bytes of one encoded event."""
    max_event_depth: int = 64
    """Levels of nested objects and arrays in an event."""
    max_event_values: int = 100_000
    """Values in one event. An array counts, and so does each of its elements, including nulls."""
    max_document_nodes: int = 1_000_000
    """Nodes of one XML document: elements, attributes and texts."""
    max_operator_bindings: int = 100_000
    """Bindings that one call of an operator returns for the variables of one predicate on one event."""
    max_matrix_bytes: int = 1 << 30
    """Bytes of the matrix of predicates and subscriptions in `counting_bytes` and `counting_bits`."""
    max_table_values: int = 1 << 17
    """Entries of a predicate index's table, 32 bytes each: one per integer from the least to the greatest constant."""
    max_tree_nodes: int = 10_000_000
    """Nodes of the trees of `gough` and `matching_tree`, and whatever else grows with combinations of predicates."""


DEFAULT_LIMITS = Limits()
