"""The OpenAPI document: what FastAPI knows of the paths, and how callers show who they are, which it does not."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

_SCHEMES = {
    "ticket": {
        "type": "apiKey",
        "in": "header",
        "name": "Harken-Ticket",
        "description": "The ticket of a subscription, or several with commas between them.",
    },
    "key": {"type": "http", "scheme": "bearer", "description": "An API key, where the server asks for keys."},
}


def describe(app: FastAPI) -> None:
    """Have the application describe tickets and keys, too. They are read by the doorkeeper, at no cost here."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = FastAPI.openapi(app)
            found.setdefault("components", {})["securitySchemes"] = _SCHEMES
            found["security"] = [{}, *({name: []} for name in _SCHEMES)]
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
