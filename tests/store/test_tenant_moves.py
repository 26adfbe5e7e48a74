"""What the owner of a shard sees of a move, and how its rows go: so many at a time."""

from __future__ import annotations

from tests.logins import login_of
from tests.postgres import connected

from fairway.core.ids import ShardId, TenantId, Term
from fairway.core.ownership.tenant_move import MoveLook
from fairway.store.connections.database import Connection
from fairway.store.registry import tenant_moves, tenants
from fairway.store.registry.tenant_moves import Way

NAMED = "SELECT set_config('application_name', $1, false)"


#: $1 a shard, $2 a tenant, $3 how many rows.
FILLING = [
    "INSERT INTO jobs (shard, tenant, id, type, pool, priority, state, payload)"
    " SELECT $1, $2, {id}, 1, 1, 1, 1, '' FROM {numbers}",
    "INSERT INTO flows (shard, tenant, id, kind, needs, is_open, members, waiting)"
    " SELECT $1, $2, {id}, 0, 0, false, 1, '{{}}' FROM {numbers}",
    "INSERT INTO checkpoints (shard, tenant, job, epoch, number, object, size_bytes, sha256)"
    " SELECT $1, $2, {id}, 1, 1, 'o', 1, '' FROM {numbers}",
    "INSERT INTO webhook_deliveries (shard, tenant, webhook, number, kind, body, state)"
    " SELECT $1, $2, ('00000000-0000-7000-8000-' || lpad((n % 3)::text, 12, '0'))::uuid, n - 5,"
    " 'k', '', 1 FROM {numbers}",
    "INSERT INTO webhooks (shard, tenant, id, url, kinds, description, enabled, secret, position)"
    " SELECT $1, $2, {id}, 'u', '{{}}', '', true, 's', 0 FROM {numbers}",
    "INSERT INTO schedule_runs (shard, tenant, name, tick, cause, outcome)"
    " SELECT $1, $2, 'ü \"' || n % 3, 'epoch'::timestamptz + n * interval '1 us', 0, 1"
    " FROM {numbers}",
    "INSERT INTO event_inbox (shard, tenant, kind) SELECT $1, $2, 'k' FROM {numbers}",
    "INSERT INTO outbox (shard, tenant, id, request) SELECT $1, $2, {id}, '' FROM {numbers}",
    "INSERT INTO idempotency (shard, tenant, key, body_hash, job, expires_at)"
    " SELECT $1, $2, 'k' || n, '', {id}, now() FROM {numbers}",
    "INSERT INTO unique_jobs (shard, tenant, digest, job, states, expires_at)"
    " SELECT $1, $2, decode(md5(n::text), 'hex'), {id}, 1, now() FROM {numbers}",
    "INSERT INTO event_log (shard, tenant, first_position, last_position, events)"
    " SELECT $1, $2, n, n, '' FROM {numbers}",
    "INSERT INTO job_logs (shard, tenant, job, epoch, first_n, last_n, attempt, lines)"
    " SELECT $1, $2, {id}, 1, 1, 1, 1, '' FROM {numbers}",
    "INSERT INTO flow_turns (shard, tenant) VALUES ($1, $2)",
]
TABLES = [text.split()[2] for text in FILLING]
ID = "('019a0000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid"
NUMBERS = "generate_series(1, $3::int) AS n"


async def fill(connection: Connection, shard: ShardId, tenant: TenantId, rows: int) -> None:
    for text in FILLING:
        text = text.format(id=ID, numbers=NUMBERS) + " ON CONFLICT DO NOTHING"
        await connection.execute(text, shard, tenant, *[rows][: text.count("$3")])


async def count(connection: Connection, shard: ShardId, table: str) -> int:
    found: int = await connection.fetchval(f"SELECT count(*) FROM {table} WHERE shard = $1", shard)
    return found


