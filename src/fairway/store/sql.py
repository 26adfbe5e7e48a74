"""Loads the named statements of `queries/*.sql` into checked values.

A statement is written with `:name` parameters; the driver wants positions, so names are turned
into positions once, at import. This file knows nothing of what any statement means.

A distributed store may need another text, which the connection asks for. On plain PostgreSQL a
batch is compared with the key as a whole, so that one plan is left (decision 0021). Citus must see
the shards of every table as constants, and has rules of its own about what may stand where. What
differs in form only is turned here, so that no statement is written twice; where more differs, the
other text stands in `queries/distributed` under the same name (decision 0071).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from fairway.core.ids import SHARDS_MAX

_HEADER = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
_POSITION = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True)
class Statement:
    name: str
    text: str
    parameters: tuple[str, ...]
    distributed: Statement | None = None  # on a distributed store; None: the same

    def at(self, connection: Any) -> Statement:
        """As it is run on this connection."""
        if self.distributed is not None and getattr(connection, "placement", None):
            return self.distributed
        return self

    def bind(self, **values: Any) -> list[Any]:
        """The values in the order of the statement's positions; a wrong name is a KeyError."""
        return [values[parameter] for parameter in self.parameters]


@lru_cache(maxsize=SHARDS_MAX)
def of_rows(statement: Statement, count: int) -> str:
    """`INSERT … VALUES (…)` with as many rows of values, each bound as the one that is written.

    A distributed store keeps the plan of such a text, and sends it to the rows' node as one
    command; what comes from a SELECT is planned anew each time.
    """
    columns, row = statement.text.split("VALUES ")
    width = len(statement.parameters)
    shifted = [_shifted(row, width * number) for number in range(count)]
    return f"{columns}VALUES {', '.join(shifted)}"


def _shifted(row: str, by: int) -> str:
    """With positions that are so much higher."""
    return _POSITION.sub(lambda found: f"${int(found[1]) + by}", row)


def load(file_name: str) -> dict[str, Statement]:
    """All statements of one file, by name."""
    folder = resources.files("fairway.store").joinpath("queries")
    others = _bodies(folder.joinpath("distributed", file_name))
    return {
        name: _both(name, body, others.get(name) or routed(_plain(body)))
        for name, body in _bodies(folder.joinpath(file_name)).items()
    }


def _bodies(file: Traversable) -> dict[str, str]:
    if not file.is_file():
        return {}
    pieces = _HEADER.split(file.read_text("utf-8"))[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def _both(name: str, body: str, other: str) -> Statement:
    plain, distributed = _compile(name, body), _compile(name, other)
    if plain.text == distributed.text:
        return plain
    return Statement(name, plain.text, plain.parameters, distributed)


def _plain(body: str) -> str:
    return re.sub(r"--[^\n]*", "", body)


def _compile(name: str, body: str) -> Statement:
    parameters: list[str] = []

    def position(found: re.Match[str]) -> str:
        if found[1] not in parameters:
            parameters.append(found[1])
        return f"${parameters.index(found[1]) + 1}"

    return Statement(name, _PARAMETER.sub(position, _plain(body)).strip(), tuple(parameters))


# -- the text for a distributed store -------------------------------------------------------------

_WHOLE_KEY = re.compile(
    r"\((?P<row>\w+)\.shard, (?P<columns>[^()]+)\)\s+BETWEEN\s+"
    r"\((?P<shard>:shard|\w+\.shard), (?P<values>[^()]+)\)\s+AND\s+"
    r"\((?P=shard), (?P=values)\)"
)
_OF_AN_ITEM = re.compile(r"(?<![\w.])(?P<column>(?:\w+\.)?shard) = (?P<item>\w+)\.shard\b")
_SOME_KEYS = re.compile(r"(DELETE FROM \w+\s+WHERE) (\(shard, )")
_BY_STATE = re.compile(
    r"CASE jobs\.state(?P<arms>(?:\s+WHEN \d THEN [\w.]+(?: [<=] [\w.]+)?"
    r"(?: AND [\w.]+ = [\w.]+)?)+) END"
)
_ARM = re.compile(r"WHEN (\d) THEN")
_NOW = r"(now\(\)(?: \+ make_interval\([^()]*\))?)"
_NOW_OR_NOTHING = re.compile(rf"CASE WHEN ((?:(?!CASE|THEN).)+?) THEN {_NOW} END", re.DOTALL)
_OR_NOW = re.compile(r"coalesce\(([\w.]+), now\(\)\)")
_FROM_NOW = re.compile(r"= (now\(\) \+ make_interval\(secs => \w+\.\w+\))")
_AS_ARRAY = re.compile(r"= (\w+\.\w+::smallint\[\])")
_PLACE, _WITH_PLACES = "job.ctid::text AS place", "SELECT ctid, * FROM"
_DATED_ANEW = re.compile(r"\b(updated_at|recorded_at) = now\(\)")


def routed(text: str) -> str:
    """The same statement, for shards that lie together on one node."""
    text = _by_shard(text)
    text = _BY_STATE.sub(
        lambda found: "CASE" + _ARM.sub(r"WHEN jobs.state = \1 THEN", found["arms"]) + " END", text
    )
    text = _with_the_moment_aside(text)
    text = text.replace("(SELECT FROM", "(SELECT 1 FROM")  # what is planned in steps needs a column
    return text.replace(_PLACE, "NULL::text AS place").replace(_WITH_PLACES, "SELECT * FROM")


def _by_shard(text: str) -> str:
    """Every table with its shards as constants."""
    shards = _shards_of(text)
    if shards is not None:
        text = _OF_AN_ITEM.sub(rf"\g<column> = ANY({shards}) AND \g<0>", text)
    text = _WHOLE_KEY.sub(lambda found: _by_columns(found, shards), text)
    return _SOME_KEYS.sub(r"\1 shard = :shard AND \2", text)


def _with_the_moment_aside(text: str) -> str:
    """What depends on the moment may stand in no CASE and no COALESCE, and in no ON CONFLICT; a
    conversion that depends on settings may read no column: a sub-select may do both."""
    text = _NOW_OR_NOTHING.sub(r"(SELECT \2 WHERE \1)", text)
    text = _OR_NOW.sub(
        r"(SELECT given.moment FROM (VALUES (1, \1), (2, now())) AS given (number, moment)"
        r" WHERE given.moment IS NOT NULL ORDER BY given.number LIMIT 1)",
        text,
    )
    text = _AS_ARRAY.sub(r"= (SELECT \1)", _FROM_NOW.sub(r"= (SELECT \1)", text))
    before, conflict, after = text.partition("ON CONFLICT")
    return before + conflict + _DATED_ANEW.sub(r"\1 = excluded.\1", after)


def _shards_of(text: str) -> str | None:
    """The parameter with all shards that a statement names."""
    for name in ("owned", "shards"):
        if found := re.search(rf":{name}::(?:text::)?int\[\]", text):
            return found[0]
    return None


def _by_columns(found: re.Match[str], shards: str | None) -> str:
    row, shard = found["row"], found["shard"]
    columns, values = (found[part].split(", ") for part in ("columns", "values"))
    equal = [f"{column} = {value}" for column, value in zip(columns, values, strict=True)]
    ours = f"{row}.shard = {shard}"
    if shard != ":shard":
        ours = f"{row}.shard = ANY({shards}) AND {ours}"
    return " AND ".join((ours, *equal))
