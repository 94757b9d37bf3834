"""Which claimed webhooks are called next: hosts and owners take turns, and slow hosts cannot use up all calls.

A call that hangs lasts until its timeout, and such calls must not take all places. Half of the calls are for hosts that
answered quickly the last time. The other half is for hosts that have not answered yet, which get one call at a time,
and for slow ones, which get at most half of it. In each of the three, a host gets at most a quarter of the free calls,
and an owner as many as are still free, so that some are left for the next (Choudhury and Hahne, "Dynamic queue length
thresholds for shared-memory packet switches", 1998). Places in the queue for a call are shared in the same way.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from harken.store import WebhookState

_SHARE = 16
"""One host gets at most 1/_SHARE of the calls at once."""
_FREE_SHARE = 4
"""A host gets at most 1/_FREE_SHARE of the free calls, and of the free places in the queue."""
_QUICK_SECONDS = 1.0
_POSTPONE_SECONDS, _POSTPONE_SLOW_SECONDS = 0.25, 5.0
_MOST_REMEMBERED = 10_000
"""Most hosts whose pace is remembered."""


class Pace(Enum):
    """How a host answered the last time."""

    NEW = "new"
    QUICK = "quick"
    SLOW = "slow"


_MOST_WAITING = {Pace.QUICK: 8, Pace.NEW: 16, Pace.SLOW: 8}
"""Most webhooks that wait for all hosts of a pace, as multiples of the calls at once."""
_LONGEST_QUEUE = {Pace.QUICK: 4.0, Pace.NEW: 0.5, Pace.SLOW: 1.0}
"""Webhooks of one owner that wait for one host, in its shares of the calls. Those beyond are put off."""


class _Waiting(NamedTuple):
    state: WebhookState
    since: float
    """When the webhook was claimed."""
    pace: Pace
    """The pace of its host when it was claimed."""


@dataclass(slots=True)
class _Call:
    owner: str | None
    pace: Pace
    """The pace of the host when the call began. A call of a new host that takes long becomes slow."""
    since: float | None
    """When the current message was sent; None between two messages."""

    def takes_long(self, now: float) -> bool:
        return self.since is not None and now - self.since > _QUICK_SECONDS


@dataclass(slots=True)
class _Host:
    waiting: dict[str | None, deque[_Waiting]] = field(default_factory=dict)
    """Waiting webhooks by owner. The owner whose turn it is comes first."""
    calls: dict[str, _Call] = field(default_factory=dict)
    """The calls in progress, by subscription."""

    def remove_claimed_before(self, before: float) -> Iterator[_Waiting]:
        """Remove and return the waiting webhooks that were claimed before a time."""
        for owner, queue in [*self.waiting.items()]:
            while queue and queue[0].since < before:
                yield queue.popleft()
            if not queue:
                del self.waiting[owner]


class Hosts:
    """The calls in progress and the webhooks that wait for a call, by host. Times are seconds of any clock."""

    def __init__(self, most: int, patience: float) -> None:
        """At most `most` calls at once. A webhook that waits longer than `patience` seconds is removed."""
        self._most = most
        self._share = max(1, most // _SHARE)
        self._patience = patience
        self._hosts: dict[str, _Host] = {}
        """By name. The host whose turn it is comes first."""
        self._known: dict[str, str] = {}
        """The host of every subscription that waits or is called."""
        self._paces: OrderedDict[str, Pace] = OrderedDict()
        self._waiting: Counter[Pace] = Counter()
        self._calls = 0

    @property
    def has_room(self) -> bool:
        """Whether another call could begin."""
        return self._calls < self._most

    @property
    def subscriptions(self) -> list[str]:
        """The subscriptions whose webhooks wait or are called."""
        return list(self._known)

    def __contains__(self, id: str) -> bool:
        return id in self._known

    def add(self, name: str, state: WebhookState, now: float) -> bool:
        """Queue a webhook for its host. Returns False if too many wait, of its owner or for hosts of its pace."""
        host, pace = self._hosts.get(name, _Host()), self._pace(name, now)
        queue = host.waiting.get(state.owner, deque())
        free = _MOST_WAITING[pace] * self._most - self._waiting[pace]
        if free <= 0 or len(queue) >= max(1, min(_LONGEST_QUEUE[pace] * self._share, free // _FREE_SHARE)):
            return False
        queue.append(_Waiting(state, now, pace))
        self._waiting[pace] += 1
        host.waiting[state.owner] = queue
        self._hosts[name] = host
        self._known[state.subscription] = name
        return True

    def postpone_seconds(self, name: str, now: float) -> float:
        """How long to postpone webhooks that the queue has no room for: longer for slow hosts."""
        return _POSTPONE_SLOW_SECONDS if self._pace(name, now) is Pace.SLOW else _POSTPONE_SECONDS

    def begin(self, now: float) -> tuple[list[WebhookState], list[str]]:
        """The webhooks to call now, and the subscriptions of those that waited too long: release their claims."""
        late: list[str] = []
        for host in [*self._hosts.values()]:
            for each in host.remove_claimed_before(now - self._patience):
                self._waiting[each.pace] -= 1
                late.append(each.state.subscription)
        for id in late:
            self._forget(id)
        chosen: list[WebhookState] = []
        places = _Places(self._most, [call for host in self._hosts.values() for call in host.calls.values()], now)
        turn = deque(name for name, host in self._hosts.items() if host.waiting)
        while turn and self._calls < self._most:
            name = turn.popleft()
            state = self._begin_one(name, places, now)
            if state is not None:
                chosen.append(state)
                turn.append(name)
                self._hosts[name] = self._hosts.pop(name)
        return chosen, late

    def sent(self, id: str, now: float) -> None:
        """Note that a call's message is being sent."""
        self._call(id).since = now

    def answered(self, id: str, now: float) -> bool:
        """Note that a message was answered, or failed. Returns whether the pace of its host has changed."""
        call, name = self._call(id), self._known[id]
        before = self._paces.get(name)
        self._paces[name] = Pace.SLOW if call.takes_long(now) else Pace.QUICK
        self._paces.move_to_end(name)
        if len(self._paces) > _MOST_REMEMBERED:
            self._paces.popitem(last=False)
        call.since = None
        return self._paces[name] is not before

    def end(self, id: str) -> None:
        """Remove a finished call."""
        del self._hosts[self._known[id]].calls[id]
        self._calls -= 1
        self._forget(id)

    def _begin_one(self, name: str, places: _Places, now: float) -> WebhookState | None:
        """Begin a call of a host, for the first owner who may have one; None if no owner may."""
        host, pace = self._hosts[name], self._pace(name, now)
        free = places.free(pace)
        at_once = 1 if pace is Pace.NEW else min(self._share, max(1, free // _FREE_SHARE))
        if free <= 0 or len(host.calls) >= at_once:
            return None
        owner = next((each for each in host.waiting if each is None or places.calls_of(each, pace) < free), None)
        queue = host.waiting.pop(owner, None)
        if queue is None:
            return None
        state, _, waited_as = queue.popleft()
        self._waiting[waited_as] -= 1
        if queue:
            host.waiting[owner] = queue
        call = host.calls[state.subscription] = _Call(owner, pace, now)
        places.take(call)
        self._calls += 1
        return state

    def _pace(self, name: str, now: float) -> Pace:
        host = self._hosts.get(name)
        if host is not None and any(call.takes_long(now) for call in host.calls.values()):
            return Pace.SLOW
        return self._paces.get(name, Pace.NEW)

    def _call(self, id: str) -> _Call:
        return self._hosts[self._known[id]].calls[id]

    def _forget(self, id: str) -> None:
        name = self._known.pop(id)
        host = self._hosts.get(name)
        if host is not None and not host.calls and not host.waiting:
            del self._hosts[name]


class _Places:
    """The free calls by pace, and how many calls each owner has."""

    def __init__(self, most: int, calls: list[_Call], now: float) -> None:
        for call in calls:
            if call.pace is Pace.NEW and call.takes_long(now):
                call.pace = Pace.SLOW
        busy = Counter(call.pace for call in calls)
        self._owners = Counter((call.owner, call.pace is Pace.QUICK) for call in calls)
        self._free = {
            Pace.QUICK: max(1, most - most // 2) - busy[Pace.QUICK],
            Pace.NEW: max(1, most // 2) - busy[Pace.NEW] - busy[Pace.SLOW],
            Pace.SLOW: max(1, most // 4) - busy[Pace.SLOW],
        }

    def free(self, pace: Pace) -> int:
        """How many calls of hosts of a pace may begin. Calls of slow hosts count for new hosts, too."""
        return min(self._free[Pace.NEW], self._free[Pace.SLOW]) if pace is Pace.SLOW else self._free[pace]

    def calls_of(self, owner: str, pace: Pace) -> int:
        """How many calls an owner has: of quick hosts, or of new and slow hosts together."""
        return self._owners[owner, pace is Pace.QUICK]

    def take(self, call: _Call) -> None:
        self._owners[call.owner, call.pace is Pace.QUICK] += 1
        self._free[call.pace] -= 1
        if call.pace is Pace.SLOW:
            self._free[Pace.NEW] -= 1
