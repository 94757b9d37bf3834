"""One attempt to deliver a webhook: connect to a checked address, post the message, read a limited answer in time."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Self

import httpx

from harken.server.webhooks.addresses import (
    Receiver,
    Resolve,
    WebhookRejectedError,
    checked_addresses,
    system_addresses,
)
from harken.server.webhooks.call_outcomes import CallOutcome, OutcomeKind, of_answer, printable
from harken.server.webhooks.networks import Network
from harken.server.webhooks.signing import signed_headers

_MOST_BYTES = 65_536
"""Most bytes of an answer that are read."""
_MOST_ADDRESSES = 8
"""Most addresses of one name that are tried in one attempt."""
_CONNECT_SECONDS = 5.0
_LOOKUP_THREADS = 64


class Sender:
    """Sends webhooks, a bounded number at a time. Close it when done, or use it as an asynchronous context manager.

    It uses the transport of httpx without a client: no cookies, no redirects, nothing from the environment, and no URLs
    in the log, since these may contain a receiver's key.
    """

    def __init__(
        self,
        *,
        allow: Sequence[Network] = (),
        deadline: float = 15.0,
        connections: int = 64,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`allow`: private networks that may be sent to. `deadline`: most seconds of an attempt. `connections`: most
        attempts at one time. `tls`: the certificates to trust; those of certifi by default.
        """
        self._allow = tuple(allow)
        self._deadline = deadline
        self._slots = asyncio.Semaphore(connections)
        # Lookups have threads of their own: a slow name service must not block the event loop's pool, and names that
        # hang, at most one for each connection, must not block other names.
        self._lookups = ThreadPoolExecutor(max(_LOOKUP_THREADS, connections), "webhook-lookup")
        self._resolve = resolve if resolve is not None else partial(system_addresses, pool=self._lookups)
        # httpx would reuse a connection by its address, which two names may share. A connection that was verified for
        # one name must not serve another, so none is kept alive.
        self._transport = httpx.AsyncHTTPTransport(
            verify=True if tls is None else tls,
            trust_env=False,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=0),
        )

    async def send(
        self, url: str, secrets: Sequence[str], message_id: str, body: bytes, content_type: str = "application/json"
    ) -> CallOutcome:
        """Post a message, signed with every secret, and return the outcome.

        The deadline does not include waiting for a free connection. Failures of the receiver or the network are
        outcomes, never errors. Raises WebhookSecretError and ValueError as `signed_headers` does.
        """
        async with self._slots:
            headers = signed_headers(secrets, message_id, int(time.time()), body)
            ends = asyncio.get_running_loop().time() + self._deadline
            try:
                async with asyncio.timeout_at(ends):
                    receiver = await checked_addresses(url, self._allow, self._resolve)
                    answer = await self._posted(receiver, headers | {"Content-Type": content_type}, body)
            except WebhookRejectedError as error:
                return CallOutcome(OutcomeKind.REJECTED, error.message)
            except (OSError, httpx.TransportError) as error:
                return CallOutcome(OutcomeKind.RETRY, self._described(error))
            # From here on only the status counts, even if the body is late or broken: the message has arrived.
            try:
                start = await _start_of(answer, ends)
            finally:
                with suppress(OSError, httpx.TransportError):
                    await answer.aclose()
            return of_answer(answer.status_code, answer.headers.get("Retry-After"), start)

    async def aclose(self) -> None:
        """Close the connections."""
        self._lookups.shutdown(wait=False, cancel_futures=True)
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _posted(self, receiver: Receiver, headers: dict[str, str], body: bytes) -> httpx.Response:
        """The answer of the first address that accepts a connection, with its body unread."""
        headers |= {"Host": receiver.authority, "User-Agent": "Harken", "Connection": "close"}
        # No compression: a small answer could decompress to a large one.
        headers |= {"Accept-Encoding": "identity"}
        times = {"connect": _CONNECT_SECONDS, "read": self._deadline, "write": self._deadline, "pool": self._deadline}
        # With `sni_hostname` the certificate is verified for the name, although the URL has the address.
        extensions = {"sni_hostname": receiver.host, "timeout": times}
        failure: httpx.TransportError = httpx.ConnectError("no address")
        for address in receiver.addresses[:_MOST_ADDRESSES]:
            request = httpx.Request(
                "POST", receiver.url_at(address), headers=headers, content=body, extensions=extensions
            )
            try:
                return await self._transport.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:  # nothing was sent: try the next address
                failure = error
        raise failure

    def _described(self, error: Exception) -> str:
        """Why there was no answer, in words for the subscriber."""
        if isinstance(error, socket.gaierror):
            return "the name of the host does not resolve"
        if isinstance(error, httpx.ConnectTimeout):
            return f"no connection within {_CONNECT_SECONDS:g} s"
        if isinstance(error, (TimeoutError, httpx.TimeoutException)):
            return f"no answer within {self._deadline:g} s"
        if isinstance(error, httpx.ConnectError):
            return printable(f"no connection: {_cause(error)}")
        return printable(f"no answer: {_cause(error)}")


async def _start_of(answer: httpx.Response, ends: float) -> bytes:
    """The start of an answer's body, as far as it arrived in time."""
    start = bytearray()
    with suppress(OSError, httpx.TransportError):  # TimeoutError is an OSError
        async with asyncio.timeout_at(ends):
            async for piece in answer.aiter_raw():
                start += piece
                if len(start) >= _MOST_BYTES:
                    break
    return bytes(start[:_MOST_BYTES])


def _cause(error: BaseException) -> str:
    """The message of the operating system or TLS for a failure, or else that of httpx."""
    for each in _chain(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            return each.verify_message
        if isinstance(each, ssl.SSLError) and each.reason:
            return each.reason.replace("_", " ").lower()
        if isinstance(each, OSError) and each.strerror:
            return each.strerror
    return str(error) or type(error).__name__


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
