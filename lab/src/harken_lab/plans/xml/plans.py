"""XPath in a database by the paper's plans: recursive, with sharing, with buckets for inequalities, and unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from harken.databases.connection import Connection
from harken.errors import CapabilityError
from harken.limits import DEFAULT_LIMITS, Limits
from harken.relational.table_state import TableState
from harken_lab.plans.xml import buckets, chains, queries, unrolled
from harken_lab.plans.xml.buckets import Buckets, create_buckets
from harken_lab.plans.xml.chains import START, Chain, Chains
from harken_lab.plans.xml.cost import CostParameters, PlanCost, crossed_cost, recursive_cost, unrolled_cost
from harken_lab.plans.xml.path_predicates import NUMERIC
from harken_lab.plans.xml.plan_matcher import RelationalXPath
from harken_lab.plans.xml.plan_tables import PlacedRow, StoredConjunction
from harken_lab.plans.xml.queries import PlanQuery
from harken_lab.plans.xml.unrolled import UnrolledRows

LEVELS = 5
"""Predicates in a row of the unrolled table. The paper calls 5 or 6 reasonable."""
_MOST_LEVELS = 64


class ChainedRows:
    """Chains in Query_Predicate, one for each conjunction."""

    tables: ClassVar[tuple[str, ...]] = (chains.TABLE,)
    shares: ClassVar[bool] = False
    used_paths: ClassVar[str] = f"SELECT linearpath_id FROM {chains.TABLE}"

    def __init__(self, state: TableState) -> None:
        self._chains = Chains(state, shares=self.shares)
        self.query: PlanQuery = queries.recursive()

    def create(self, database: Connection) -> None:
        self._chains.create(database)

    def arranged(self, database: Connection, conjunctions: list[StoredConjunction]) -> list[StoredConjunction]:
        return conjunctions

    def insert(self, database: Connection, conjunctions: Sequence[StoredConjunction]) -> None:
        rows = [Chain(START, sid, [each.predicate for each in placed]) for sid, placed in conjunctions]
        self._chains.insert(database, rows)

    def delete(self, database: Connection, sids: Sequence[int]) -> None:
        self._chains.delete(database, sids)

    def cost(self, given: CostParameters) -> PlanCost:
        return recursive_cost(given)


class SharedChains(ChainedRows):
    """Chains in Query_Predicate. Subscriptions that begin with the same predicates share rows."""

    shares: ClassVar[bool] = True


class BucketedChains(SharedChains):
    """Shared chains in which the first inequality is replaced by that of its bucket, and itself comes last."""

    tables: ClassVar[tuple[str, ...]] = (chains.TABLE, buckets.TABLE)

    def create(self, database: Connection) -> None:
        super().create(database)
        create_buckets(database)

    def arranged(self, database: Connection, conjunctions: list[StoredConjunction]) -> list[StoredConjunction]:
        known = Buckets.of(database, [each.predicate for _, placed in conjunctions for each in placed])
        return [StoredConjunction(sid, _bucketed(known, placed)) for sid, placed in conjunctions]


def _bucketed(known: Buckets, placed: list[PlacedRow]) -> list[PlacedRow]:
    # Not the last one: the inequality of its bucket would directly precede it.
    for place, each in enumerate(placed[:-1]):
        wider = known.wider(each.predicate)
        if wider is not None:
            return [*placed[:place], PlacedRow(wider, 0), *placed[place + 1 :], each]
    return placed


class Unrolled:
    """Rows of Predicate_Unroll, and chains for the predicates that do not fit into a row."""

    tables: ClassVar[tuple[str, ...]] = (unrolled.TABLE, chains.TABLE)

    def __init__(self, state: TableState, levels: int) -> None:
        self._rows = UnrolledRows(state, levels)
        self._levels = levels
        places = [f"SELECT path{level} FROM {unrolled.TABLE}" for level in range(1, levels + 1)]
        self.used_paths = " UNION ".join([ChainedRows.used_paths, *places])
        self.query = self._query()

    def _query(self) -> PlanQuery:
        return queries.unrolled(self._levels)

    def create(self, database: Connection) -> None:
        self._rows.create(database)

    def arranged(self, database: Connection, conjunctions: list[StoredConjunction]) -> list[StoredConjunction]:
        return conjunctions

    def insert(self, database: Connection, conjunctions: Sequence[StoredConjunction]) -> None:
        rows = [Chain(START, sid, [each.predicate for each in placed]) for sid, placed in conjunctions]
        self._rows.insert(database, rows)

    def delete(self, database: Connection, sids: Sequence[int]) -> None:
        self._rows.delete(database, sids)

    def cost(self, given: CostParameters) -> PlanCost:
        return unrolled_cost(given, self._levels)


class Crossed(Unrolled):
    """The same rows, looked up by pairs of values."""

    def _query(self) -> PlanQuery:
        return queries.crossed(self._levels)

    def cost(self, given: CostParameters) -> PlanCost:
        return crossed_cost(given, self._levels)


class XPathShared(RelationalXPath):
    """In a database: chains of predicates, which a recursive query follows."""

    def __init__(
        self, limits: Limits = DEFAULT_LIMITS, database: str = "duckdb", strings: str = NUMERIC, shared: bool = True
    ) -> None:
        """Without `shared`, every subscription has a chain of its own: the paper's first plan, before section 4.2."""
        self._shared = _checked("shared", shared)
        super().__init__(limits, database, strings)

    def plan(self) -> ChainedRows:
        return SharedChains(self.state) if self._shared else ChainedRows(self.state)

    def settings(self) -> tuple[object, ...]:
        return (*super().settings(), self._shared)


class XPathBuckets(RelationalXPath):
    """In a database: chains of predicates, with buckets for inequalities."""

    def plan(self) -> ChainedRows:
        return BucketedChains(self.state)


class XPathUnrolled(RelationalXPath):
    """In a database: rows of `k` predicates, joined without recursion."""

    def __init__(
        self,
        limits: Limits = DEFAULT_LIMITS,
        database: str = "duckdb",
        strings: str = NUMERIC,
        k: int = LEVELS,
        crossed: bool = False,
    ) -> None:
        """With `crossed`, rows are looked up by all pairs of values of a document, as in figure 4.2: a baseline."""
        self._crossed = _checked("crossed", crossed)
        least = 2 if crossed else 1
        if type(k) is not int or not least <= k <= _MOST_LEVELS:
            raise CapabilityError(f"`k` is a whole number from {least} to {_MOST_LEVELS}, not {k!r:.20}")
        self._levels = k
        super().__init__(limits, database, strings)

    def plan(self) -> Unrolled:
        return (Crossed if self._crossed else Unrolled)(self.state, self._levels)

    def settings(self) -> tuple[object, ...]:
        return (*super().settings(), self._levels)  # both queries are for the same rows


def _checked(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise CapabilityError(f"`{name}` is true or false, not {value!r:.20}")
    return value
