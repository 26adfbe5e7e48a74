"""Names of job types: whose they are, how many there may be, and that nobody's fill another's."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest
from tests.services.platform_room import Hand, add_tenant, freeze, new, open_pair, stopped, submit

from fairway.core.errors import InvalidRequest, Unavailable
from fairway.core.ids import TenantId, TypeId
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.registry import type_names as module
from fairway.services.registry.type_names import Namer, TypeNames
from fairway.store.connections.database import Connection
from fairway.store.registry import type_names as store
from fairway.store.registry.type_names import name_for_all, name_for_tenant


@pytest.fixture
async def names(platform: Platform) -> TypeNames:
    """Of a server whose loops stand still: it learns only what the test tells it."""
    for name in ("first", "second", "third"):  # whose numbers are 1 to 3
        await add_tenant(platform, name)
    await freeze(platform)
    return platform.directory.names


@pytest.fixture
def theirs(platform: Platform, names: TypeNames) -> TypeNames:
    """Of another server of the same database."""
    return TypeNames(platform.database)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TENANT_NAMES_MAX", 5)
    monkeypatch.setattr(module, "SHARED_NAMES_MAX", 8)


def some(prefix: str, count: int) -> list[str]:
    return [f"{prefix}.{n}" for n in range(count)]


async def refusal_of(names: TypeNames, tenant: TenantId | None, wanted: list[str]) -> str:
    with pytest.raises(InvalidRequest) as refusal:
        await names.know(tenant, wanted)
    assert refusal.value.code == "TOO_MANY_JOB_TYPES"
    assert refusal.value.field == "/type"
    return refusal.value.message


@pytest.mark.usefixtures("few")
async def test_a_tenant_fills_its_own_room_and_nobody_elses(names: TypeNames) -> None:
    await names.know(TenantId(1), some("a", 5))
    assert "may name 5 job types" in await refusal_of(names, TenantId(1), ["one.more"])
    assert "one.more" not in names.ids
    await names.know(TenantId(1), some("a", 5))  # what it has it may use
    await names.know(TenantId(2), some("b", 5))
    await names.know(None, some("c", 8))
    assert "Shared workers and operators" in await refusal_of(names, None, ["one.more"])
    await names.know(TenantId(3), some("d", 5))


@pytest.mark.usefixtures("few")
async def test_a_batch_is_taken_whole_or_not_at_all(names: TypeNames) -> None:
    await names.know(TenantId(1), some("a", 3))
    await refusal_of(names, TenantId(1), some("b", 3))
    assert set(names.ids) == set(some("a", 3))
    await names.know(TenantId(1), some("b", 2))


@pytest.mark.usefixtures("few")
async def test_what_the_house_says_counts_for_no_tenant(names: TypeNames) -> None:
    ids = await names.know(TenantId(1), some("a", 5))
    assert await names.know(None, some("a", 3)) == {name: ids[name] for name in some("a", 3)}
    await names.know(TenantId(1), some("b", 3))
    await refusal_of(names, TenantId(1), ["one.more"])
    await names.know(TenantId(2), some("a", 3) + some("c", 5))


@pytest.mark.usefixtures("few")
async def test_names_that_others_use_count_for_whoever_uses_them(names: TypeNames) -> None:
    """Else one could tell from a refusal what others have, or keep their names from going."""
    await names.know(TenantId(1), some("a", 5))
    await names.know(TenantId(2), some("b", 5))
    await refusal_of(names, TenantId(2), ["a.0"])


@pytest.mark.usefixtures("few")
async def test_jobs_of_a_tenant_take_no_names_from_its_own_workers(names: TypeNames) -> None:
    await names.know(TenantId(1), some("job", 5))
    worker = Namer(TenantId(1), by_worker=True)
    brought = await names.bring(worker, ["job.0", *some("run", 5)], all_or_none=False)
    assert (set(brought.ids), brought.refused) == ({"job.0", *some("run", 4)}, ["run.4"])
    await names.know(TenantId(1), ["job.9"])  # job.0 is its workers' now
    await refusal_of(names, TenantId(1), ["one.more"])
    await names.know(TenantId(1), some("run", 4))


@pytest.mark.usefixtures("few")
async def test_all_tenants_together_have_a_bound_that_is_not_the_houses(
    names: TypeNames, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TENANTS_NAMES_MAX", 7)
    await names.know(TenantId(1), some("a", 5))
    await names.know(TenantId(2), some("b", 2))
    assert "All tenants together" in await refusal_of(names, TenantId(3), ["one.more"])
    await names.know(None, some("c", 8))
    await names.know(TenantId(3), some("c", 8))


@pytest.mark.usefixtures("few")
async def test_nobody_overruns_a_bound_by_being_many(names: TypeNames, theirs: TypeNames) -> None:
    servers = [names, theirs]
    for namer, most in (
        (Namer(), 8),
        (Namer(TenantId(1), by_worker=True), 5),
        (Namer(TenantId(2)), 5),
    ):
        kind = f"many{namer.tenant}"
        said = [
            servers[n % 2].bring(namer, [f"{kind}.{n}"], all_or_none=n % 3 == 0) for n in range(30)
        ]
        answers = await asyncio.gather(*said)
        taken = {name for brought in answers for name in brought.ids}
        assert (len(taken), sum(len(one.refused) for one in answers)) == (most, 30 - most)


async def test_who_names_what_another_server_knows_has_its_number(
    names: TypeNames, theirs: TypeNames
) -> None:
    ours = await names.know(TenantId(1), ["work"])
    await theirs.load()
    assert theirs.is_named_by(Namer(TenantId(1)), "work")
    assert not theirs.is_named_by(Namer(TenantId(2)), "work")
    assert not theirs.is_named_by(Namer(TenantId(1), by_worker=True), "work")
    assert await theirs.know(TenantId(2), ["work"]) == ours
    assert await theirs.know(None, ["work"]) == ours
    assert theirs.is_named_by(Namer(TenantId(3)), "work")


async def test_the_same_names_made_from_all_sides_have_one_number_each(platform: Platform) -> None:
    async def make(tenant: int) -> dict[str, TypeId]:
        async with platform.database.people() as connection, connection.transaction():
            if tenant == 0:
                return await name_for_all(connection, ["c", "b", "a"])
            return await name_for_tenant(
                connection, TenantId(tenant), ["a", "c", "b"], by_worker=False
            )

    answers = await asyncio.gather(*(make(tenant) for tenant in range(4)))
    assert len({tuple(sorted(one.items())) for one in answers}) == 1


async def test_who_floods_waits_for_itself(platform: Platform, names: TypeNames) -> None:
    """A tenant's turn is held for long; others and the house name types meanwhile."""
    as_set, names._database.wait_seconds = names._database.wait_seconds, 0.5
    async with names._turn(TenantId(1)):
        flood = [asyncio.create_task(names.know(TenantId(1), [f"flood.{n}"])) for n in range(20)]
        await asyncio.sleep(0)
        names._database.wait_seconds = as_set
        await names.know(TenantId(2), ["calm"])
        await names.know(None, ["house"])
        ended = await asyncio.gather(*flood, return_exceptions=True)
    assert {type(one) for one in ended} == {Unavailable}
    await names.know(TenantId(1), ["flood.0"])


