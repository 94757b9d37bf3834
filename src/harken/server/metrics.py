"""Metrics for Prometheus. No label has the name of a subscription, an owner or an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from harken.server.service import Service

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class Metrics:
    """The metrics of one server."""

    def __init__(self, service: Service) -> None:
        self._registry = CollectorRegistry()
        self._counts = _Counts(service)
        self._registry.register(self._counts)
        self.requests = Counter(
            "harken_http_requests", "Requests, by path and status.", ["path", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "harken_http_seconds", "How long requests took.", ["path"], buckets=_BUCKETS, registry=self._registry
        )

    def text(self, stored: Mapping[str, int] | None = None) -> bytes:
        """All metrics as text. Those of the store are left out without its sizes, `stored`."""
        self._counts.stored = stored
        return generate_latest(self._registry)


class _Counts(Collector):
    """Metrics that are read from the parts of a service when they are collected."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.stored: Mapping[str, int] | None = None
        """The sizes of the store; None while it does not answer."""

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        service = self._service
        is_ready = service.is_ready and service.readiness.problem is None
        yield GaugeMetricFamily("harken_ready", "Whether events are accepted.", value=float(is_ready))
        if not service.is_ready:
            return
        feed, index = service.feed, service.index
        yield CounterMetricFamily("harken_events", "Events that were accepted.", value=feed.events)
        yield CounterMetricFamily("harken_notifications", "Notifications in the outbox.", value=feed.matches)
        yield CounterMetricFamily("harken_match_batches", "Batches that were matched.", value=service.matching.batches)
        yield CounterMetricFamily(
            "harken_match_failures", "Events that failed with a subscription.", value=service.matching.failures
        )
        yield CounterMetricFamily(
            "harken_transactions", "Transactions of the store.", value=service.committer.transactions
        )
        yield GaugeMetricFamily("harken_subscriptions", "Subscriptions.", value=len(index.engine))
        yield GaugeMetricFamily("harken_change_sequence", "The last change that is matched with.", value=index.sequence)
        yield GaugeMetricFamily("harken_streams", "Open streams.", value=len(service.streams))
        webhooks = CounterMetricFamily("harken_webhooks", "Calls of webhooks, by outcome.", labels=["outcome"])
        for outcome, count in service.webhooks.counts.items():
            webhooks.add_metric([outcome], count)
        yield webhooks
        sizes = self.stored
        if sizes is None:
            return
        yield GaugeMetricFamily("harken_journal_events", "Events in the journal.", value=sizes["journal_events"])
        yield GaugeMetricFamily("harken_journal_bytes", "Bytes of them.", value=sizes["journal_bytes"])
        yield GaugeMetricFamily("harken_webhooks_waiting", "Webhooks that are due.", value=sizes["webhooks_waiting"])
        yield GaugeMetricFamily("harken_dead_letters", "Notifications given up.", value=sizes["dead_notifications"])
