"""What can go wrong between a client and a server.

HarkenError
├── ServerError        the server answered, and the answer is a rejection
└── UnreachableError   no answer came: no connection, a connection that was lost, or silence

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from harken.client.answers import Rejected
from harken.errors import HarkenError, Place

_UNTYPED = "about:blank"
_MOST_SHOWN = 200
"""At most this many characters are shown of an answer that is no problem document, such as that of a proxy."""


class ServerError(HarkenError):
    """The server rejected a request. `type` is the kind of problem, as `urn:harken:parse-error`."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        type: str = _UNTYPED,
        request_id: str | None = None,
        retry_after: float | None = None,
        limit: str | None = None,
        rejected: tuple[Rejected, ...] = (),
        **where: Any,
    ) -> None:
        super().__init__(message, **where)
        self.status = status
        self.type = type
        self.request_id = request_id
        """The id of the request in the server's log."""
        self.retry_after = retry_after
        """Seconds to wait before another attempt, as the server says."""
        self.limit = limit
        """The name of the limit that was exceeded; None for other problems."""
        self.rejected = rejected
        """The rejected events, if none was accepted."""
        self.is_repeat = False
        """Whether an earlier attempt of the same call got no answer, and may have been carried out."""

    def to_dict(self) -> dict[str, Any]:
        more = {"status": self.status, "type": self.type, "limit": self.limit, "request_id": self.request_id}
        return super().to_dict() | {name: value for name, value in more.items() if value not in (None, _UNTYPED)}


class UnreachableError(HarkenError):
    """The server did not answer. Unless the request was never sent, it may have been carried out."""

    def __init__(self, message: str, *, is_unsent: bool = False, **where: Any) -> None:
        super().__init__(message, **where)
        self.is_unsent = is_unsent
        """Whether the request was never sent, for lack of a connection."""


def error_of_problem(
    problem: Mapping[str, Any], status: int, request_id: str | None = None, retry_after: float | None = None
) -> ServerError:
    """The error that a problem document describes, of a whole answer or of one line of a bulk answer."""
    line, column = problem.get("line"), problem.get("column")
    return ServerError(
        str(problem.get("detail") or problem.get("title") or _by_status(status)),
        status=int(problem.get("status") or status),
        type=str(problem.get("type") or _UNTYPED),
        request_id=problem.get("request_id") or request_id,
        retry_after=retry_after,
        limit=problem.get("limit"),
        place=None if line is None else Place(line, column),
        excerpt=problem.get("excerpt"),
        hint=problem.get("hint"),
        rejected=tuple(map(Rejected.of, problem.get("rejected") or ())),
    )


def error_of_text(
    message: str | None, text: str, status: int, request_id: str | None = None, retry_after: float | None = None
) -> ServerError:
    """The error for an answer that is no problem document: perhaps another program wrote it."""
    shown = " ".join(text.split())[:_MOST_SHOWN]
    return ServerError(
        message or _by_status(status),
        status=status,
        request_id=request_id,
        retry_after=retry_after,
        excerpt=shown or None,
    )


def all_rejected(rejected: Sequence[Rejected], last: ServerError | None) -> ServerError:
    """The error for a call if none of its events was accepted. `last` is the server's last one, if any."""
    first = rejected[0]
    message = first.message if len(rejected) == 1 else f"all {len(rejected):,} events were rejected: {first.message}"
    return ServerError(
        message,
        status=422 if last is None else last.status,
        type="urn:harken:event-error" if last is None else last.type,
        request_id=None if last is None else last.request_id,
        place=first.place,
        excerpt=first.excerpt,
        hint=first.hint,
        rejected=tuple(rejected),
    )


def _by_status(status: int) -> str:
    try:
        return f"the server answered {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"the server answered {status}"
