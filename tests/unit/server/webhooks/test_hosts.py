"""No host has more than its share of the calls, and whoever waits too long is given back."""

from __future__ import annotations

from harken.server.webhooks.hosts import Hosts
from harken.store import WebhookState


def state(id: str) -> WebhookState:
    return WebhookState(id, 0, "waiting", 0, 0)


def begun(hosts: Hosts, now: float = 0.0) -> list[str]:
    chosen, late = hosts.begin(now)
    assert late == []
    return [each.subscription for each in chosen]


def added(hosts: Hosts, host: str, count: int, now: float = 0.0) -> list[bool]:
    return [hosts.add(host, state(f"{host}{number}"), now) for number in range(count)]


def test_a_host_gets_a_sixteenth_of_the_calls() -> None:
    hosts = Hosts(64, patience=15)
    assert all(added(hosts, "slow", 10))
    assert all(added(hosts, "quick", 2))
    assert begun(hosts) == ["slow0", "slow1", "slow2", "slow3", "quick0", "quick1"]
    assert begun(hosts) == []
    assert hosts.has_room
    hosts.end("slow2")
    assert begun(hosts) == ["slow4"]
    assert "slow2" not in hosts
    assert "slow4" in hosts
    assert "slow9" in hosts


def test_there_are_no_more_calls_than_allowed() -> None:
    hosts = Hosts(2, patience=15)
    for host in ("a", "b", "c"):
        assert added(hosts, host, 1) == [True]
    assert begun(hosts) == ["a0", "b0"]
    assert not hosts.has_room
    hosts.end("a0")
    assert begun(hosts) == ["c0"]


def test_a_queue_ends_somewhere_and_those_beyond_wait_longer_if_calls_take_long() -> None:
    hosts = Hosts(32, patience=15)
    assert added(hosts, "a", 9) == [True] * 8 + [False]
    assert len(begun(hosts)) == 2
    assert hosts.put_off_seconds("a", 0.5) == 0.25
    assert hosts.put_off_seconds("a", 1.5) == 5.0
    hosts.end("a0")
    hosts.end("a1")
    assert begun(hosts, 1.0) == ["a2", "a3"]
    assert hosts.put_off_seconds("a", 1.5) == 0.25


def test_whoever_waits_too_long_is_given_back() -> None:
    hosts = Hosts(16, patience=15)
    added(hosts, "a", 3)
    assert begun(hosts) == ["a0"]
    hosts.end("a0")
    assert hosts.begin(15.5) == ([], ["a1", "a2"])
    assert hosts.subscriptions == []
    assert added(hosts, "a", 1, 16) == [True]
    assert begun(hosts, 17) == ["a0"]
    assert hosts.subscriptions == ["a0"]
