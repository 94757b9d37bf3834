"""The client whose calls are awaited, for asyncio and trio."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from harken.client import event_calls, notification_calls, schema_calls, subscription_calls
from harken.client.answers import Notification
from harken.client.exchange import DEFAULT_SERVER, Access, Backoff, Flow, Outcome, Pages, Pause, Request
from harken.client.listening import SILENCE, Listening
from harken.client.methods import presented
from harken.client.transport import answer_of, arguments, unreachable
from harken.errors import require_extra

if TYPE_CHECKING:
    import httpx

P = ParamSpec("P")
T = TypeVar("T")


def _call(
    flow: Callable[Concatenate[Access, P], Flow[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """The method that runs a flow to its end."""

    @presented(flow, "{}")
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(flow(self._access, *args, **kwargs))

    return method


def _iteration(
    pages: Callable[Concatenate[Access, P], Pages[T]],
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
    """The method that iterates over the items of all pages."""

    @presented(pages, "AsyncIterator[{}]")
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        for page in pages(self._access, *args, **kwargs):
            for each in await self._run(page):
                yield each

    return method


class AsyncClient:
    """A client of a Harken server whose calls are awaited. Close it, or use it in an `async with` statement.

    It has the methods of `harken.Client`. Those that return an iterator there return an asynchronous one here.
    """

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        api_key: str | None = None,
        tickets: dict[str, str] | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        backoff: Backoff | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        require_extra("client")
        import httpx

        self._access = Access(server, api_key, {} if tickets is None else tickets, retries, backoff or Backoff())
        self._http = httpx.AsyncClient(timeout=timeout) if http is None else http
        self._owns_http = http is None

    @property
    def tickets(self) -> dict[str, str]:
        """Tickets by the ids of their subscriptions."""
        return self._access.tickets

    subscribe = _call(subscription_calls.subscribe)
    subscribe_many = _iteration(subscription_calls.subscribe_many)
    subscription = _call(subscription_calls.subscription)
    subscriptions = _iteration(subscription_calls.subscriptions)
    change = _call(subscription_calls.change)
    unsubscribe = _call(subscription_calls.unsubscribe)
    renew = _call(subscription_calls.renew)

    publish = _call(event_calls.publish)
    match = _call(event_calls.match)
    explain = _call(event_calls.explain)
    backtest = _call(event_calls.backtest)
    check = _call(event_calls.check)

    notifications = _call(notification_calls.notifications)
    dead_letters = _iteration(notification_calls.dead_letters)
    redeliver = _call(notification_calls.redeliver)

    schema = _call(schema_calls.schema)
    add_domain = _call(schema_calls.add_domain)
    add_attribute = _call(schema_calls.add_attribute)
    add_optional_attribute = _call(schema_calls.add_optional_attribute)
    add_event_type = _call(schema_calls.add_event_type)
    health = _call(schema_calls.health)
    is_ready = _call(schema_calls.is_ready)
    stats = _call(schema_calls.stats)
    plan = _call(schema_calls.plan)

    def listen(
        self, *ids: str, after: str | int | None = None, ticket: str | None = None
    ) -> AsyncGenerator[Notification, None]:
        """Iterate over the notifications of subscriptions as they come, each once, without end.

        It begins now, or after a cursor. A lost stream is reopened where it broke off. Raises ServerError if the server
        rejects it, and UnreachableError if it cannot be opened the first time. Use `contextlib.aclosing` to end the
        stream when the loop over it is left early.
        """
        return self._listen(Listening(self._access, ids, after, ticket))

    async def close(self) -> None:
        """Close the connections."""
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _run(self, flow: Flow[T]) -> T:
        outcome: Outcome | None = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = await self._take(step)

    async def _take(self, step: Request | Pause) -> Outcome | None:
        import httpx

        if isinstance(step, Pause):
            await self._pause(step.seconds)
            return None
        try:
            response = await self._http.request(**arguments(self._access, step, self._http.timeout))
        except httpx.TransportError as error:
            return unreachable(self._access, error)
        return answer_of(response)

    async def _pause(self, seconds: float) -> None:
        import anyio  # httpx brings it

        await anyio.sleep(seconds)

    async def _listen(self, listening: Listening) -> AsyncGenerator[Notification, None]:
        while True:
            async with aclosing(self._stream(listening.request())) as pieces:
                async for piece in pieces:
                    for notification in listening.received(piece):
                        yield notification
            await self._pause(listening.pause())

    async def _stream(self, request: Request) -> AsyncGenerator[bytes | Outcome, None]:
        import httpx

        try:
            async with self._http.stream(**arguments(self._access, request, self._http.timeout, SILENCE)) as response:
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    yield answer_of(response)
                    return
                yield b""
                async for piece in response.aiter_bytes():
                    yield piece
        except httpx.TransportError as error:
            yield unreachable(self._access, error)
