"""What a plan decides: which rows the predicates of a conjunction become, and which query finds it by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from harken.databases.connection import Connection
from harken_lab.plans.xml.chains import StoredPredicate
from harken_lab.plans.xml.cost import CostParameters, PlanCost
from harken_lab.plans.xml.queries import PlanQuery


class PlacedRow(NamedTuple):
    """A predicate as stored, and the id of the branching points on its path."""

    predicate: StoredPredicate
    points: int


class StoredConjunction(NamedTuple):
    """A conjunction of a subscription: its id in the tables, and its predicates in the order of the plan."""

    sid: int
    placed: list[PlacedRow]


class PredicateTables(Protocol):
    """The tables of a plan that hold predicates."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""

    @property
    def query(self) -> PlanQuery:
        """The query for conjunctions whose predicates all hold."""

    @property
    def used_paths(self) -> str:
        """The query for the linear paths that predicates have."""

    def create(self, database: Connection) -> None:
        """Create empty tables."""

    def arranged(self, database: Connection, conjunctions: list[StoredConjunction]) -> list[StoredConjunction]:
        """Conjunctions with the order and the additions of this plan. Their most selective predicates come first."""

    def insert(self, database: Connection, conjunctions: Sequence[StoredConjunction]) -> None:
        """Insert the rows of conjunctions."""

    def delete(self, database: Connection, sids: Sequence[int]) -> None:
        """Delete the rows of conjunctions."""

    def cost(self, given: CostParameters) -> PlanCost:
        """The cost of one message, by the paper's metric."""
