"""Log lines as JSON, one a line, for machines that gather them. Secrets are not logged anywhere."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime


class JsonLog(logging.Formatter):
    """A record as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {"time": at, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        fields |= getattr(record, "fields", {})
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def log_to_standard_error(*, as_json: bool, level: int) -> None:
    """Send what Harken and uvicorn log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
    handler.setFormatter(JsonLog() if as_json else plain)
    for name in ("harken", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
    # A line a request is much at thousands a second: only who wants to see everything gets them.
    logging.getLogger("harken.server.access").setLevel(
        logging.INFO if as_json or level < logging.INFO else logging.WARNING
    )
