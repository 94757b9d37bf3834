"""A small auction market after Le Subscribe (Fabret et al., section 2): its schema, its events, its subscriptions."""

from harken_lab.workloads.auction.market import events, readable_subscriptions, schema, subscriptions

__all__ = ["events", "readable_subscriptions", "schema", "subscriptions"]
