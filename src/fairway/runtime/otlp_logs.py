"""Lines of the log as OTLP: what was written for people, with its fields, after secrets are hidden.

A line without an event, or with values that are no plain ones, goes out as text: nothing is lost
for its shape, and long values are cut.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from opentelemetry._logs import LogRecord, SeverityNumber

VALUE_MAX = 2048  # characters of one field
FIELDS_MAX = 64

_SEVERITY = {
    "debug": SeverityNumber.DEBUG,
    "info": SeverityNumber.INFO,
    "warning": SeverityNumber.WARN,
    "error": SeverityNumber.ERROR,
    "critical": SeverityNumber.FATAL,
}
_APART = ("event", "level", "timestamp")


def record_of(line: Mapping[str, Any]) -> LogRecord:
    level = str(line.get("level", "info"))
    fields = [(name, value) for name, value in line.items() if name not in _APART]
    return LogRecord(
        timestamp=time.time_ns(),
        severity_number=_SEVERITY.get(level, SeverityNumber.INFO),
        severity_text=level,
        body=str(line.get("event", ""))[:VALUE_MAX],
        attributes={name: _plain(value) for name, value in fields[:FIELDS_MAX]},
    )


def _plain(value: Any) -> str | int | float | bool:
    if isinstance(value, bool | int | float):
        return value
    return str(value)[:VALUE_MAX]
