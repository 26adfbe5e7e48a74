"""The trace that a program is in, where OpenTelemetry is: jobs handed in there belong to it.

Asks only what the program has loaded itself: without OpenTelemetry there is no trace, and nothing
is imported to find that out.
"""

from __future__ import annotations

import sys
from typing import Any

from fairway.core.insight.trace_context import packed, traceparent_of


def current_traceparent() -> str | None:
    """Of the span that is under way here; None when there is none."""
    otel: Any = sys.modules.get("opentelemetry.trace")
    if otel is None:
        return None
    try:
        context = otel.get_current_span().get_span_context()
        if not context.is_valid:
            return None
        sampled = bool(context.trace_flags & 1)
        return traceparent_of(packed(context.trace_id, context.span_id, is_sampled=sampled))
    except Exception:  # a stranger's library, half loaded or replaced: no job is lost for a trace
        return None
