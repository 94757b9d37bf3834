"""XPath in a database by the paper's plans: recursive with sharing, with buckets for inequalities, and unrolled."""

from __future__ import annotations

from typing import ClassVar

from harken_lab.plans.xml import chains, queries, unrolled
from harken_lab.plans.xml.buckets import Buckets
from harken_lab.plans.xml.chains import Chains
from harken_lab.plans.xml.path_predicates import PlacedPredicate
from harken_lab.plans.xml.plan_matcher import RelationalXPath
from harken_lab.plans.xml.unrolled import UnrolledRows


class SharedChains(Chains):
    """Chains in Query_Predicate. Subscriptions that begin with the same predicates share rows."""

    tables: ClassVar[tuple[str, ...]] = (chains.TABLE,)

    def arranged(self, predicates: list[PlacedPredicate]) -> list[PlacedPredicate]:
        return predicates

    def query(self) -> str:
        return queries.recursive()


class BucketedChains(SharedChains):
    """Shared chains in which the first inequality is replaced by that of its bucket, and itself comes last."""

    def __init__(self) -> None:
        super().__init__()
        self._buckets = Buckets()

    def arranged(self, predicates: list[PlacedPredicate]) -> list[PlacedPredicate]:
        for predicate, _ in predicates:
            self._buckets.learn(predicate)
        # Not the last one: the inequality of its bucket would directly precede it.
        for place, (predicate, _) in enumerate(predicates[:-1]):
            wider = self._buckets.wider(predicate)
            if wider is not None:
                return [*predicates[:place], (wider, ()), *predicates[place + 1 :], predicates[place]]
        return predicates


class Unrolled(UnrolledRows):
    """Rows of Predicate_Unroll, and chains for the predicates that do not fit into a row."""

    tables: ClassVar[tuple[str, ...]] = (unrolled.TABLE, chains.TABLE)

    def arranged(self, predicates: list[PlacedPredicate]) -> list[PlacedPredicate]:
        return predicates

    def query(self) -> str:
        return queries.unrolled()


class XPathShared(RelationalXPath):
    """In a database: chains of predicates, which a recursive query follows."""

    plan = SharedChains


class XPathBuckets(RelationalXPath):
    """In a database: chains of predicates, with buckets for inequalities."""

    plan = BucketedChains


class XPathUnrolled(RelationalXPath):
    """In a database: rows of five predicates, joined without recursion."""

    plan = Unrolled
