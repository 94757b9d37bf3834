"""Subscriptions in bulk: one a line, created while they arrive, answered by a report with a line for each."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from fastapi import Request
from fastapi.responses import StreamingResponse

from harken.errors import HarkenError, LimitError
from harken.server.access import Requester
from harken.server.drafts import created_answer, new_draft
from harken.server.problems import problem_of
from harken.server.publications import LINE_TYPES
from harken.server.requests import json_of
from harken.server.service import Service
from harken.server.subscribing import NewSubscription, SubscriptionDraft

_LINES_AT_ONCE = 1_000
_LONGEST_LINE = 2 << 20
_REPORT_IN_MEMORY = 4 << 20
"""Bytes of a report beyond which it is kept on disk."""
_PIECE = 65_536


async def create_in_bulk(request: Request, service: Service, caller: Requester) -> StreamingResponse:
    """Create the subscriptions of a request, and answer with a report.

    The answer begins when all lines are read: many clients read nothing before they have sent everything, and would
    deadlock with the server otherwise.
    """
    report: IO[bytes] = SpooledTemporaryFile(_REPORT_IN_MEMORY)  # noqa: SIM115 (the answer closes it)
    try:
        first = 1
        waiting: list[bytes | None] = []
        async for line in _lines(request):
            waiting.append(line)
            if len(waiting) == _LINES_AT_ONCE:
                report.write(await _reports(waiting, first, service, caller))
                first += len(waiting)
                waiting = []
        report.write(await _reports(waiting, first, service, caller))
    except BaseException:
        report.close()
        raise
    return StreamingResponse(_pieces(report), media_type=LINE_TYPES[0])


async def _lines(request: Request) -> AsyncIterator[bytes | None]:
    """The lines of a body; None for one that is too long."""
    rest, is_cut = b"", False
    async for part in request.stream():
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield None if is_cut or len(line) > _LONGEST_LINE else line
            is_cut = False
        if len(rest) > _LONGEST_LINE:
            rest, is_cut = b"", True
    yield None if is_cut else rest


async def _reports(lines: Sequence[bytes | None], first: int, service: Service, caller: Requester) -> bytes:
    """Create the subscriptions of some lines. Returns a report on each line that is not blank."""
    reports: dict[int, dict[str, Any]] = {}
    drafts: dict[int, SubscriptionDraft] = {}
    for number, line in enumerate(lines, first):
        if line is not None and not line.strip():
            continue
        content = None
        try:
            if line is None:
                raise LimitError(f"the line has more than {_LONGEST_LINE:,} bytes", limit="max_body_bytes")
            content = json_of(line)
            drafts[number] = new_draft(content, service.settings, caller)
        except HarkenError as error:
            id = content.get("id") if isinstance(content, dict) else None
            reports[number] = {"id": id if isinstance(id, str) else None, "error": problem_of(error)}
    try:
        outcomes: Sequence[NewSubscription | HarkenError]
        outcomes = await service.subscriptions.subscribe(list(drafts.values()))
    except HarkenError as error:
        outcomes = [error] * len(drafts)
    for (number, draft), outcome in zip(drafts.items(), outcomes, strict=True):
        if isinstance(outcome, HarkenError):
            reports[number] = {"id": draft.id, "error": problem_of(outcome)}
        else:
            reports[number] = created_answer(outcome, draft)
    return "".join(json.dumps({"line": number, **reports[number]}) + "\n" for number in sorted(reports)).encode()


def _pieces(report: IO[bytes]) -> Iterator[bytes]:
    with report:
        report.seek(0)
        while piece := report.read(_PIECE):
            yield piece
