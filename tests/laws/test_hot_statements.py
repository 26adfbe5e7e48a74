"""The server's own role passes row security by: its statements are the only wall between tenants.

So each of them says whose rows it reads or changes: it compares the tenant, or joins by it with
what it was given. Those that serve the platform as a whole are listed here, each with its reason; a
new statement that does neither fails.
"""

from __future__ import annotations

import ast
import re

import pytest
from tests.laws.source import QUERIES, trees, walk
from tests.laws.whose_rows import left_open, tables_with_tenants

from fairway.store.connections.row_security import TABLES
from fairway.store.sql import load

STATEMENTS = {
    name: statement.text
    for path in sorted(QUERIES.glob("*.sql"))
    for name, statement in load(path.name).items()
}

#: Statements that mean everybody's rows. None of them answers a tenant.
FOR_ALL = {
    "next_owed_tenant": "whose ends of flows are still to be counted, in turn",
    "old_flows": "flows past their time, in the upkeep of a shard",
    # An owner takes a shard over: what is queued, runs or is owed, whoever's it is.
    "streams_with_work": "which streams have work, to fill the window",
    "next_queued": "the same, where streams are shallow",
    "pull_heads": "the same in degraded mode; jobs are pulled by name",
    "count_queued": "how deep the queues are, once after a take-over",
    "read_running": "which leases are written, once after a take-over",
    "read_debts": "what tenants owe each other in the fair share",
    # Worker sessions that a server hears, whoever's workers they are: kept and read by owners.
    "see_sessions": "which of them were heard, and whose they are",
    "whose_sessions": "who opened those that leases are found of after a take-over",
    "silent_sessions": "which of them are lost",
    "live_sessions": "which of them are there",
    "forget_sessions": "which of them ended",
    "forget_lost_sessions": "which nobody has heard for a day",
    # Which of its shards an owner looks into: answers shards, and nothing of anybody's.
    "shards_scheduled": "with scheduled jobs",
    "shards_past_last_moments": "with jobs that are too late",
    "shards_queued": "with queued jobs",
    "shards_with_flows_owed": "with ends of flows to be counted",
    "shards_with_outbox": "with committed jobs",
    "shards_with_news": "with events to be put in order",
    "shards_with_webhooks": "with webhooks",
    "shards_with_actions": "with bulk actions under way",
    "shards_with_checkpoints": "with checkpoints; those of jobs that are over are looked for",
    "shards_ticking": "with schedules",
    # Time passes for all jobs alike.
    "due_bunches": "which tenants have due jobs; they are promoted by name",
    "next_second": "when to look again for due jobs",
    "passed_last_moments": "which jobs are too late; they are expired by name",
    "due_schedules": "which schedules have a tick; they are settled by name",
    "waiting_schedules": "the same for ticks that wait for the run before",
    "next_schedule": "when to look again for ticks",
    "tenants_with_news": "which have events to be put in order; they are moved by name",
    "waiting_tenants": "which have committed jobs in transactions; they are moved by name",
    "full_tenants": "whose transactions are refused for now; they are counted by name",
    "tenants_logins": "whose connections are not those of servers, whatever they are called",
    "webhooks_behind": "whose logs go on; each is read by name",
    "due_webhooks": "which have something to be sent; each is sent by name",
    "next_webhook": "when to look again for such",
    "running_actions": "which bulk actions to go on with; each moves by name",
    "parked_types": "types whose circuits are open; operators are told",
    "busy_tenants": "who does far more than usual; operators are told",
    "stated_until": "whether one is on its way to the shard, or just came; those it states by name",
    "look_before": "how many tenants are in the shard that one is to be moved to",
    # Moves of tenants, of which one at a time is under way: operators', each by its number.
    **dict.fromkeys(
        ("say", "hold", "begin", "turn_back", "cancel", "call_off", "count_rows", "finish"),
        "the row of a move, by its number",
    ),
    "list_moves": "which there are, for operators",
    "hold_of_tenant": "the one of a tenant, by its name",
    "region_signs": "the same, before a server starts",
    "found_region": "whether any tenant has several shards: regions know nothing of that",
    "is_moved_to": "no tenant is made where another is moved to",
    "shards_moved_to": "which shard's book is kept by the owner of the first",
    "look_at_move": "how many tenants are in the shard that one is moved to",
    "moved_tenants": "who connects learns where all of these are",
    **dict.fromkeys(
        ("claim_shards", "stand_in", "unowned_shards", "read_shards"),
        "nobody owns the shard that a tenant is moved to",
    ),
    # A database that was just restored: before any server uses it.
    "move_events_on": "positions that were given after the backup are not given again",
    "hush_webhooks": "a copy calls nobody's receivers",
    "pause_schedules": "a copy does nothing by itself",
    # Upkeep: what is old goes.
    "forget_actions": "finished long ago",
    "forget_audit": "happened long ago",
    "forget_floods": "of tenants that wrote very many; each by its own number",
    "forget_deliveries": "written down long ago",
    "forget_keys": "idempotency keys whose day is over",
    "forget_unique": "unique keys whose time is over",
    "forget_runs": "runs of schedules recorded long ago",
    "drop_finished_checkpoints": "of jobs that are over",
    "forget_usage": "hours of long ago",
    "forget_minutes": "history of long ago",
    "forget_hours": "history of long ago",
    # Months are closed for a whole shard, and every server knows whom spend caps hold.
    "tenants_to_state": "who gets a statement; each is made by name",
    "caps_after": "whose spending to look at; each is moved by name",
    "paused_by_caps": "to hold jobs back",
    # What every server knows by heart.
    "all_pauses": "to hold jobs back",
    "any_restraints": "whether there are any",
    "circuits_after": "the same, page by page",
    "quarantines_after": "the same, page by page",
    "changed_tenants": "terms of tenants",
    "directory_news": "whether there are any",
    "touch_tenants_of_tier": "an operator changed a tier: all its tenants are read again",
    "all_namers": "who has named which job type",
    "stale_tenants": "whose names should be looked at; they are let go by name",
    "loose_types": "job types that nobody names",
    "referred_types": "job types that something refers to: answers types, and of nobody",
    "let_go_types": "job types that nobody names",
    "drop_types": "job types that nobody has named for long",
    "take_back_type": "an operator takes a type back; whether anything refers to it",
    # The owner of the tables decides which login stands for which tenant.
    "allow_login": "by the names of both",
    "forbid_login": "by the names of both",
    # Who is asking is found out by these: a key says which tenant it is of.
    "read_key": "by the id of a key",
    "changed_keys": "keys made lately",
    "revoked_keys": "keys that ended lately",
    "keys_used": "by the ids of keys that this server was shown",
    "living_sessions": "by the hashes of tokens that this server was shown",
    # Operators name a tenant or a key by its name. No key of a tenant leads here.
    "add_tenant": "a new one",
    "key_facts": "by the id of a key",
    "expire_key": "by the id of a key",
    "read_settings": "by its name",
    "change_tenant": "by its name",
    "revoke_key": "by its id",
    "list_tenants": "page by page",
    "hold_tenant": "by its name",
    "list_keys": "page by page, without what is secret",
    "list_audit": "page by page",
    "list_shards": "how many tenants and jobs each has; operators are told",
    # Several regions: what waits for a home, and what the directory tells servers of others.
    "shards_with_held": "in which something is held; it is handed over by tenant",
    "tenants_with_held": "who has something held; it is handed over by name",
    "count_held": "how much is held; operators are told",
    "forget_told": "what became of jobs that were held long ago",
    "all_homes": "where tenants are at home",
    "count_homes": "how many are at home where; operators are told",
    "fail_over": "an operator moves all tenants of a region",
    "taken_from": "an operator moves them back; which are meant",
    "restate_homes": "all homes become the new directory's word",
    "state_homes": "the same, of tenants that never moved",
    "follow_directory": "all homes that another said under the same term stand below",
    "changed_tenants_page": "the directory, page by page, for servers of other regions",
    "changed_keys_page": "the same",
    "changed_homes_page": "the same",
    "touch_tenants_of_tiers": "tiers changed in the directory: all their tenants are read again",
    "store_tenants": "as the directory has them",
    "count_conflicts": "names and numbers that are another's",
    "store_keys": "as the directory has them",
    # Reaches no row at all.
    "insert_nothing": "the lock alone",
}

