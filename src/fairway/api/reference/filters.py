"""The filters of lists and of actions on many, as parameters: one grammar for all."""

from __future__ import annotations

from fairway.api.filters import PAGE_DEFAULT, PAGE_MAX
from fairway.api.reference.shape import Parameter
from fairway.core.lifecycle import BY_LABEL

FILTERS = (
    Parameter(
        name="state", place="query", example="queued,running", shell="queued,running",
        about=f"One or more of {', '.join(BY_LABEL)}, with commas between.",
    ),
    Parameter(
        name="type", place="query", about="A job type.", example="email.send",
        schema={"type": "string", "minLength": 1},
    ),
    Parameter(
        name="pool", place="query", about="A pool.", example="short",
    ),
    Parameter(
        name="since", place="query", about="Submitted at or after this moment, with its zone.",
        example="2026-01-31T00:00:00Z", schema={"type": "string", "format": "date-time"},
    ),
    Parameter(
        name="until", place="query", about="Submitted before this moment, with its zone.",
        example="2026-02-01T00:00:00Z", schema={"type": "string", "format": "date-time"},
    ),
    Parameter(
        name="limit", place="query", about="Jobs in one page.", example="50", shell="50",
        schema={"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT},
    ),
    Parameter(
        name="cursor", place="query", example="AZgKXnwbcACAAASisbPU5Q",
        about="`next_cursor` of the page before. Opaque.",
    ),
)  # fmt: skip
