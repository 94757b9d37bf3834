"""What the tests of the clients share: both clients as one, so that a test is for both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harken.client import AsyncClient, Backoff, Client
from services.stand import Stand

EXPIRES = "2030-01-02T03:04:05.000006Z"
NO_PAUSE = Backoff(first=0.001, longest=0.002)

MakeClient = Callable[..., Any]


class Blocked:
    """An AsyncClient with the methods of a Client, so that one test is for both."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._runner = asyncio.Runner()
        self._client = AsyncClient(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not callable(found):
            return found

        def method(*args: Any, **kwargs: Any) -> Any:
            result = found(*args, **kwargs)
            return self._runner.run(result) if inspect.iscoroutine(result) else self._each(result)

        return method

    def _each(self, items: Any) -> Iterator[Any]:
        async def following() -> Any:
            return await anext(items)

        try:
            while True:
                try:
                    yield self._runner.run(following())
                except StopAsyncIteration:
                    return
        finally:
            self._runner.run(items.aclose())

    def close(self) -> None:
        self._runner.run(self._client.close())
        self._runner.close()


@pytest.fixture
def stand() -> Iterator[Stand]:
    with Stand() as stand:
        yield stand


@pytest.fixture(params=[Client, Blocked], ids=["blocking", "async"])
def make_client(request: pytest.FixtureRequest, stand: Stand) -> Iterator[MakeClient]:
    """Make a client of the stand, of either kind."""
    made: list[Any] = []

    def make(*args: Any, **kwargs: Any) -> Any:
        made.append(request.param(*(args or (stand.url,)), **{"backoff": NO_PAUSE, **kwargs}))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def client(make_client: MakeClient) -> Any:
    return make_client()
