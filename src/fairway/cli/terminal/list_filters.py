"""What lists have in common: since when and until when, and how many lines at most.

Which other filters there are is each command's own.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import Parameter

from fairway.cli.terminal.moments import past
from fairway.core.errors import InvalidRequest

LINES_MAX = 10_000

Since = Annotated[
    str | None, Parameter(help="Submitted since then: 30m, 2h, 1d, yesterday, or a time.")
]
Until = Annotated[str | None, Parameter(help="Submitted before then.")]


def query_of(filters: Any) -> dict[str, str | None]:
    """The query of a dataclass of filters, with `since` and `until` as the API has them."""
    now, given = datetime.now(UTC), asdict(filters)
    return given | {name: past(given[name], name, now) for name in ("since", "until")}


def check_limit(limit: int, most: int = LINES_MAX) -> None:
    if not 1 <= limit <= most:
        raise InvalidRequest(f"--limit is a number from 1 to {most}.")
