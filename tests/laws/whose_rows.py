"""Reads a statement as text and says which rows of tenants it reaches without saying whose.

Not a parser of SQL: it knows how statements are written here, and what it does not understand
counts as not said. A sub-select stands alone: each must say for itself whose rows it means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tests.laws.source import PACKAGE

_BEGINS = re.compile(r"^(SELECT|INSERT|UPDATE|DELETE|WITH)\b")
_ALIAS = r"(?:\s+AS\s+(\w+))?"
_VALUE = r"(\$\d+|ANY\(\$\d+|\w+\.\w+)"
_LIST = r"\(([^()]*)\)"
_CLAUSE = re.compile(
    r"\b(WHERE|(?:LEFT |RIGHT |FULL )?(?:OUTER )?JOIN|ON CONFLICT|ON|FROM|USING|SET|RETURNING"
    r"|SELECT|GROUP BY|ORDER BY|HAVING|LIMIT|UPDATE|VALUES)\b"
)
_ROW = re.compile(rf"{_LIST} (>=|<=|>|<) {_LIST}|{_LIST} BETWEEN {_LIST} AND {_LIST}")


class Reached(NamedTuple):
    """A table with rows of tenants in one part of a statement, and what its tenant is said to be:
    parameters, or the tenants of other names. None: nothing."""

    table: str
    name: str
    said: frozenset[str]


@cache
def tables_with_tenants() -> frozenset[str]:
    schema = (PACKAGE / "store/schema.sql").read_text("utf-8")
    tables = re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)", schema, re.DOTALL)
    found = {name for name, body in tables if re.search(r"^\s*tenant\s+int", body, re.MULTILINE)}
    return frozenset(found | {"tenants", "jobs_carried"})


def left_open(text: str) -> set[str]:
    """Tables of which it reaches rows of whoever they are."""
    reached = [one for part in _parts(_plain(text)) for one in _reached(part)]
    open_names = {one.name for one in reached}
    for _ in reached:  # what is tied to a name that is tied is tied, however long the chain
        open_names -= {
            one.name
            for one in reached
            if all(
                any(word.partition(".")[0] not in open_names for word in other.said)
                for other in reached
                if other.name == one.name
            )
        }
    return {one.table for one in reached if one.name in open_names}


def _plain(text: str) -> str:
    return " ".join(re.sub(r"::[a-z]+(\[\])?", "", text).split())


def _parts(text: str) -> Iterator[str]:
    """The statement and each of its sub-selects, without those within; of a UNION each side."""
    outer, inner = _taken_apart(text)
    yield from re.split(r"\bUNION(?: ALL)?\b", outer)
    for one in inner:
        yield from _parts(one)


def _taken_apart(text: str) -> tuple[str, list[str]]:
    """Sub-selects become `(@)`; conditions within brackets `(?)`, for one may say nothing."""
    inner: list[str] = []
    group = re.compile(r"\(([^()]*)\)")

    def close(found: re.Match[str]) -> str:
        body = found[1].strip().replace("\u2039", "(").replace("\u203a", ")")
        if _BEGINS.match(body):
            inner.append(body)
            return "\u2039@\u203a"
        is_condition = re.search(r"\b(AND|OR)\b|[<>=]", body)
        return "\u2039?\u203a" if is_condition else f"\u2039{found[1]}\u203a"

    while group.search(text):
        text = group.sub(close, text)
    return text.replace("\u2039", "(").replace("\u203a", ")"), inner


def _reached(part: str) -> list[Reached]:
    tables = "|".join(sorted(tables_with_tenants()))
    added = re.findall(rf"\bINTO ({tables})\b{_ALIAS}\s*(\([^()]*\))?([^;]*)", part)
    before = r"(?:\bFROM|\bJOIN|\bUPDATE|\bUSING|,) (?:ONLY )?(?:\w+\.)?"
    read = re.findall(rf"{before}({tables})\b(?![.\w]){_ALIAS}", part)
    is_alone = len(read) == 1
    return [
        Reached(table, alias or table, _said_by_insert(columns, rest))
        for table, alias, columns, rest in added
    ] + [
        Reached(table, alias or table, _said(part, table, alias or table, is_alone=is_alone))
        for table, alias in read
        if alias != "OF"
    ]


def _said_by_insert(columns: str, rest: str) -> frozenset[str]:
    """A new row names its tenant; one that is there already is changed by its own tenant only."""
    target = re.search(r"ON CONFLICT (\([^()]*\)) DO UPDATE", rest)
    keys = [columns, target[1]] if target else [columns]
    return frozenset({"$new"} if all(re.search(r"\btenant\b", key) for key in keys) else ())


def _said(part: str, table: str, name: str, *, is_alone: bool) -> frozenset[str]:
    whose = "id" if table == "tenants" else "tenant"
    column = rf"(?:{name}\.{whose}|(?<![.\w]){whose})" if is_alone else rf"{name}\.{whose}"
    conditions = _conditions(part, name)
    if re.search(r"\bOR\b", conditions):
        return frozenset()  # one side of it may say nothing
    equal = re.findall(rf"(?<!NOT ){column} = {_VALUE}", conditions)
    return frozenset(equal) | _said_by_rows(conditions, re.compile(rf"^{column}$"))


def _conditions(part: str, name: str) -> str:
    """What each row of this name must meet: WHERE, and ON of joins that keep no other row of it."""
    words = _CLAUSE.split(re.sub(r"\bCASE\b.*?\bEND\b", "?", part))
    kept, is_inner = list[str](), True
    for word, text in zip(words[1::2], words[2::2], strict=True):
        if word.endswith("JOIN"):
            is_inner = word == "JOIN" or (word == "LEFT JOIN" and text.split()[-1] == name)
        elif word == "WHERE" or (word == "ON" and is_inner):
            kept.append(text)
    return " AND ".join(kept)


def _said_by_rows(part: str, column: re.Pattern[str]) -> frozenset[str]:
    """`(a, tenant) BETWEEN x AND x`, or from a row on and up to one that begins the same."""
    bounds: dict[str, set[tuple[str, ...]]] = {"from": set(), "to": set()}
    for left, sign, row, whole, first, last in _ROW.findall(part):
        columns = [one.strip() for one in (left or whole).split(",")]
        places = [place for place, one in enumerate(columns) if column.match(one)]
        if not places:
            continue
        if not sign:
            bounds["from"].add(_up_to(first, places[0]))
            bounds["to"].add(_up_to(last, places[0]))
        else:
            bounds["from" if sign[0] == ">" else "to"].add(_up_to(row, places[0]))
    return frozenset(row[-1] for row in bounds["from"] & bounds["to"])


def _up_to(row: str, place: int) -> tuple[str, ...]:
    return tuple(one.strip() for one in row.split(",")[: place + 1])
