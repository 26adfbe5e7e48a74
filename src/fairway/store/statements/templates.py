"""Statements that are written once and stand for many, as `queries/*.sql` may say:

    -- part: columns               a text that `{columns}` stands for in the statements of its file
    -- name: move_{table}          one for each table that is moved in parts, `{table}` its name and
                                   other words in braces what it is walked by
    -- name: clear_{whole_table}   one for each that is moved whole
    {any table: EXISTS (…)}        on a line of its own: the same condition for each table, with OR

Which tables there are is in `moved_tables.py`. A word in braces that nobody knows is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairway.store.statements.moved_tables import IN_PARTS, OUTBOX, WHOLE

_HEADER = re.compile(r"^-- (name|part): ([\w{}]+)$", re.MULTILINE)
_WORD = re.compile(r"\{([a-z_]+)\}")
_ANY_TABLE = re.compile(r"\{any table: (.+)\}$", re.MULTILINE)
_TABLES = [table.words() for table in (*IN_PARTS, OUTBOX)]
_MADE_FOR = {"{table}": _TABLES, "{whole_table}": [{"whole_table": name} for name in WHOLE]}


def bodies_of(text: str) -> dict[str, str]:
    """All statements of a file by name, each with its own text."""
    pieces = _HEADER.split(text)[1:]
    found = list(zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True))
    parts = {name: body.strip() for kind, name, body in found if kind == "part"}
    return {
        filled(name, words): filled(_for_any_table(body), parts | words)
        for kind, name, body in found
        if kind == "name"
        for words in _rows_of(name)
    }


def filled(text: str, words: Mapping[str, str]) -> str:
    """With what stands for its words in braces; one that is not known is a KeyError."""
    return _WORD.sub(lambda found: words[found[1]], text)


def _rows_of(name: str) -> list[dict[str, str]]:
    """What a statement is made for: each of many tables, or once."""
    return next((rows for mark, rows in _MADE_FOR.items() if mark in name), [{}])


def _for_any_table(body: str) -> str:
    return _ANY_TABLE.sub(
        lambda found: "\n   OR ".join(filled(found[1], words) for words in _TABLES), body
    )
