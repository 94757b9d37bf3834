"""The web page of the match server: its files, and what a browser may load while it shows them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""For the answer to `/`: the page loads only its own files and talks only to its own server."""

_CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}


def page_files() -> Mapping[str, tuple[str, bytes]]:
    """The content type and the content of each file by the path that it is served at: `/`, `/page/main.js`, …

    `/page/vega.js` is made when the package is built. Without it, the page works except for its charts.
    """
    served: dict[str, tuple[str, bytes]] = {}
    for file in sorted(files(__name__).iterdir(), key=lambda each: each.name):
        content_type = _CONTENT_TYPES.get(file.name.rpartition(".")[2])
        if content_type is not None:
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            served[path] = content_type, file.read_bytes()
    return MappingProxyType(served)
