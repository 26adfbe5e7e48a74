"""Who is who: tenants, types and keys, as fresh as promised."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.services.gate import gate_to
from tests.services.platform_room import add_tenant, another_directory, freeze

from fairway.core.errors import Unavailable
from fairway.core.ids import TenantId, TypeId
from fairway.core.tenant import Tenant, TenantSettings
from fairway.runtime.random_ids import new_api_key
from fairway.services.platform import Platform
from fairway.services.registry import tenants_and_keys
from fairway.services.registry.key_lookup import KEYS_ASKED_MAX
from fairway.store.connections.database import DISCONNECTED, Database
from fairway.store.registry import tenants as store


async def test_a_key_stands_for_its_tenant_until_it_is_revoked(
    platform: Platform, tenant: Tenant
) -> None:
    directory, key = platform.directory, new_api_key("tenant")
    await directory.add_key(key, tenant.id)
    assert directory.known(key.text) is None
    principal = await directory.authenticate(key.text)
    assert principal is not None
    assert (principal.scope, principal.tenant) == ("tenant", tenant)
    assert directory.known(key.text) == principal
    await directory.revoke_key(key.id)
    assert directory.known(key.text) is None
    assert await directory.authenticate(key.text) is None


async def test_of_more_keys_than_a_round_writes_none_is_left_out_for_good(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await freeze(platform)
    monkeypatch.setattr(tenants_and_keys, "USES_A_ROUND_MAX", 4)
    directory, keys = platform.directory, [new_api_key("tenant") for _ in range(12)]
    for key in keys:
        await directory.add_key(key, tenant.id)
        await directory.authenticate(key.text)
    for _ in range(4):
        await directory.write_uses(0)
        assert all(directory.known(key.text) for key in keys), "all of them are used all the time"
    async with platform.database.background() as connection:
        unused = await connection.fetchval(
            "SELECT count(*) FROM api_keys WHERE id = ANY($1) AND last_used_at IS NULL",
            [key.id for key in keys],
        )
    assert unused == 0


async def test_a_key_revoked_elsewhere_stops_working_soon(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    ours, theirs = platform.directory, another_directory(platform.database)
    key = new_api_key("tenant")
    await ours.add_key(key, tenant.id)
    assert await ours.authenticate(key.text) is not None
    await theirs.revoke_key(key.id)
    await ours.run_once(0)
    assert ours.known(key.text) is None
    assert await ours.authenticate(key.text) is None


async def test_a_key_revoked_while_the_store_was_away_stops_working_too(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    directory, key = platform.directory, new_api_key("tenant")
    await directory.add_key(key, tenant.id)
    assert await directory.authenticate(key.text) is not None
    async with platform.database.background() as connection:
        await connection.execute("UPDATE api_keys SET revoked_at = now() - interval '5 minutes'")
    directory._changed_since -= timedelta(minutes=10)  # the last time it could ask
    await directory.run_once(0)
    assert directory.known(key.text) is None


async def test_changes_hidden_by_a_broken_connection_are_asked_for_again(
    database_url: str,
) -> None:
    async with gate_to(database_url) as gate:
        database = await Database.open(gate.dsn)
        ours, theirs = (
            another_directory(database),
            another_directory(await Database.open(database_url)),
        )
        await ours.run_once(0)
        made = await theirs.add_tenant("late")
        assert made is not None
        await gate.close()
        with pytest.raises(DISCONNECTED):
            await ours.run_once(0)
        await gate.open()
        await ours.run_once(0)
        assert ours.tenants == {made.id: made}
        database.terminate()
        theirs._database.terminate()


async def test_whoever_waits_for_changes_has_them_though_moves_were_learnt_meanwhile(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, fence = another_directory(platform.database), platform.database.fence
    changed_keys, known = store.changed_keys, fence.known

    async def learnt_meanwhile(*given: Any) -> Any:
        fence.known = known + 1
        return await changed_keys(*given)

    monkeypatch.setattr(store, "changed_keys", learnt_meanwhile)
    await theirs.refresh()
    assert tenant.id in theirs.tenants


async def test_a_wrong_secret_or_scope_stands_for_nobody(
    platform: Platform, tenant: Tenant
) -> None:
    key = new_api_key("tenant")
    await platform.directory.add_key(key, tenant.id)
    other_secret = key._replace(secret="x" * 43).text
    other_scope = key._replace(scope="operator").text
    for text in (other_secret, other_scope, key.text[:-1] + "0", "", "fw_tenant_a_b_c"):
        if text != key.text:
            assert await platform.directory.authenticate(text) is None


async def test_guessed_keys_hold_one_connection_at_most(platform: Platform) -> None:
    guesses = [platform.directory.authenticate(new_api_key("tenant").text) for _ in range(150)]
    async with asyncio.timeout(20):
        found = await asyncio.gather(*guesses, return_exceptions=True)
    assert found.count(None) == KEYS_ASKED_MAX
    assert sum(isinstance(answer, Unavailable) for answer in found) == 50
    assert await platform.directory.authenticate(new_api_key("tenant").text) is None


async def test_a_fleet_that_starts_with_a_new_key_is_no_crowd_of_guessers(
    platform: Platform, tenant: Tenant
) -> None:
    key = new_api_key("tenant")
    await another_directory(platform.database).add_key(key, tenant.id)
    calls = [platform.directory.authenticate(key.text) for _ in range(KEYS_ASKED_MAX + 50)]
    found = await asyncio.gather(*calls)
    assert {principal and principal.key_id for principal in found} == {key.id}


async def test_tenants_made_elsewhere_are_learnt(platform: Platform) -> None:
    await freeze(platform)
    other = another_directory(platform.database)
    made = await other.add_tenant("elsewhere", TenantSettings(weight=70, depth_limit=5))
    assert made is not None
    await platform.directory.run_once(0)
    assert platform.directory.tenants[made.id] == made
    assert platform.directory.tenant_ids["elsewhere"] == made.id
    assert await other.add_tenant("elsewhere") is None


async def test_types_are_learnt_once(platform: Platform) -> None:
    directory = platform.directory
    assert set(await directory.know_types(["a", "b", "a"])) == {"a", "b"}
    number = directory.type_ids["a"]
    await directory.know_types(["a"])
    assert directory.type_ids["a"] == number
    assert await directory.type_name(number) == "a"
    assert await directory.type_name(TypeId(999)) == "type-999"


async def test_a_weight_reaches_the_scheduler(platform: Platform) -> None:
    tenant = await add_tenant(platform, "heavy")
    changed: list[Tenant] = []
    directory = another_directory(platform.database, changed.append)
    await directory.run_once(0)
    async with platform.database.background() as connection:
        await connection.execute(
            "UPDATE tenants SET weight = 77, updated_at = now() WHERE id = $1", tenant.id
        )
    await directory.run_once(0)
    assert [one.weight for one in changed] == [tenant.weight, 77]


async def test_a_tenant_this_server_has_not_read_yet_still_has_a_name_on_the_wire(
    platform: Platform,
) -> None:
    assert platform.directory.name_of(TenantId(4711)) == "#4711"
    assert platform.directory.id_of("#4711") == 4711
    assert platform.directory.id_of("nobody") == -1
    assert platform.directory.id_of("#x") == -1


async def test_a_type_that_nobody_knows_is_asked_for_alone(
    platform: Platform, tenant: Tenant
) -> None:
    ours, theirs = platform.directory, another_directory(platform.database)
    await ours.know_types(["known.elsewhere", "another"])
    assert await theirs.find_type("made.up") is None
    assert await theirs.find_type("\0") is None
    assert await theirs.find_type("x" * 100_000) is None
    assert theirs.type_ids == {}
    assert await theirs.find_type("known.elsewhere") == ours.type_ids["known.elsewhere"]
    assert set(theirs.type_ids) == {"known.elsewhere"}