async def test_a_name_is_asked_for_once(platform: Platform, names: TypeNames) -> None:
    await names.know(TenantId(1), ["work"])
    platform.database.terminate()
    await names.know(TenantId(1), ["work"])
    with pytest.raises(Unavailable):
        await names.know(TenantId(2), ["work"])


@pytest.mark.usefixtures("few")
async def test_a_worker_hears_what_is_refused_and_runs_the_rest(platform: Platform) -> None:
    tenant = await add_tenant(platform)
    (job,) = await submit(platform, tenant, new("t.3"))
    hand = Hand(platform, types=some("t", 10))
    news = await hand.say(hello=True)
    assert news is not None
    assert list(news.refused_types) == ["t.8", "t.9"]
    leases = news.leases or await hand.take()
    assert [lease.job.id for lease in leases] == [job]
    assert len(platform.dispatcher.sessions[hand.key].types) == 8
    quiet = await hand.say()
    assert quiet is not None
    assert not quiet.refused_types  # it was told


@pytest.mark.usefixtures("few")
async def test_an_own_worker_hears_it_too_and_takes_nothing_from_shared_ones(
    platform: Platform, tenant: Tenant
) -> None:
    own = Hand(platform, types=some("own", 7))
    own.tenant = tenant.id
    news = await own.say(hello=True)
    assert news is not None
    assert list(news.refused_types) == ["own.5", "own.6"]
    shared = Hand(platform, types=some("all", 8))
    news = await shared.say(hello=True)
    assert news is not None
    assert not news.refused_types


async def test_names_made_through_one_server_are_used_through_the_other(database_url: str) -> None:
    first, second = await open_pair(database_url)
    try:
        tenant = await add_tenant(first)
        await second.directory.run_once(0)
        (one,) = await submit(first, tenant, new("both"))
        (other,) = await submit(second, tenant, new("both"))
        leases = await Hand(first, types=["both"]).take(2)
        assert {lease.job.id for lease in leases} == {one, other}
    finally:
        await stopped(second)
        await stopped(first)


async def test_names_that_are_not_in_use_are_asked_for_together(
    names: TypeNames, theirs: TypeNames, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of usage may have hundreds of them."""
    numbers = await theirs.know(TenantId(1), some("old", 5))
    asked: list[int] = []
    ask = store.names_of

    async def counted(connection: Connection, types: Collection[TypeId]) -> dict[TypeId, str]:
        asked.append(len(types))
        return await ask(connection, types)

    monkeypatch.setattr(store, "names_of", counted)
    expected = {number: name for name, number in numbers.items()}
    gone = TypeId(987_654)
    for _ in range(2):
        assert await names.names_of([*expected, gone]) == expected | {gone: "type-987654"}
    assert asked == [6, 1], "once, but for what there is not"
