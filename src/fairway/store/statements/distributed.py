"""The text of a statement for a distributed store, made from the one for plain PostgreSQL.

On plain PostgreSQL a batch is compared with the key as a whole, so that one plan is left (decision
0021). Citus must see the shards of every table as constants, and has rules of its own about what
may stand where. What differs in form only is turned here, so that no statement is written twice;
where more differs, the other text stands in `queries/distributed` under the same name (decision
0071). What is not recognised stays as it is.
"""

from __future__ import annotations

import re

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
