"""What the owner of a shard sees of a move, whatever logins of tenants call themselves."""

from __future__ import annotations

from tests.logins import login_of
from tests.postgres import connected

from fairway.core.ids import ShardId
from fairway.store.connections.database import Connection
from fairway.store.registry import tenant_moves, tenants
from fairway.store.registry.tenant_moves import Way

NAMED = "SELECT set_config('application_name', $1, false)"


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
