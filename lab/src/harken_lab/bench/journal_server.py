"""The match server with one more path, for comparison: `POST /bench/journal` stores a body and matches nothing.

It runs as `python -m harken_lab.bench.journal_server PORT STORE`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI


def journalling_app(store: str) -> FastAPI:
    """The server with `/bench/journal`: the same way through the same threads as `/events`, without matching."""
    from fastapi import Request, Response

    from harken.events.pieces import Piece
    from harken.server.app import create_app
    from harken.server.matching_service import MatchingService, MatchOutcome, PublishOutcome
    from harken.server.publications import Incoming
    from harken.server.settings import ServerSettings
    from harken.store.stored import JSON

    class OnlyJournal(MatchingService):
        """Stores events and matches none."""

        def matched(self, requests: Sequence[Incoming]) -> list[MatchOutcome]:
            return [MatchOutcome([[] for _ in each.pieces], []) for each in requests]

    app = create_app(ServerSettings(store=store))
    service = app.state.service

    async def journal(request: Request) -> Response:
        body = await request.body()
        if not hasattr(service, "only_journal"):
            parts = service.index, service.committer, service._appended, service._settle
            service.only_journal = OnlyJournal(*parts, service.settings)
        future = service._loop.create_future()
        service.only_journal.publish(Incoming(JSON, [Piece(body, 1)]), None, future)
        published: PublishOutcome = await future
        return Response(published.answer, 202, media_type="application/json")

    journal.__annotations__ = {"request": Request, "return": Response}
    app.add_api_route("/bench/journal", journal, methods=["POST"], response_class=Response)
    app.router.routes.insert(0, app.router.routes.pop())  # routed as quickly as `/events`
    return app


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(
        journalling_app(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False
    )
