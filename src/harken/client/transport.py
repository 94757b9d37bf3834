"""Conversion of requests and answers to and from those of httpx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harken.client.client_errors import UnreachableError
from harken.client.exchange import Access, Answer, Request

if TYPE_CHECKING:
    import httpx


def arguments(access: Access, request: Request, timeout: httpx.Timeout, silence: float | None = None) -> dict[str, Any]:
    """The arguments of a request by httpx. A stream times out after `silence` seconds; other requests as the client."""
    import httpx

    read = silence
    if silence is None and timeout.read is not None:
        read = timeout.read + request.wait
    return {
        "method": request.method,
        "url": access.url(request),
        "params": list(request.query) or None,
        "headers": {name.encode(): text.encode() for name, text in request.headers.items()},
        "content": request.content,
        "timeout": httpx.Timeout(connect=timeout.connect, read=read, write=timeout.write, pool=timeout.pool),
    }


def answer_of(response: httpx.Response) -> Answer:
    """The answer in a response whose body was read."""
    return Answer(
        response.status_code, {name.lower(): text for name, text in response.headers.items()}, response.content
    )


def unreachable(access: Access, error: httpx.TransportError) -> UnreachableError:
    """The error for a request that got no answer."""
    import httpx

    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        hint = "is `harken serve` running there?"
        message = f"the server at {access.server} cannot be reached: {_reason(error)}"
        return UnreachableError(message, hint=hint, is_unsent=True)
    if isinstance(error, httpx.PoolTimeout):
        return UnreachableError("all connections of the client are in use", is_unsent=True)
    if isinstance(error, httpx.LocalProtocolError):  # its own text would show a ticket or a key
        return UnreachableError("a ticket, a key or a cursor has characters that HTTP does not allow")
    if isinstance(error, httpx.TimeoutException):
        return UnreachableError(f"the server at {access.server} did not answer in time")
    return UnreachableError(f"the connection to {access.server} was lost: {_reason(error)}")


def _reason(error: httpx.TransportError) -> str:
    return str(error) or type(error).__name__
