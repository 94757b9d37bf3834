"""No host and no owner has more than its share of the calls, and whoever waits too long is given back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harken.server.webhooks.hosts import Hosts
from harken.store import WebhookState


def state(id: str, owner: str | None = None) -> WebhookState:
    return replace(WebhookState(id, 0, "waiting", 0, 0), owner=owner)


def begun(hosts: Hosts, now: float = 0.0) -> list[str]:
    chosen, late = hosts.begin(now)
    assert late == []
    return [each.subscription for each in chosen]


def added(hosts: Hosts, host: str, count: int, now: float = 0.0, owner: str | None = None) -> list[bool]:
    return [hosts.add(host, state(f"{host}{number}", owner), now) for number in range(count)]


def paced(hosts: Hosts, host: str, seconds: float, now: float = 0.0) -> None:
    """Have a host answer one call after some seconds."""
    id = f"{host}-first"
    assert hosts.add(host, state(id), now)
    assert id in begun(hosts, now)
    hosts.sent(id, now)
    hosts.answered(id, now + seconds)
    hosts.end(id)


def grown(hosts: Hosts, ports: int, now: float, each: int = 32, owner: str | None = None) -> int:
    """How many calls begin of many hosts that many webhooks are at."""
    for number in range(ports):
        added(hosts, f"port{number}:", each, now, owner)
    return len(begun(hosts, now))


def test_a_quick_host_gets_a_sixteenth_of_the_calls_and_one_that_is_new_gets_one() -> None:
    hosts = Hosts(64, patience=15)
    paced(hosts, "quick", 0.2)
    assert all(added(hosts, "quick", 10))
    assert all(added(hosts, "new", 2))
    assert begun(hosts) == ["quick0", "new0", "quick1", "quick2", "quick3"]
    assert begun(hosts) == []
    assert hosts.has_room
    hosts.end("quick2")
    assert begun(hosts) == ["quick4"]
    assert "quick2" not in hosts
    assert "quick4" in hosts
    assert "quick9" in hosts
    hosts.answered("new0", 0.3)
    assert begun(hosts) == ["new1"], "it has answered quickly"


def test_there_are_no_more_calls_than_allowed() -> None:
    hosts = Hosts(2, patience=15)
    paced(hosts, "c", 0.1)
    for host in ("a", "b", "c"):
        assert added(hosts, host, 1) == [True]
    assert begun(hosts) == ["a0", "c0"], "one is for hosts that have answered"
    assert not hosts.has_room
    hosts.end("a0")
    assert begun(hosts) == ["b0"]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_few_calls_are_enough_for_every_pace(most: int) -> None:
    hosts = Hosts(most, patience=15)
    paced(hosts, "quick", 0.1)
    paced(hosts, "slow", 9)
    for host in ("quick", "slow", "new"):
        assert added(hosts, host, 1, owner="alice") == [True]
        assert begun(hosts) == [f"{host}0"]
        hosts.end(f"{host}0")


def test_a_queue_ends_somewhere_and_those_beyond_wait_longer_if_calls_take_long() -> None:
    hosts = Hosts(32, patience=15)
    paced(hosts, "a", 0.1)
    assert added(hosts, "a", 9) == [True] * 8 + [False]
    assert hosts.add("a", state("of another"), 0) is False
    assert hosts.add("a", state("of bob", "bob"), 0), "another owner has a queue of his own"
    assert len(begun(hosts)) == 2
    assert hosts.postpone_seconds("a", 0.5) == 0.25
    assert hosts.postpone_seconds("a", 1.5) == 5.0
    hosts.end("a0")
    hosts.end("of bob")
    assert begun(hosts, 1.0) == ["a1", "a2"]
    assert hosts.postpone_seconds("a", 1.5) == 0.25


def test_those_that_wait_for_slow_hosts_leave_room_for_others() -> None:
    hosts = Hosts(16, patience=15)
    for number in range(200):
        paced(hosts, f"slow{number}", 9)
    taken = [hosts.add(f"slow{number}", state(f"s{number}"), 0) for number in range(200)]
    assert taken == [True] * 128 + [False] * 72
    assert hosts.add("new", state("new"), 0)


def test_whoever_waits_too_long_is_given_back() -> None:
    hosts = Hosts(256, patience=15)
    added(hosts, "a", 3)
    assert begun(hosts) == ["a0"]
    hosts.end("a0")
    assert hosts.begin(15.5) == ([], ["a1", "a2"])
    assert hosts.subscriptions == []
    assert added(hosts, "a", 1, 16) == [True]
    assert begun(hosts, 17) == ["a0"]
    assert hosts.subscriptions == ["a0"]


def test_hosts_take_turns() -> None:
    hosts = Hosts(32, patience=15)
    for host in ("a", "b", "c"):
        paced(hosts, host, 0.1)
    for host in ("a", "b", "c"):
        added(hosts, host, 4)
    assert begun(hosts) == ["a0", "b0", "c0", "a1", "b1", "c1"]
    for id in ("a0", "b0", "c0"):
        hosts.end(id)
    assert begun(hosts) == ["a2", "b2", "c2"]


def test_owners_take_turns_at_one_host() -> None:
    hosts = Hosts(64, patience=15)
    paced(hosts, "a", 0.1)
    for owner in ("alice", "bob"):
        for number in range(4):
            hosts.add("a", state(f"{owner}{number}", owner), 0)
    assert begun(hosts) == ["alice0", "bob0", "alice1", "bob1"]


@pytest.mark.parametrize("ports", [1, 17, 60, 120])
def test_new_hosts_that_hang_leave_calls_for_others(ports: int) -> None:
    hosts = Hosts(256, patience=15)
    paced(hosts, "quick", 0.1)
    assert grown(hosts, ports, 0) == ports, "until it has answered, a host gets one call"
    assert added(hosts, "quick", 1, 1) == added(hosts, "unknown", 1, 1) == [True]
    assert sorted(begun(hosts, 1)) == ["quick0", "unknown0"]


@pytest.mark.parametrize("ports", [17, 60, 1_000])
def test_hosts_that_are_known_to_be_slow_leave_calls_for_others(ports: int) -> None:
    hosts = Hosts(256, patience=15)
    paced(hosts, "quick", 0.1)
    for number in range(ports):
        paced(hosts, f"port{number}:", 9)
    assert 17 <= grown(hosts, ports, 0, each=8) <= 64
    assert begun(hosts, 8) == []
    assert added(hosts, "quick", 16, 8) == [True] * 16
    assert added(hosts, "unknown", 1, 8) == [True]
    assert len(begun(hosts, 8)) == 17


@pytest.mark.parametrize("ports", [17, 60])
def test_quick_hosts_that_begin_to_hang_leave_calls_for_others(ports: int) -> None:
    hosts = Hosts(256, patience=15)
    paced(hosts, "quick", 0.1)
    for number in range(ports):
        paced(hosts, f"port{number}:", 0.1)
    assert 17 <= grown(hosts, ports, 0) < 128
    assert added(hosts, "quick", 1, 9) == added(hosts, "unknown", 1, 9) == [True]
    assert {"quick0", "unknown0"} <= set(begun(hosts, 9))


def test_an_owner_whose_hosts_hang_leaves_calls_for_other_owners() -> None:
    hosts = Hosts(256, patience=100)
    for second in range(0, 20, 2):  # calls that hang are slow by then, and new ones might follow
        for number in range(100):
            hosts.add(f"{second}-{number}", state(f"{second}-{number}", "mallory"), second)
        hosts.begin(second)
    for owner in ("alice", "bob"):
        for number in range(3):
            assert hosts.add(f"{owner}{number}", state(f"{owner}{number}", owner), 20)
    chosen = [each.subscription for each in hosts.begin(20)[0]]
    assert sorted(chosen) == [f"{owner}{number}" for owner in ("alice", "bob") for number in range(3)]


def test_a_slow_host_alone_gets_many_calls_at_once() -> None:
    hosts = Hosts(256, patience=15)
    paced(hosts, "slow", 3)
    added(hosts, "slow", 40)
    assert 8 <= len(begun(hosts)) <= 16
