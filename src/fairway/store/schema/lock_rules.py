"""Which locks a statement of a migration takes, and whether servers before it can live with it.

Read from the text alone, by a table of rules; nothing is run. What a `DO` block does is decided
while it runs, and said to be unknown. `tests/store/schema` holds the rules against what PostgreSQL
really locks. It knows the statements that migrations use, not all of SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["expand", "contract"]

#: The weaker ones first. From SHARE on, writers wait; behind the last one, readers, too.
MODES = (
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "ACCESS EXCLUSIVE",
)
UNKNOWN = "unknown"  # in place of a table's name

_PIECES = re.compile(r"(--[^\n]*)|(\$\w*\$.*?\$\w*\$)|('(?:[^']|'')*')|(;)", re.DOTALL)
_NAME = r"(?:IF (?:NOT )?EXISTS )?(?:ONLY )?(?P<table>\w+)"


class LockRule(NamedTuple):
    pattern: re.Pattern[str]
    mode: str | None
    kind: Kind = "expand"


def _rule(text: str, mode: str | None, kind: Kind = "expand") -> LockRule:
    return LockRule(re.compile(text, re.IGNORECASE | re.DOTALL), mode, kind)


#: What takes something away from those who know the schema as it was.
_TAKES_AWAY = (
    r"\bDROP COLUMN|\bRENAME\b|\bSET NOT NULL|ALTER COLUMN \w+ (?:SET DATA )?TYPE\b"
    r"|ADD (?:CONSTRAINT \w+ )?CHECK"
)

#: The first that fits decides.
RULES = (
    _rule(r"CREATE TABLE (?:IF NOT EXISTS )?\w+ PARTITION OF (?P<table>\w+)", "ACCESS EXCLUSIVE"),
    _rule(r"CREATE (?:UNIQUE )?INDEX .*?\bON " + _NAME, "SHARE"),
    _rule(
        r"CREATE (?:OR REPLACE )?(?:CONSTRAINT )?TRIGGER .*?\bON " + _NAME, "SHARE ROW EXCLUSIVE"
    ),
    _rule(r"DROP TRIGGER .*?\bON " + _NAME, "ACCESS EXCLUSIVE"),
    _rule(r"(?:CREATE|ALTER|DROP) POLICY .*?\bON " + _NAME, "ACCESS EXCLUSIVE"),
    _rule(r"ALTER TABLE " + _NAME + r"\s+SET \(", "SHARE UPDATE EXCLUSIVE"),
    _rule(r"ALTER TABLE " + _NAME + r"\s+VALIDATE", "SHARE UPDATE EXCLUSIVE"),
    _rule(r"ALTER TABLE " + _NAME + rf".*?(?:{_TAKES_AWAY})", "ACCESS EXCLUSIVE", "contract"),
    _rule(r"ALTER TABLE " + _NAME, "ACCESS EXCLUSIVE"),
    _rule(r"DROP TABLE " + _NAME, "ACCESS EXCLUSIVE", "contract"),
    _rule(r"DROP (?:FUNCTION|TYPE|SEQUENCE)", None, "contract"),
    _rule(r"INSERT INTO " + _NAME, "ROW EXCLUSIVE"),
    _rule(r"UPDATE " + _NAME, "ROW EXCLUSIVE"),
    _rule(r"DELETE FROM " + _NAME, "ROW EXCLUSIVE", "contract"),
)
_INDEX = re.compile(r"(?:DROP|ALTER) INDEX (?:IF EXISTS )?(?P<index>\w+)", re.IGNORECASE)
_LOCK = re.compile(r"LOCK TABLE (?:ONLY )?(?P<table>\w+) IN (?P<mode>[A-Z ]+) MODE", re.IGNORECASE)
_MADE = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", re.IGNORECASE)
_REFERENCES = re.compile(r"\bREFERENCES (\w+)", re.IGNORECASE)


class Effect(NamedTuple):
    """What one statement does to others."""

    table: str  # or `index:name`, whose table only the database knows
    mode: str
    kind: Kind
    reads_all: bool = False  # it takes as long as the table is large


def statements(text: str) -> Iterator[str]:
    """The statements of a file, without comments; texts and bodies of functions are left whole."""
    said, begin = "", 0
    for found in _PIECES.finditer(text):
        said += text[begin : found.start()]
        begin = found.end()
        if found[1] is None and found[4] is None:
            said += found[0]
        elif found[4] is not None:
            if said.strip():
                yield " ".join(said.split())
            said = ""
    said += text[begin:]
    if said.strip():
        yield " ".join(said.split())


def effects(text: str) -> list[Effect]:
    """Of all statements of a file, on tables that are there before it."""
    found: list[Effect] = []
    made: set[str] = set()
    for statement in statements(text):
        found += [effect for effect in _effects(statement) if effect.table not in made]
        if (new := _MADE.match(statement)) is not None:
            made.add(new[1])
    return found


def _effects(statement: str) -> Iterator[Effect]:
    if statement.upper().startswith("DO "):
        yield Effect(UNKNOWN, MODES[-1], "expand")
        return
    if (lock := _LOCK.match(statement)) is not None:
        yield Effect(lock["table"], lock["mode"].upper(), "expand")
        return
    if (index := _INDEX.match(statement)) is not None:
        yield Effect(f"index:{index['index']}", MODES[-1], "expand")
        return
    rule = next((one for one in RULES if one.pattern.match(statement)), None)
    if rule is not None:
        yield from _effect(rule, statement)
    if statement.upper().startswith(("CREATE TABLE", "ALTER TABLE")):
        for other in _REFERENCES.findall(statement):
            yield Effect(other, "SHARE ROW EXCLUSIVE", "expand")


def _effect(rule: LockRule, statement: str) -> Iterator[Effect]:
    fits = rule.pattern.match(statement)
    assert fits is not None
    table = fits.groupdict().get("table")
    if rule.mode is None or table is None:
        yield Effect("", "", rule.kind)
        return
    is_write = rule.mode == "ROW EXCLUSIVE" and not re.match(
        r"INSERT INTO \w+ (?:\([^)]*\) )?VALUES", statement, re.IGNORECASE
    )
    rewrites = re.search(r"\bTYPE\b|SET NOT NULL|VALIDATE|ADD CONSTRAINT", statement) is not None
    yield Effect(table, rule.mode, rule.kind, is_write or rule.mode == "SHARE" or rewrites)


def stronger(one: str, other: str) -> str:
    return max(one, other, key=MODES.index)
