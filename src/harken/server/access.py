"""Callers and what they may do: a ticket opens a subscription, an API key has an owner and scopes."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harken.errors import AccessError, HarkenError, UnknownIdError
from harken.server.credentials import hashed, is_same
from harken.server.service import Service
from harken.store import ApiKey, StoredSubscription
from harken.store.store import microseconds

PUBLISH, SUBSCRIBE, ADMIN = "publish", "subscribe", "admin"
_KEY_SECONDS = 3.0
"""How long a looked-up key is trusted. Streams opened meanwhile end at the next check for removed keys, so that none
outlives its key by five seconds."""
_MOST_REMEMBERED = 10_000
_MOST_TICKETS = 1_000


@dataclass(frozen=True, slots=True)
class TokenGrants:
    """What the tokens of a request open."""

    names: frozenset[str]
    """The names of subscriptions, see `token_name`."""
    keys: frozenset[str]
    """The ids of the API keys that requested the tokens."""


@dataclass(frozen=True, slots=True)
class Requester:
    """The caller of a request."""

    key: ApiKey | None
    tickets: tuple[bytes, ...]
    """The SHA-256 of the tickets in the request."""
    keys_are_on: bool
    """Whether the server runs with API keys."""

    @property
    def is_admin(self) -> bool:
        return self.key is not None and ADMIN in self.key.scopes

    @property
    def owner(self) -> str | None:
        return None if self.key is None else self.key.owner

    def require(self, *scopes: str) -> None:
        """Raise AccessError unless the caller's key has one of these scopes. Without API keys, everybody may."""
        if not self.keys_are_on:
            return
        if self.key is None:
            raise AccessError("this needs an API key", hint="send it as `Authorization: Bearer KEY`")
        if not self.key.scopes & {*scopes, ADMIN}:
            raise AccessError(f"this needs a key with the scope `{'` or `'.join(scopes)}`", is_known=True)

    def require_admin(self) -> None:
        """Raise AccessError unless API keys are on and the caller's has the scope `admin`."""
        if not self.keys_are_on:
            raise AccessError("this server runs without API keys", is_known=True, hint="start it with --api-keys")
        self.require(ADMIN)

    def opens(self, subscription: StoredSubscription) -> bool:
        """Whether the caller has the ticket of a subscription, or a key of its owner. With API keys on, `require` a
        scope as well: a ticket is not enough."""
        if any(is_same(each, subscription.ticket) for each in self.tickets):
            return True
        if self.key is None:
            return False
        return self.is_admin or (SUBSCRIBE in self.key.scopes and subscription.owner == self.key.owner)


def token_name(subscription: StoredSubscription) -> str:
    """The name of a subscription in tokens, which a later subscription of the same id does not have."""
    return f"{subscription.id} {subscription.created_at}"


class AccessControl:
    """Identifies callers and checks which subscriptions they may open."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._removals = 0
        self._known: OrderedDict[bytes, tuple[ApiKey, float]] = OrderedDict()
        """Looked-up keys by SHA-256, each with the time until which it is trusted."""

    async def caller(self, headers: Mapping[str, str]) -> Requester:
        """The caller of a request. Raises AccessError for an unknown key."""
        header = headers.get("harken-ticket")
        tickets = tuple(hashed(each.strip()) for each in header.split(",")[:_MOST_TICKETS]) if header else ()
        if not self._service.settings.api_keys:
            return Requester(None, tickets, False)
        authorization = headers.get("authorization", "")
        if " " not in authorization:
            return Requester(None, tickets, True)
        key_hash = hashed_key(authorization)
        key = None if key_hash is None else await self._key(key_hash)
        if key is None:
            raise AccessError("unknown API key")
        return Requester(key, tickets, True)

    async def subscription(self, caller: Requester, id: str) -> StoredSubscription:
        """A subscription that the caller may read and change. Raises AccessError and UnknownIdError."""
        (subscription,) = await self.subscriptions(caller, [id])
        return subscription

    async def subscriptions(
        self, caller: Requester, ids: Sequence[str], names: frozenset[str] = frozenset()
    ) -> list[StoredSubscription]:
        """Subscriptions that the caller may read and change. Raises AccessError and UnknownIdError.

        Those with a name in `names` are opened by a token. For others, if API keys are on, the caller needs a key, even
        with the ticket.
        """
        rows = await self._service.readers.run(self._service.store.subscriptions_of, ids)
        by_id = {each.id: each for each in rows}
        now = microseconds()
        subscriptions = []
        for id in dict.fromkeys(ids):
            each = by_id.get(id)
            is_gone = each is None or each.expires_at <= now
            if each is None or token_name(each) not in names:
                caller.require(SUBSCRIBE)
                if each is None or not caller.opens(each):
                    raise _rejection(caller, id, is_gone)
            if is_gone:
                raise UnknownIdError(f"there is no subscription {id!r:.80}")
            subscriptions.append(each)
        return subscriptions

    def token(self, caller: Requester, names: Iterable[str], until: int) -> str:
        """A token that opens these names until a time. It is bound to the caller's API key, if there is one."""
        return self._service.tokens.made(names, until, "" if caller.key is None else caller.key.id)

    async def opened(self, tokens: Iterable[str]) -> TokenGrants:
        """What tokens open now. With API keys on, a token whose key was removed opens nothing."""
        now = microseconds()
        opened = [self._service.tokens.opened(each, now) for each in tokens]
        keys = {key for _, key in opened if key}
        if self._service.settings.api_keys:
            keys = await self._service.readers.run(self._service.store.existing_keys, keys) if keys else keys
            opened = [(names, key) for names, key in opened if key in keys]
        return TokenGrants(frozenset(name for names, _ in opened for name in names), frozenset(keys))

    def remembers(self, key_hash: bytes) -> bool:
        """Whether the key with this SHA-256 existed when it was last looked up."""
        return key_hash in self._known

    def forget(self, id: str) -> None:
        """Drop a key that this process has removed."""
        self._removals += 1
        for key_hash in [key_hash for key_hash, (key, _) in self._known.items() if key.id == id]:
            del self._known[key_hash]

    async def _key(self, key_hash: bytes) -> ApiKey | None:
        """The key with this SHA-256. Unknown keys are not remembered: there could be any number of them."""
        key, until = self._known.get(key_hash, (None, 0.0))
        if time.monotonic() <= until:
            return key
        removals = self._removals
        key = await self._service.readers.run(self._service.store.key, key_hash)
        self._known.pop(key_hash, None)
        if key is not None and removals == self._removals:
            self._known[key_hash] = key, time.monotonic() + _KEY_SECONDS
            if len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)
        return key


def hashed_key(authorization: str) -> bytes | None:
    """The SHA-256 of the key in an `Authorization` header; None if it has none."""
    scheme, _, key = authorization.partition(" ")
    return hashed(key.strip()) if key.strip() and scheme.lower() == "bearer" else None


def _rejection(caller: Requester, id: str, is_gone: bool) -> HarkenError:
    """The error if a caller may not open a subscription. Without ticket and key, it does not reveal which ids exist."""
    if not caller.tickets and caller.key is None:
        return AccessError("this needs the ticket of the subscription", hint="send it as `Harken-Ticket: TICKET`")
    if is_gone:
        return UnknownIdError(f"there is no subscription {id!r:.80}")
    what = "ticket" if caller.tickets else "key"
    return AccessError(f"the {what} does not open {id!r:.80}", is_known=True)