#: Modules with statements of their own text: whole tables, partitions and catalogs, for nobody.
UPKEEP = {
    "store/schema/partitions.py",
    "store/schema/partition_retirement.py",
    "store/connections/row_security_proof.py",
}


def test_every_statement_says_whose_rows_it_means_or_serves_all() -> None:
    forgetful = {name: left_open(text) for name, text in STATEMENTS.items()}
    assert {name: found for name, found in forgetful.items() if found and name not in FOR_ALL} == {}


def test_the_list_of_those_that_serve_all_holds_no_other() -> None:
    assert [name for name in FOR_ALL if not left_open(STATEMENTS.get(name, ""))] == []


def test_statements_outside_the_files_are_upkeep() -> None:
    reaches = re.compile(rf"\b(FROM|JOIN|UPDATE|INTO) ({'|'.join(tables_with_tenants())})\b")
    found = {
        name
        for name, tree in trees().items()
        if name.startswith("store/")
        for node in walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if reaches.search(node.value)
    }
    assert found <= UPKEEP


def test_the_tables_are_known() -> None:
    assert len(tables_with_tenants()) >= 14
    assert tables_with_tenants() <= set(TABLES)


BATCH = "FROM unnest($2::int[], $3::uuid[]) AS asked (tenant, id)"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM jobs WHERE shard = $1 AND tenant = $2",
        "SELECT * FROM jobs AS j JOIN pauses AS e ON e.tenant = j.tenant WHERE j.tenant = $1",
        f"DELETE {BATCH} JOIN jobs ON jobs.tenant = asked.tenant AND jobs.id = asked.id",
        f"UPDATE jobs SET state = 1 {BATCH} WHERE (jobs.shard, jobs.tenant)"
        " BETWEEN ($1, asked.tenant) AND ($1, asked.tenant)",
        f"SELECT 1 {BATCH}, LATERAL (SELECT * FROM jobs WHERE tenant = asked.tenant) AS j",
        "INSERT INTO jobs (tenant, id) VALUES ($1, $2)",
        "SELECT FROM jobs WHERE (pool, tenant, id) > ($1, $2, $3) AND (pool, tenant) <= ($1, $2)",
        "SELECT * FROM tenants WHERE id = $1",
        "SELECT * FROM pools AS p LEFT JOIN pauses AS n ON n.tenant = $1 AND n.pool = p.id",
    ],
)
def test_what_says_whose_rows_it_means_is_known(text: str) -> None:
    assert left_open(text) == set()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM jobs WHERE id = $1",
        "SELECT * FROM jobs WHERE tenant = $1 OR id = $2",
        "SELECT * FROM jobs WHERE (tenant = $1 OR $1 IS NULL) AND id = $2",
        "SELECT * FROM jobs WHERE tenant <> $1",
        "SELECT * FROM jobs WHERE tenant > $1",
        "SELECT * FROM flows WHERE tenant = $1 AND id IN (SELECT id FROM jobs)",
        "SELECT * FROM jobs AS j JOIN pauses AS e ON e.tenant = j.tenant",
        "SELECT * FROM jobs AS j, pauses AS e WHERE j.tenant = $1 AND e.id = j.id",
        f"UPDATE jobs SET state = 1 {BATCH} WHERE jobs.id = asked.id",
        f"UPDATE jobs SET state = 1 {BATCH} WHERE (jobs.shard, jobs.tenant)"
        " BETWEEN ($1, asked.tenant) AND ($1, asked.last)",
        "SELECT FROM jobs WHERE (pool, tenant, id) > ($1, $2, $3) AND (pool, tenant) <= ($4, $2)",
        "INSERT INTO pauses (type) VALUES ($1)",
        "INSERT INTO jobs (tenant, id) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET state = 1",
        "SELECT * FROM pauses WHERE tenant = $1 UNION SELECT * FROM pauses WHERE type = $2",
        "DELETE FROM jobs USING jobs_carried AS c WHERE jobs.id = c.id AND c.tenant = $1",
        "UPDATE pauses SET tenant = $1 WHERE type = $2",
        "SELECT tenant = $1 AS mine, id FROM jobs WHERE id = $2",
        "SELECT * FROM jobs WHERE id = $2 ORDER BY tenant = $1",
        "SELECT * FROM jobs AS j LEFT JOIN pools AS p ON j.tenant = $1",
        "SELECT * FROM jobs WHERE CASE WHEN $2 THEN tenant = $3 ELSE true END",
        "SELECT * FROM ONLY jobs WHERE id = $1",
        "SELECT * FROM public.jobs WHERE id = $1",
    ],
)
def test_what_forgets_whose_is_found(text: str) -> None:
    assert left_open(text) != set()
