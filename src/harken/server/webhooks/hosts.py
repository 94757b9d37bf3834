"""Which claimed webhooks are called next: every host has a queue, and no more than its share of the calls."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from harken.store import WebhookState

_SHARE = 16
"""One host gets a sixteenth of the calls at once, at most: slow ones must not hold up all others."""
_QUEUE_SHARES = 4
"""Webhooks that wait for one host, in shares. Those beyond are put off."""
_QUICK_SECONDS = 1.0
_PUT_OFF_SECONDS, _PUT_OFF_SLOW_SECONDS = 0.25, 5.0


@dataclass(slots=True)
class _Host:
    waiting: deque[tuple[WebhookState, float]] = field(default_factory=deque)
    """Webhooks, each with the time when it was claimed."""
    began: dict[str, float] = field(default_factory=dict)
    """When the calls that are under way began, by subscription."""


class Hosts:
    """The calls that are under way and those that wait for them, by host. Times are seconds of any clock."""

    def __init__(self, most: int, patience: float) -> None:
        """`most` are the calls at once. A webhook that waits longer than `patience` is given back."""
        self._most = most
        self._share = max(1, most // _SHARE)
        self._patience = patience
        self._hosts: dict[str, _Host] = {}
        self._known: dict[str, str] = {}
        """The host of every subscription that waits or is called."""
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
        """Have a webhook wait for its host. Returns False if too many do."""
        host = self._hosts.setdefault(name, _Host())
        if len(host.waiting) >= _QUEUE_SHARES * self._share:
            return False
        host.waiting.append((state, now))
        self._known[state.subscription] = name
        return True

    def put_off_seconds(self, name: str, now: float) -> float:
        """How long those wait that there was no room for: longer where most calls take long."""
        began = self._hosts[name].began.values()
        slow = sum(now - each > _QUICK_SECONDS for each in began)
        return _PUT_OFF_SLOW_SECONDS if slow * 2 > len(began) else _PUT_OFF_SECONDS

    def begin(self, now: float) -> tuple[list[WebhookState], list[str]]:
        """The webhooks to call now, and the subscriptions of those that waited too long and are to be claimed anew."""
        chosen: list[WebhookState] = []
        late: list[str] = []
        for host in self._hosts.values():
            while host.waiting and self._calls < self._most and len(host.began) < self._share:
                state, claimed = host.waiting.popleft()
                if now - claimed > self._patience:
                    late.append(state.subscription)
                    continue
                host.began[state.subscription] = now
                self._calls += 1
                chosen.append(state)
        for id in late:
            self._forget(id)
        return chosen, late

    def end(self, id: str) -> None:
        """A call is over."""
        del self._hosts[self._known[id]].began[id]
        self._calls -= 1
        self._forget(id)

    def _forget(self, id: str) -> None:
        name = self._known.pop(id)
        host = self._hosts.get(name)
        if host is not None and not host.began and not host.waiting:
            del self._hosts[name]
