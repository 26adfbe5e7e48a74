"""Rows as arrays, one for each column; for the hottest statements as PostgreSQL's own text.

That is `{1,2,3}`. The driver looks at every element of an array several times, to learn that it is
no array itself. Joining text costs half of that here, and PostgreSQL reads it as fast as the binary
form. Only for values without quotes in them: numbers, ids, places. Payloads and results may be
long; they go as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def columns(rows: Sequence[Sequence[Any]], *names: str) -> dict[str, list[Any]]:
    """The first columns of these rows, by the names that the statement has for them."""
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def numbers(values: Iterable[int | None]) -> str:
    return "{" + str(list(values))[1:-1].replace("None", "NULL") + "}"


def ids(values: Iterable[str]) -> str:
    return "{" + ",".join(values) + "}"


def texts(values: Iterable[str]) -> str:
    """An array in an array: rows of arrays cannot be unnested side by side."""
    escaped = (text.replace("\\", "\\\\").replace('"', '\\"') for text in values)
    return "{" + ",".join(f'"{text}"' for text in escaped) + "}"


def places(values: Sequence[str]) -> str:
    """Where rows lie in their table, as `ctid` says it; these do need quotes."""
    return '{"' + '","'.join(values) + '"}' if values else "{}"
