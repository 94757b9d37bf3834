"""The OpenAPI document: what FastAPI generates from the paths, and the security schemes."""

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
    "key": {"type": "http", "scheme": "bearer", "description": "An API key, if the server runs with API keys."},
}


def describe(app: FastAPI) -> None:
    """Add tickets and API keys to the application's OpenAPI document. `AccessControl` reads them, not FastAPI."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = FastAPI.openapi(app)
            document.setdefault("components", {})["securitySchemes"] = _SCHEMES
            document["security"] = [{}, *({name: []} for name in _SCHEMES)]
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
