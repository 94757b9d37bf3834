"""Who asks, and what that allows: tickets open a subscription, API keys have an owner and scopes."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harken.errors import AccessError, HarkenError, UnknownIdError
from harken.server.secret_words import hashed, is_same
from harken.server.service import Service
from harken.store import ApiKey, StoredSubscription
from harken.store.store import microseconds

PUBLISH, SUBSCRIBE, ADMIN = "publish", "subscribe", "admin"
SCOPES = (PUBLISH, SUBSCRIBE, ADMIN)
_KEY_SECONDS = 3.0
"""How long a key is believed to be there still. What is opened in that time ends when keys are looked for next, so that
nothing goes on for five seconds after its key was removed."""
_MOST_REMEMBERED = 10_000
_MOST_TICKETS = 1_000


@dataclass(frozen=True, slots=True)
class Opened:
    """What tokens open."""

    names: frozenset[str]
    keys: frozenset[str]
    """The ids of the API keys that bought them."""


@dataclass(frozen=True, slots=True)
class Requester:
    """Whoever sent a request."""

    key: ApiKey | None
    tickets: tuple[bytes, ...]
    """The SHA-256 of the tickets that came along."""
    keys_are_on: bool

    @property
    def is_admin(self) -> bool:
        return self.key is not None and ADMIN in self.key.scopes

    @property
    def owner(self) -> str | None:
        return None if self.key is None else self.key.owner

    def require(self, *scopes: str) -> None:
        """Raise AccessError unless the caller's key has one of these scopes. Without API keys, anybody may."""
        if not self.keys_are_on:
            return
        if self.key is None:
            raise AccessError("this needs an API key", hint="send it as `Authorization: Bearer KEY`")
        if not self.key.scopes & {*scopes, ADMIN}:
            raise AccessError(f"this needs a key with the scope `{'` or `'.join(scopes)}`", is_known=True)

    def require_admin(self) -> None:
        """Raise AccessError unless API keys are on and this is one for administration."""
        if not self.keys_are_on:
            raise AccessError("this server runs without API keys", is_known=True, hint="start it with --api-keys")
        self.require(ADMIN)

    def opens(self, subscription: StoredSubscription) -> bool:
        """Whether the caller has the ticket of a subscription, or a key of its owner. With API keys on, `require` one,
        too: a ticket is not enough."""
        if any(is_same(each, subscription.ticket) for each in self.tickets):
            return True
        if self.key is None:
            return False
        return self.is_admin or (SUBSCRIBE in self.key.scopes and subscription.owner == self.key.owner)


def token_name(subscription: StoredSubscription) -> str:
    """What a token is for: this subscription, and no later one that has its id."""
    return f"{subscription.id} {subscription.created_at}"


class Doorkeeper:
    """Finds out who asks."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._removals = 0
        self._known: OrderedDict[bytes, tuple[ApiKey, float]] = OrderedDict()
        """Keys that were there when they were last looked up, and until when that is believed."""

    async def caller(self, headers: Mapping[str, str]) -> Requester:
        """The caller of a request. Raises AccessError for a key that is not known."""
        given = headers.get("harken-ticket")
        tickets = tuple(hashed(each.strip()) for each in given.split(",")[:_MOST_TICKETS]) if given else ()
        if not self._service.settings.api_keys:
            return Requester(None, tickets, False)
        authorization = headers.get("authorization", "")
        if " " not in authorization:
            return Requester(None, tickets, True)
        word = hashed_key(authorization)
        key = None if word is None else await self._key(word)
        if key is None:
            raise AccessError("the API key is not known")
        return Requester(key, tickets, True)

    async def subscription(self, caller: Requester, id: str) -> StoredSubscription:
        """The subscription of an id, which the caller may read and change. Raises AccessError and UnknownIdError."""
        (found,) = await self.subscriptions(caller, [id])
        return found

    async def subscriptions(
        self, caller: Requester, ids: Sequence[str], opened: frozenset[str] = frozenset()
    ) -> list[StoredSubscription]:
        """The same for several; `opened` is what tokens that came along are for. Without one, a key is needed where
        keys are on, also by who has the ticket.
        """
        known = {each.id: each for each in await self._service.readers.run(self._service.store.subscriptions_of, ids)}
        now = microseconds()
        found = []
        for id in dict.fromkeys(ids):
            each = known.get(id)
            is_gone = each is None or each.expires_at <= now
            if each is None or token_name(each) not in opened:
                caller.require(SUBSCRIBE)
                if each is None or not caller.opens(each):
                    raise _refusal(caller, id, is_gone)
            if is_gone:
                raise UnknownIdError(f"there is no subscription {id!r:.80}")
            found.append(each)
        return found

    def token(self, caller: Requester, names: Iterable[str], until: int) -> str:
        """A token that stands for the caller, and for its key as long as that is there."""
        return self._service.tokens.made(names, until, "" if caller.key is None else caller.key.id)

    async def opened(self, tokens: Iterable[str]) -> Opened:
        """What tokens open now. With API keys on, one whose key was removed opens nothing."""
        now = microseconds()
        opened = [self._service.tokens.opened(each, now) for each in tokens]
        keys = {key for _, key in opened if key}
        if self._service.settings.api_keys:
            keys = await self._service.readers.run(self._service.store.keys_left, keys) if keys else keys
            opened = [(names, key) for names, key in opened if key in keys]
        return Opened(frozenset(name for names, _ in opened for name in names), frozenset(keys))

    def remembers(self, word: bytes) -> bool:
        """Whether the key with this SHA-256 was there when it was last looked up."""
        return word in self._known

    def forget(self, id: str) -> None:
        """A key was removed here."""
        self._removals += 1
        for word in [word for word, (key, _) in self._known.items() if key.id == id]:
            del self._known[word]

    async def _key(self, word: bytes) -> ApiKey | None:
        """The key with this SHA-256. One that is not there is not remembered: there is no end to them."""
        known, until = self._known.get(word, (None, 0.0))
        if time.monotonic() <= until:
            return known
        removals = self._removals
        known = await self._service.readers.run(self._service.store.key, word)
        self._known.pop(word, None)
        if known is not None and removals == self._removals:
            self._known[word] = known, time.monotonic() + _KEY_SECONDS
            if len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)
        return known


def hashed_key(authorization: str) -> bytes | None:
    """The SHA-256 of the key in an `Authorization` header; None if it has none."""
    scheme, _, word = authorization.partition(" ")
    return hashed(word.strip()) if word.strip() and scheme.lower() == "bearer" else None


def _refusal(caller: Requester, id: str, is_gone: bool) -> HarkenError:
    """What to answer who may not. Who has no ticket at all does not learn which ids there are."""
    if not caller.tickets and caller.key is None:
        return AccessError("this needs the ticket of the subscription", hint="send it as `Harken-Ticket: TICKET`")
    if is_gone:
        return UnknownIdError(f"there is no subscription {id!r:.80}")
    what = "ticket" if caller.tickets else "key"
    return AccessError(f"the {what} does not open {id!r:.80}", is_known=True)
