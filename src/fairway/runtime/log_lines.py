"""Lines of the standard library's logging, written as our own are. Small: runners import it too."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """Lines of libraries, which log by the standard library, as ours are written."""

    def format(self, record: logging.LogRecord) -> str:
        made_at = datetime.fromtimestamp(record.created, UTC).isoformat()
        line = {"event": record.getMessage(), "logger": record.name}
        line |= {"level": record.levelname.lower(), "timestamp": made_at.replace("+00:00", "Z")}
        if job := getattr(record, "job_id", ""):
            line["job"] = str(job)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def write_unclaimed_as_json() -> None:
    """Lines of the standard library's logging that no handler takes, such as the event loop's."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(JsonLines())
    logging.lastResort = handler