async def test_no_step_takes_more_rows_than_it_may(owner: Connection) -> None:
    await tenants.found_cluster(owner, 4, "secret")
    acme = await tenants.add_tenant(owner, "acme")
    assert acme is not None
    home, to, rows, most = ShardId(acme.id % 4), ShardId((acme.id + 1) % 4), 23, 5
    await fill(owner, home, acme.id, rows)
    await tenant_moves.ask(owner, Way(acme.id, home, to), 60)
    term = Term(await owner.fetchval("SELECT term FROM shards WHERE shard = $1", home))

    async def look() -> MoveLook:
        found = await tenant_moves.look(owner, acme.id)
        assert found is not None
        return found

    assert await tenant_moves.begin(owner, await look(), term)
    assert {
        table: await count(owner, home, table) for table in TABLES if table != "flow_turns"
    } == (dict.fromkeys(TABLES[:-1], rows))
    # Before the last step all of it is there: that takes a part, and is put off.
    assert not await tenant_moves.switch(owner, await look(), term, most)
    assert sum([await count(owner, to, table) for table in TABLES]) <= 2 * most
    for table in tenant_moves.parts_of("moving"):
        after, found = tenant_moves.IN_PARTS[table], most
        while found == most:
            before = await count(owner, home, table)
            part = await tenant_moves.move_some(owner, await look(), term, table, after, most)
            assert part is not None
            assert part.moved == before - await count(owner, home, table) <= most
            found, after = part.found, part.last or ""
        assert (table, await count(owner, home, table)) == (table, 0)
    await fill(owner, home, acme.id, 1)  # in both places: left behind, and stops nothing
    assert await tenant_moves.switch(owner, await look(), term, most)
    there = {table: await count(owner, to, table) for table in TABLES}
    late = dict.fromkeys(("event_inbox", "event_log", "job_logs"), rows + 1)
    assert there == dict.fromkeys(TABLES, rows) | late | {"outbox": most, "flow_turns": 1}


async def test_a_move_that_goes_back_says_who_cancelled_it_until_all_is_back(
    owner: Connection,
) -> None:
    await tenants.found_cluster(owner, 4, "secret")
    acme = await tenants.add_tenant(owner, "acme")
    assert acme is not None
    home, to = ShardId(acme.id % 4), ShardId((acme.id + 1) % 4)
    await fill(owner, home, acme.id, 9)
    await tenant_moves.ask(owner, Way(acme.id, home, to), 60)
    term = Term(await owner.fetchval("SELECT term FROM shards WHERE shard = $1", home))

    async def look() -> MoveLook:
        found = await tenant_moves.look(owner, acme.id)
        assert found is not None
        return found

    async def move(table: str) -> None:
        start = tenant_moves.IN_PARTS[table]
        assert await tenant_moves.move_some(owner, await look(), term, table, start, 5)
        (one,) = await tenant_moves.list_moves(owner, 9)
        assert one.note == "Cancelled with the key 'ops': what was moved goes back."

    assert await tenant_moves.begin(owner, await look(), term)
    held = await tenant_moves.hold_of_tenant(owner, "acme")
    assert held is not None
    await tenant_moves.cancel(owner, held, "ops")
    await move("flows")
    assert await tenant_moves.turn_back(owner, await look(), term)
    assert tenant_moves.parts_of("returning")[-1] == "schedules", "what acts comes back last"
    await move("flows")
    assert await tenant_moves.finish_return(owner, await look(), term, "Over.", 100)
    assert await count(owner, to, "flows") == 0
    assert await count(owner, home, "flows") == 9


async def test_a_tenants_login_stops_no_move_by_its_name(
    database_url: str, owner: Connection
) -> None:
    await tenants.found_cluster(owner, 4, "secret")
    acme = await tenants.add_tenant(owner, "acme")
    assert acme is not None
    way = Way(acme.id, ShardId(acme.id % 4), ShardId((acme.id + 1) % 4))
    await tenant_moves.ask(owner, way, 60)
    async with (
        login_of(database_url, "acme") as login,
        connected(login) as shop,
        connected(database_url) as stands_still,
        connected(database_url) as of_the_build_before,
    ):
        await shop.execute(NAMED, "fairway-hot/7")
        await stands_still.execute(NAMED, f"fairway-hot/{'9' * 30}")
        await of_the_build_before.execute(NAMED, "fairway-people")
        look = await tenant_moves.look(owner, acme.id)
        assert look is not None
        assert look.unheard_connections == 2
        assert await tenant_moves.end_connections(owner, look) == 2
        assert await shop.fetchval("SELECT 1") == 1
