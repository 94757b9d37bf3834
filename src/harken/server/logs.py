"""The log: plain, or as JSON lines for log collectors. Secrets are never logged."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime


class JsonLog(logging.Formatter):
    """Formats a record as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {
            "time": time,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= getattr(record, "fields", {})
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def log_to_standard_error(*, as_json: bool, level: int) -> None:
    """Send the log of Harken and uvicorn to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
    handler.setFormatter(JsonLog() if as_json else plain)
    for name in ("harken", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
    # The plain log has a line for each request only at a verbose level: there may be thousands a second.
    logging.getLogger("harken.server.access").setLevel(
        logging.INFO if as_json or level < logging.INFO else logging.WARNING
    )
