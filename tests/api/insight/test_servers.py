"""Which servers there are: the API, the commands and the rows say the same."""

from __future__ import annotations

import httpx2
from tests.api.house import House

from fairway.services.platform import Platform


async def test_a_server_is_told_with_its_shards(
    house: House, operator: httpx2.AsyncClient, tenant: httpx2.AsyncClient
) -> None:
    told = (await operator.get("/v1/servers")).json()
    (own,) = [one for one in told["items"] if one["answers"]]
    assert own["state"] == "live"
    assert own["shards"] == own["shards_open"] == told["shards_owned"] == told["shards"]
    assert own["newest_term"] >= 1
    assert 0 <= own["heartbeat_age_seconds"] < 30
    assert (await tenant.get("/v1/servers")).status_code == 403


async def test_one_that_is_gone_is_told_of(house: House, operator: httpx2.AsyncClient) -> None:
    async def add(platform: Platform) -> None:
        async with platform.database.background() as connection:
            await connection.execute(
                "INSERT INTO servers SELECT 'a-gone-one', '', true, false, now() - interval '1 h',"
                " now() - interval '1 min', now() - interval '55 s'"
            )

    async def remove(platform: Platform) -> None:
        async with platform.database.background() as connection:
            await connection.execute("DELETE FROM servers WHERE name = 'a-gone-one'")

    house.inside(add)
    try:
        items = (await operator.get("/v1/servers")).json()["items"]
    finally:
        house.inside(remove)
    gone = items[-1]  # those that are there come first
    assert (gone["name"], gone["state"], gone["shards"]) == ("a-gone-one", "gone", 0)
    assert 50 < gone["heartbeat_age_seconds"] < 120
    assert gone["newest_term"] is None
