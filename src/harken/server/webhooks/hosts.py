"""Which claimed webhooks are called next: hosts and owners take turns, and slow hosts have calls of their own.

A call that hangs is kept until its timeout, so what must not happen is that such calls fill all places. Half of the
calls are for hosts that answered quickly the last time. The other half is for hosts that have not answered yet, which
get one call at a time, and for slow ones, which get half of it. In each of the three a host gets a quarter of what is
still free at most, and an owner as much as is still free, so that something is left for the next (Choudhury and Hahne,
"Dynamic queue length thresholds for shared-memory packet switches", 1998). The same holds of places to wait for a call.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from harken.store import WebhookState

_SHARE = 16
"""One host gets a sixteenth of the calls at once, at most."""
_FREE_SHARE = 4
"""A host gets a quarter of what is free, at most: of calls, and of places to wait."""
_QUICK_SECONDS = 1.0
_PUT_OFF_SECONDS, _PUT_OFF_SLOW_SECONDS = 0.25, 5.0
_MOST_REMEMBERED = 10_000
"""Hosts whose pace is remembered while nothing is sent to them."""


class Pace(Enum):
    """How a host answered the last time."""

    NEW = "new"
    QUICK = "quick"
    SLOW = "slow"


_MOST_WAITING = {Pace.QUICK: 8, Pace.NEW: 16, Pace.SLOW: 8}
"""Webhooks that wait for all hosts of a pace, as multiples of the calls at once."""
_LONGEST_QUEUE = {Pace.QUICK: 4.0, Pace.NEW: 0.5, Pace.SLOW: 1.0}
"""Webhooks of one owner that wait for one host, in its shares of the calls. Those beyond are put off."""


class _Waiting(NamedTuple):
    state: WebhookState
    since: float
    """When it was claimed."""
    pace: Pace
    """That of its host at that time."""


@dataclass(slots=True)
class _Call:
    owner: str | None
    pace: Pace
    """That of the host when the call began; a first one that takes long becomes slow."""
    since: float | None
    """When the message that is under way was sent; None between two of them."""

    def takes_long(self, now: float) -> bool:
        return self.since is not None and now - self.since > _QUICK_SECONDS


@dataclass(slots=True)
class _Host:
    waiting: dict[str | None, deque[_Waiting]] = field(default_factory=dict)
    """Webhooks by owner. The owner whose turn it is comes first."""
    calls: dict[str, _Call] = field(default_factory=dict)
    """The calls that are under way, by subscription."""

    def give_back(self, before: float) -> Iterator[_Waiting]:
        """Take out the webhooks that were claimed before a time."""
        for owner, queue in [*self.waiting.items()]:
            while queue and queue[0].since < before:
                yield queue.popleft()
            if not queue:
                del self.waiting[owner]


class Hosts:
    """The calls that are under way and those that wait for them, by host. Times are seconds of any clock."""

    def __init__(self, most: int, patience: float) -> None:
        """`most` are the calls at once. A webhook that waits longer than `patience` is given back."""
        self._most = most
        self._share = max(1, most // _SHARE)
        self._patience = patience
        self._hosts: dict[str, _Host] = {}
        """The host whose turn it is comes first."""
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
        """Those that wait or are called."""
        return list(self._known)

    def __contains__(self, id: str) -> bool:
        return id in self._known

    def add(self, name: str, state: WebhookState, now: float) -> bool:
        """Have a webhook wait for its host. Returns False if too many of its owner do, or of all for such hosts."""
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

    def put_off_seconds(self, name: str, now: float) -> float:
        """How long those wait that there was no room for: longer where calls take long."""
        return _PUT_OFF_SLOW_SECONDS if self._pace(name, now) is Pace.SLOW else _PUT_OFF_SECONDS

    def begin(self, now: float) -> tuple[list[WebhookState], list[str]]:
        """The webhooks to call now, and the subscriptions of those that waited too long and are to be claimed anew."""
        late: list[str] = []
        for host in [*self._hosts.values()]:
            for each in host.give_back(now - self._patience):
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
        """A message to a webhook that is called is under way."""
        self._call(id).since = now

    def answered(self, id: str, now: float) -> bool:
        """The message has its answer, or never gets one. Returns whether that says something new of its host."""
        call, name = self._call(id), self._known[id]
        before = self._paces.get(name)
        self._paces[name] = Pace.SLOW if call.takes_long(now) else Pace.QUICK
        self._paces.move_to_end(name)
        if len(self._paces) > _MOST_REMEMBERED:
            self._paces.popitem(last=False)
        call.since = None
        return self._paces[name] is not before

    def end(self, id: str) -> None:
        """A call is over."""
        del self._hosts[self._known[id]].calls[id]
        self._calls -= 1
        self._forget(id)

    def _begin_one(self, name: str, places: _Places, now: float) -> WebhookState | None:
        """Begin a call of a host, for the first owner who may have one; None if nobody may."""
        host, pace = self._hosts[name], self._pace(name, now)
        free = places.free(pace)
        at_once = 1 if pace is Pace.NEW else min(self._share, max(1, free // _FREE_SHARE))
        if free <= 0 or len(host.calls) >= at_once:
            return None
        owner = next((each for each in host.waiting if each is None or places.taken(each, pace) < free), None)
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
    """The calls that are still free, by pace, and how many each owner has."""

    def __init__(self, most: int, calls: list[_Call], now: float) -> None:
        for call in calls:
            if call.pace is Pace.NEW and call.takes_long(now):
                call.pace = Pace.SLOW
        taken = Counter(call.pace for call in calls)
        self._owners = Counter((call.owner, call.pace is Pace.QUICK) for call in calls)
        self._free = {
            Pace.QUICK: max(1, most - most // 2) - taken[Pace.QUICK],
            Pace.NEW: max(1, most // 2) - taken[Pace.NEW] - taken[Pace.SLOW],
            Pace.SLOW: max(1, most // 4) - taken[Pace.SLOW],
        }

    def free(self, pace: Pace) -> int:
        """How many calls may begin of hosts of a pace. Slow ones take from those of new ones, too."""
        return min(self._free[Pace.NEW], self._free[Pace.SLOW]) if pace is Pace.SLOW else self._free[pace]

    def taken(self, owner: str, pace: Pace) -> int:
        """The calls that an owner has of those that hosts of a pace share."""
        return self._owners[owner, pace is Pace.QUICK]

    def take(self, call: _Call) -> None:
        self._owners[call.owner, call.pace is Pace.QUICK] += 1
        self._free[call.pace] -= 1
        if call.pace is Pace.SLOW:
            self._free[Pace.NEW] -= 1
