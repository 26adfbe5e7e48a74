"""Statements made from one text: parts in their places, one for each table, and nothing unknown."""

from __future__ import annotations

import pytest

from fairway.core.ids import LOWEST_JOB_ID
from fairway.store.connections.database import Connection
from fairway.store.statements.moved_tables import IN_PARTS, OUTBOX, WHOLE, MovedTable
from fairway.store.statements.templates import bodies_of

#: Of a shard, and not the tenant's to take along.
STAYS = {
    "sessions": "workers', which say hello to whoever owns the jobs then",
}


def test_a_part_stands_where_its_name_is() -> None:
    text = "-- part: both\n a, b\n-- name: one\nSELECT {both} FROM t\n-- name: two\nSELECT '{}'\n"
    assert {name: body.strip() for name, body in bodies_of(text).items()} == {
        "one": "SELECT a, b FROM t",
        "two": "SELECT '{}'",
    }


def test_a_word_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(KeyError, match="bth"):
        bodies_of("-- part: both\na\n-- name: one\nSELECT {bth}")


def test_a_statement_is_made_for_each_table() -> None:
    made = bodies_of("-- name: count_{table}\nSELECT {key} FROM {table}")
    assert list(made) == [f"count_{table.name}" for table in (*IN_PARTS, OUTBOX)]
    assert made["count_schedule_runs"].strip() == "SELECT name, tick FROM schedule_runs"
    whole = bodies_of("-- name: clear_{whole_table}\nDELETE FROM {whole_table}")
    assert list(whole) == [f"clear_{name}" for name in WHOLE]


def test_a_condition_is_made_for_any_table() -> None:
    made = bodies_of("-- name: any\nSELECT WHERE\n{any table: EXISTS (SELECT FROM {table})}\n")
    assert made["any"].count("EXISTS") == len(IN_PARTS) + 1
    assert made["any"].count(" OR ") == len(IN_PARTS)


def test_a_walk_begins_before_every_key() -> None:
    both = MovedTable("t", {"webhook": "uuid", "number": "bigint"}, ("part",))
    assert both.start == f'["{LOWEST_JOB_ID}", -9223372036854775808]'
    words = both.words()
    assert (
        words["after"] == "(:after::text::jsonb ->> 0)::uuid, (:after::text::jsonb ->> 1)::bigint"
    )
    assert words["late_key"] == "late.webhook, late.number"
    assert words["is_kept"].endswith("AND kept.part = late.part")


async def test_every_table_with_rows_of_a_tenant_is_moved(connection: Connection) -> None:
    """A new one is listed in `moved_tables.py`, or here with the reason why it stays behind."""
    found = await connection.fetch(
        "SELECT c.relname FROM pg_class AS c WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition"
        " AND c.relnamespace = 'public'::regnamespace AND 2 = (SELECT count(*) FROM pg_attribute"
        " WHERE attrelid = c.oid AND attname IN ('shard', 'tenant') AND NOT attisdropped)"
    )
    listed = {table.name for table in (*IN_PARTS, OUTBOX)} | set(WHOLE)
    assert {row["relname"] for row in found} == listed | STAYS.keys()


async def test_a_table_is_walked_by_its_key(connection: Connection) -> None:
    """What is compared with what is there already is all of the key, and the walk its beginning."""
    for table in (*IN_PARTS, OUTBOX):
        keys = await connection.fetch(
            "SELECT array_agg(a.attname::text ORDER BY k.place) AS columns"
            " FROM pg_index AS i, unnest(i.indkey::int[]) WITH ORDINALITY AS k (number, place),"
            " pg_attribute AS a WHERE i.indrelid = $1::text::regclass AND i.indisunique"
            " AND a.attrelid = i.indrelid AND a.attnum = k.number GROUP BY i.indexrelid",
            table.name,
        )
        key = ["shard", "tenant", *table.walked_by, *table.rest_of_key]
        assert key in [row["columns"] for row in keys], table.name
        kinds = await connection.fetch(
            "SELECT asked.kind FROM unnest($2::text[], $3::text[]) AS asked (name, kind)"
            " JOIN pg_attribute AS a ON a.attname = asked.name AND a.attrelid = $1::text::regclass"
            " AND a.atttypid = asked.kind::regtype",
            table.name,
            list(table.walked_by),
            list(table.walked_by.values()),
        )
        assert len(kinds) == len(table.walked_by), table.name
