"""What is held is handed over once, in turn, whatever befalls one tenant or one region."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from fairway.core.errors import NotFound, Unavailable
from fairway.core.ids import FIRST_SHARD, LOWEST_JOB_ID, JobId, PoolId, TenantId, make_job_ids
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.regions.hand_over import in_doubt_here
from fairway.core.regions.held import HeldCall, HeldKind, SentTo
from fairway.core.regions.homes import (
    NEVER_MOVED,
    DirectoryTerm,
    Home,
    HomeTerm,
    HomeVersion,
    Meant,
)
from fairway.core.regions.region_map import region_map
from fairway.core.unique import WHILE_LIVE, UniqueWish, digest_of
from fairway.runtime.clock import SystemClock
from fairway.runtime.random_ids import JobIdFactory
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.regions import hand_over
from fairway.services.regions.hand_over import HandOver
from fairway.services.regions.held import BYTES_MAX_A_JOB, SMALL_BYTES, TENANT_PART, HeldJobs
from fairway.services.regions.home_table import HomeTable
from fairway.services.regions.peer_calls import JOBS_PATH, KNOWN_PATH, RegionAway, RegionPeers
from fairway.services.regions.region_metrics import RegionMetrics
from fairway.services.submit.submission_group import NewJob
from fairway.store.connections.database import Connection, Database
from fairway.store.regions import held_jobs as store

IDS = JobIdFactory(SystemClock(), 1)
ONE, TWO, THREE = TenantId(1), TenantId(2), TenantId(3)


class Shards:
    def open_shards(self) -> set[int]:
        return {FIRST_SHARD}


class Homes:
    here = "us"

    def __init__(self, moves: int = 0, **homes: str) -> None:
        self.of = {TenantId(int(tenant[1:])): region for tenant, region in homes.items()}
        self.moves = moves  # of each of them so far

    def home_of(self, tenant: TenantId) -> str:
        return self.of[tenant]

    def meant(self, tenant: TenantId) -> Meant:
        home = Home(self.of[tenant], HomeTerm(self.moves), DirectoryTerm(1))
        return Meant(f"t{tenant}", home if self.moves else None)


class Peers:
    """Regions that take everything, unless they are said to do otherwise."""

    def __init__(self, answer: Callable[[str, str, Any], bytes] | None = None) -> None:
        self.away: set[str] = set()
        self.heard: list[tuple[str, str]] = []
        self._answer = answer

    def is_away(self, region: str) -> bool:
        return False  # heard again at once: its servers answer, and take nothing

    async def call(self, region: str, path: str, body: bytes, seconds: float) -> bytes:
        self.heard.append((region, path))
        said = msgspec.msgpack.decode(body)
        if path == JOBS_PATH:
            said, meant = said
            assert all(meant[call[0]][0] == f"t{call[0]}" for call in said)
        if self._answer is not None:
            return self._answer(region, path, said)
        return msgspec.msgpack.encode([[None] * len(said), {}])


def encoded(
    tenant: TenantId,
    ids: Sequence[JobId],
    keys: Sequence[str | None],
    unique: UniqueWish | None = None,
) -> bytes:
    """A call of these jobs, as the API writes it; `unique` is the wish of those with keys."""
    plain = NewJob("work", PoolId(1), 5, None, b"{}")
    new = [plain._replace(idempotency_key=key, unique=unique if key else None) for key in keys]
    return msgspec.msgpack.encode([tenant, len(ids), True, 0, ids[0], None, new])


async def hold(
    database: Database,
    tenant: TenantId,
    jobs: int = 1,
    offered_to: str | None = None,
    keys: Sequence[str | None] | None = None,
    unique: UniqueWish | None = None,
) -> list[JobId]:
    ids = IDS.make(FIRST_SHARD, jobs)
    body = encoded(tenant, ids, keys or [None] * jobs, unique)
    under = NEVER_MOVED if offered_to else None
    call = HeldCall(FIRST_SHARD, tenant, ids[0], ids[-1], jobs, body, offered_to, under)
    async with database.background() as connection:
        await store.hold(connection, call)
    return ids


async def held(database: Database, tenant: TenantId) -> dict[str, str | None]:
    """What waits, and whom it was offered to."""
    async with database.background() as connection:
        rows = await connection.fetch(
            "SELECT id::text, offered_to FROM held_jobs WHERE tenant = $1", tenant
        )
    return {row["id"]: row["offered_to"] for row in rows}


def handing(database: Database, homes: Homes, peers: Any) -> HandOver:
    return HandOver(
        database,
        cast(Dispatcher, Shards()),
        cast(HomeTable, homes),
        cast(RegionPeers, peers),
        RegionMetrics(CollectorRegistry()),
    )


def found_by(database: Database, homes: Homes) -> HeldJobs:
    shards, metrics = TenantShards(1), RegionMetrics(CollectorRegistry())
    return HeldJobs(database, metrics, cast(HomeTable, homes), 100, 1, tenant_shards=shards)


async def test_each_of_calls_whose_ids_lie_between_each_other_is_found(database: Database) -> None:
    calls = [make_job_ids(FIRST_SHARD, 1_000, 0, chance, 3) for chance in (5, 7)]
    assert calls[0][0] < calls[1][0] < calls[0][1] < calls[1][1]
    for ids in calls:
        body = encoded(ONE, ids, [None] * len(ids))
        call = HeldCall(FIRST_SHARD, ONE, ids[0], ids[-1], len(ids), body, None, None)
        async with database.background() as connection:
            await store.hold(connection, call)
    held_jobs = found_by(database, Homes(t1="us"))
    for ids in calls:
        for place, job in enumerate(ids):
            found = await held_jobs.find(ONE, job)
            assert found is not None
            assert (found.found.id, [*found.jobs]) == (ids[0], [ids[place]])


async def test_jobs_that_wait_by_themselves_hide_no_call_of_their_millisecond(
    database: Database,
) -> None:
    """A batch was taken in part, and each of the others waits alone, between another batch's."""
    whole, apart = [make_job_ids(FIRST_SHARD, 1_000, 0, chance, 60) for chance in (5, 7)]
    call = HeldCall(FIRST_SHARD, ONE, whole[0], whole[-1], len(whole), b"x", None, None)
    async with database.background() as connection:
        await store.hold(connection, call)
        for one in apart:
            alone = HeldCall(FIRST_SHARD, ONE, one, one, 1, b"x", None, None)
            await store.hold(connection, alone)
        found = [await store.find(connection, FIRST_SHARD, ONE, one) for one in (*whole, *apart)]
    assert [rows[0].id for rows in found] == [whole[0]] * 60 + apart


async def test_ids_of_one_millisecond_are_looked_for_without_what_left_in_it(
    database: Database, connection: Connection
) -> None:
    """Ten thousand of a batch that went to another region, a narrow row each: for every id that is
    asked for they had all been looked through."""
    ids = make_job_ids(FIRST_SHARD, 1_000, 0, 5, 10_000)
    await connection.execute(
        "INSERT INTO held_jobs (shard, tenant, id, last_id, kind, job_count, body, told)"
        " SELECT $1, $2, id, id, 1, 1, '', '\"\"' FROM unnest($3::uuid[]) AS id",
        *(FIRST_SHARD, ONE, ids),
    )
    asked = [*make_job_ids(FIRST_SHARD, 1_000, 0, 7, 10_000)[::100], ids[5]]
    began = asyncio.get_running_loop().time()
    assert await store.find_many(connection, FIRST_SHARD, ONE, asked) == []
    assert asyncio.get_running_loop().time() - began < 0.1, "176 ms, and more beside load"


async def test_large_calls_of_a_tenant_are_read_one_at_a_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, reading, most, body_of = IDS.make(FIRST_SHARD, 2), 0, 0, store.body_of
    plain = NewJob("work", PoolId(1), 5, None, b"{}" + b" " * SMALL_BYTES)
    body = msgspec.msgpack.encode([ONE, 2, True, 0, ids[0], None, [plain, plain]])

    async def counted(*asked: Any) -> bytes | None:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        found = await body_of(*asked)
        reading -= 1
        return found

    known = found_by(database, Homes(t1="eu"))
    call = HeldCall(FIRST_SHARD, ONE, ids[0], ids[1], 2, body, None, None)
    async with database.background() as connection:
        await store.hold(connection, call)
    monkeypatch.setattr(store, "body_of", counted)
    sights = await asyncio.gather(*(known.find(ONE, ids[n % 2]) for n in range(6)))
    assert [[*sight.jobs] for sight in sights if sight] == [[ids[n % 2]] for n in range(6)]
    assert (reading, most) == (0, 1)


async def test_many_whose_home_is_away_keep_nobody_waiting(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hand_over, "TENANTS_PER_ROUND", 2)
    peers = Peers()
    peers.is_away = lambda region: region == "eu"  # type: ignore[method-assign]
    for tenant in (ONE, TWO, THREE):
        await hold(database, tenant)
    handed = handing(database, Homes(t1="eu", t2="eu", t3="us"), peers)
    await handed.run_once(0)
    await handed.run_once(0)
    assert not await held(database, THREE)
    assert await held(database, ONE)


async def test_what_is_held_for_a_lost_region_is_not_read_again_and_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def too_much(*_: Any) -> list[store.HeldRow]:
        pytest.fail("two hundred bodies for nobody, twice a second and for each tenant")

    await hold(database, ONE)
    peers = Peers()
    peers.is_away = lambda region: region == "eu"  # type: ignore[method-assign]
    monkeypatch.setattr(store, "held_of", too_much)
    await handing(database, Homes(t1="eu"), peers).run_once(0)


async def test_what_nobody_can_read_of_one_tenant_holds_up_no_other(database: Database) -> None:
    def answer(region: str, path: str, said: Any) -> bytes:
        of_one = said[0][0] == ONE
        return msgspec.msgpack.encode([[[["an", "answer"]] * 7 if of_one else None], {}])

    await hold(database, ONE, jobs=2)
    await hold(database, TWO)
    await handing(database, Homes(t1="eu", t2="eu"), Peers(answer)).run_once(0)
    assert not await held(database, TWO)
    assert await held(database, ONE)


async def test_a_home_that_hangs_costs_one_call_a_round(database: Database) -> None:
    class Hung(Peers):
        async def call(self, region: str, path: str, body: bytes, seconds: float) -> bytes:
            if region == "us":
                return await super().call(region, path, body, seconds)
            self.heard.append((region, path))
            self.away.add(region)
            raise RegionAway(region, is_open=True)

        def is_away(self, region: str) -> bool:
            is_away = region in self.away
            self.away.discard(region)  # the watch hears it again
            return is_away

    peers = Hung()
    for tenant in (ONE, TWO, THREE):
        await hold(database, tenant)
    await handing(database, Homes(t1="eu", t2="eu", t3="us"), peers).run_once(0)
    assert peers.heard == [("eu", JOBS_PATH), ("us", JOBS_PATH)]


async def test_a_region_that_this_one_was_not_told_of_is_away(database: Database) -> None:
    regions = region_map("eu", "eu=http://127.0.0.1:8;us=http://127.0.0.1:9")
    assert regions is not None
    peers = RegionPeers(regions, "secret")
    ids = await hold(database, ONE)
    await handing(database, Homes(t1="asia"), peers).run_once(0)
    assert list(await held(database, ONE)) == ids[:1]


async def test_what_the_next_owner_sent_elsewhere_is_not_sent_again(
    database: Database, connection: Connection
) -> None:
    """A server that was stopped between its look and its offer."""
    (job,) = await hold(database, ONE)
    us, eu = (SentTo(FIRST_SHARD, ONE, region, NEVER_MOVED) for region in ("us", "eu"))
    assert await store.offer(connection, us, [job]) == {job}
    assert await store.offer(connection, us, [job]) == {job}, "asked again, after no answer"
    assert await store.offer(connection, eu, [job]) == set()
    await store.withdraw(connection, eu, [job])
    assert await held(database, ONE) == {job: "us"}
    await store.withdraw(connection, us, [job])
    assert await held(database, ONE) == {job: None}
    again = us._replace(under=HomeVersion(DirectoryTerm(1), HomeTerm(3)))
    assert await store.offer(connection, again, [job]) == {job}
    await store.withdraw(connection, us, [job])
    assert await held(database, ONE) == {job: "us"}, "by who asked before the home was it again"


@pytest.mark.parametrize("kind", [HeldKind.SUBMISSION, HeldKind.JOB])
async def test_a_late_answer_settles_nothing_that_has_come_back(
    database: Database, connection: Connection, kind: HeldKind
) -> None:
    """Its server stood still while the job went there, came back and was sent there anew."""
    (job,) = await hold(database, ONE)
    await connection.execute("UPDATE held_jobs SET kind = $1", kind)
    before = SentTo(FIRST_SHARD, ONE, "eu", NEVER_MOVED)
    now = before._replace(under=HomeVersion(DirectoryTerm(1), HomeTerm(3)))
    assert await store.offer(connection, now, [job]) == {job}
    assert not await store.handed_over(connection, before, [job])
    assert not await store.tell(connection, before, job, '""')
    assert [row.id for row in await store.held_of(connection, now, 1)] == [job], "it was lost"
    assert await store.handed_over(connection, now, [job])


async def test_a_call_that_was_not_held_is_not_accepted(database: Database) -> None:
    """Its server stood still: the home has taken the first of the jobs, which has come here since.
    Of the others nobody knows."""
    (job,) = await hold(database, ONE)
    known, body = found_by(database, Homes(t1="eu")), encoded(ONE, [job], [None])
    late = HeldCall(FIRST_SHARD, ONE, job, job, 3, body, "eu", NEVER_MOVED)
    with pytest.raises(Unavailable, match="not known whether this was accepted"):
        await known.hold(late)
    await known.hold(late._replace(jobs=1))


async def test_a_call_that_is_taken_apart_while_it_is_looked_for_is_found(
    database: Database, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await hold(database, ONE, 3)
    known, body_of = found_by(database, Homes(t1="eu")), store.body_of

    async def apart_then(looking: Connection, *asked: Any) -> bytes | None:
        monkeypatch.undo()
        await connection.execute("DELETE FROM held_jobs")
        for one in ids:
            body = encoded(ONE, [one], [None])
            part = HeldCall(FIRST_SHARD, ONE, one, one, 1, body, None, None)
            await store.hold(connection, part)
        return await body_of(looking, *asked)

    monkeypatch.setattr(store, "body_of", apart_then)
    sight = await known.find(ONE, ids[1])
    assert sight is not None
    assert (sight.found.id, [*sight.jobs]) == (ids[1], [ids[1]])


async def test_beside_jobs_that_are_there_one_with_a_key_is_an_earlier_one(
    database: Database,
) -> None:
    replacing = UniqueWish(digest_of("k"), WHILE_LIVE, replaces=True)
    ids = await hold(database, ONE, 3, "eu", keys=["k", None, None])
    others = await hold(database, ONE, 2, "eu", keys=["l", None], unique=replacing)

    def answer(region: str, path: str, said: Any) -> bytes:
        there = {*ids[1:], others[1]}
        return msgspec.msgpack.encode([one for one in said[1] if one in there])

    peers = Peers(answer)
    await handing(database, Homes(t1="us"), peers).run_once(0)
    assert [region for region, _ in peers.heard] == ["eu"]
    left = {ids[0]: "eu", others[0]: "eu"}
    assert await held(database, ONE) == left, "its shard may have had no owner: it was lost"
    known = found_by(database, Homes(t1="us"))
    with pytest.raises(NotFound, match="an earlier job has its Idempotency-Key, in the region eu"):
        await known.find(ONE, ids[0])
    assert await known.find(ONE, others[0]) is not None


@pytest.mark.parametrize("is_there", [True, False])
async def test_what_was_sent_under_an_older_home_is_asked_about_first(
    database: Database, *, is_there: bool
) -> None:
    """The region took it and handed it over when the home moved on, and it ended there; at home
    again, it would take it for new."""
    (job,) = await hold(database, ONE, offered_to="eu")

    def answer(region: str, path: str, said: Any) -> bytes:
        if path == KNOWN_PATH:
            return msgspec.msgpack.encode([job] if is_there else [])
        return msgspec.msgpack.encode([[None], {}])

    peers = Peers(answer)
    handed = handing(database, Homes(moves=2, t1="eu"), peers)
    for _ in range(2):
        await handed.run_once(0)
    sent = [] if is_there else [("eu", JOBS_PATH)]
    assert peers.heard == [("eu", KNOWN_PATH), *sent]
    assert not await held(database, ONE)


async def test_what_a_lost_home_did_not_take_of_a_call_goes_to_the_next_one(
    database: Database,
) -> None:
    """A job that replaces others, in a batch: its shard had no owner. It was lost with the call."""
    ids = await hold(database, ONE, 3, "eu")
    sent: list[Any] = []

    def answer(region: str, path: str, said: Any) -> bytes:
        if path == KNOWN_PATH:
            return msgspec.msgpack.encode([one for one in said[1] if one != ids[1]])
        sent.extend(said)
        return msgspec.msgpack.encode([[None] * len(said), {}])

    handed = handing(database, Homes(t1="us"), Peers(answer))
    await handed.run_once(0)
    assert await held(database, ONE) == {ids[1]: "eu"}, "it is asked for by itself"
    await handed.run_once(0)
    assert await held(database, ONE) == {ids[1]: None}
    await handed.run_once(0)
    assert not await held(database, ONE)
    assert sent == [msgspec.msgpack.decode(encoded(ONE, ids[1:2], [None]))]


async def test_of_a_call_that_is_taken_in_part_each_other_job_is_by_itself(
    database: Database,
) -> None:
    """Sent again as a whole, it would bring what was taken once more, after that was forgotten."""
    ids = await hold(database, ONE, 4)
    other, for_good = JobId("0198c5a4-0000-7000-8000-000000000000"), {"code": "NOT_UNIQUE"}
    says: list[Any] = [[[ids[0], False], {"code": "NOT_OWNER"}, [other, True], for_good], None]
    sent: list[Any] = []

    def answer(region: str, path: str, said: Any) -> bytes:
        sent.append(said)
        return msgspec.msgpack.encode([[says.pop(0)], {}])

    homes = Homes(t1="us")
    handed, metrics = handing(database, homes, Peers(answer)), RegionMetrics(CollectorRegistry())
    known = HeldJobs(database, metrics, cast(HomeTable, homes), 9, 1, tenant_shards=TenantShards(1))
    await handed.run_once(0)
    assert await known.find(ONE, ids[0]) is None, "it is there"
    waiting, became = [await known.find(ONE, job) for job in ids[1:3]]
    assert waiting is not None
    assert (waiting.found.id, [*waiting.jobs], waiting.became) == (ids[1], [ids[1]], None)
    assert became is not None
    assert became.became == other
    with pytest.raises(NotFound, match="refused there"):
        await known.find(ONE, ids[3])
    await handed.run_once(0)
    assert sent[1] == [msgspec.msgpack.decode(encoded(ONE, ids[1:2], [None]))]
    assert await known.find(ONE, ids[1]) is None


async def test_what_a_region_offered_to_itself_is_not_taken_for_arrived(
    database: Database, connection: Connection
) -> None:
    """It was the home, and was refused by its own server that had heard of a failback."""
    (job,) = await hold(database, ONE, offered_to="us")
    sent: list[Any] = []

    class Itself(Peers):
        async def call(self, region: str, path: str, body: bytes, seconds: float) -> bytes:
            self.heard.append((region, path))
            if path == KNOWN_PATH:
                tenant, ids, asker, _ = msgspec.msgpack.decode(body)
                but = in_doubt_here(region, asker)
                of_shard = connection, FIRST_SHARD, tenant, ids
                found = await store.known_jobs(*of_shard, but_offered_to=but)
                return msgspec.msgpack.encode(sorted(found))
            sent.append(msgspec.msgpack.decode(body)[0])
            return msgspec.msgpack.encode([[None], {}])

    peers = Itself()
    handed = handing(database, Homes(t1="eu"), peers)
    await handed.run_once(0)
    assert await held(database, ONE) == {job: None}
    await handed.run_once(0)
    assert peers.heard == [("us", KNOWN_PATH), ("eu", JOBS_PATH)]
    assert sent == [[msgspec.msgpack.decode(encoded(ONE, [job], [None]))]]
    assert not await held(database, ONE)


async def test_what_cannot_be_handed_over_keeps_nothing_behind_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In doubt for as long as a region is lost, or refused for a pool that the home lacks."""
    monkeypatch.setattr(hand_over, "ROWS_AT_ONCE", 2)
    in_doubt = [(await hold(database, ONE, offered_to="asia"))[0] for _ in range(3)]
    refused = [(await hold(database, ONE))[0] for _ in range(3)]
    last = await hold(database, ONE)
    said = [{"code": "UNKNOWN_POOL"}] * 3

    def answer(region: str, path: str, calls: Any) -> bytes:
        return msgspec.msgpack.encode([[said.pop() if said else None for _ in calls], {}])

    peers = Peers(answer)
    peers.away.add("asia")
    handed = handing(database, Homes(t1="us"), peers)
    await handed.run_once(0)
    await handed.run_once(0)
    assert (await held(database, ONE)).keys() == {*in_doubt, *refused}, last
    for _ in range(3):
        await handed.run_once(0)
    assert (await held(database, ONE)).keys() == {*in_doubt}
    assert {path for _, path in peers.heard} == {JOBS_PATH}


async def test_what_was_sent_to_another_region_than_the_home_is_in_doubt(
    database: Database,
) -> None:
    for offered_to in ("asia", "us", None):  # what the home said no to is sent there again
        await hold(database, ONE, 2, offered_to=offered_to)
    homes, metrics = cast(HomeTable, Homes(t1="us")), RegionMetrics(CollectorRegistry())
    counted = HeldJobs(database, metrics, homes, 100, 1, tenant_shards=TenantShards(1))
    await counted.count(0)
    assert (counted.jobs, counted.in_doubt) == (6, 2)


async def test_of_heavy_calls_no_more_is_read_than_is_sent(
    database: Database, connection: Connection
) -> None:
    """Two hundred batches of 16 MB were read, and one of them sent, twice a second."""
    ids = IDS.make(FIRST_SHARD, 5)
    for id_, size_bytes in zip(ids, (100, 5 << 20, 100, 3 << 20, 3 << 20), strict=True):
        call = HeldCall(FIRST_SHARD, ONE, id_, id_, 1, bytes(size_bytes), None, None)
        await store.hold(connection, call)

    async def read(after: str = LOWEST_JOB_ID) -> list[JobId]:
        rows = await store.held_of(
            connection, SentTo(FIRST_SHARD, ONE, "us", NEVER_MOVED), 200, after
        )
        return [row.id for row in rows]

    assert await read() == ids[:2]
    assert await read(ids[1]) == ids[2:]
    assert await read(ids[0]) == ids[1:2], "one by itself, however heavy"


async def test_one_tenant_has_its_part_of_the_bytes_that_may_be_held(database: Database) -> None:
    homes, metrics = cast(HomeTable, Homes(t1="us", t2="us")), RegionMetrics(CollectorRegistry())
    held_jobs = HeldJobs(database, metrics, homes, 400, 1, tenant_shards=TenantShards(1))

    async def held_of(tenant: TenantId, size_bytes: int) -> None:
        (id_,) = IDS.make(FIRST_SHARD, 1)
        body = bytes(size_bytes)
        await held_jobs.hold(HeldCall(FIRST_SHARD, tenant, id_, id_, 1, body, None, None))

    part = 400 * BYTES_MAX_A_JOB // TENANT_PART
    await held_of(ONE, part - 10)
    with pytest.raises(Unavailable) as refused:
        await held_of(ONE, 11)
    assert refused.value.code == "HELD_FULL"
    await held_of(TWO, part)
    await held_jobs.count(0)
    with pytest.raises(Unavailable):
        await held_of(TWO, 1)
    await held_of(ONE, 10)


async def test_calls_that_come_at_one_moment_are_held_within_the_bound(database: Database) -> None:
    """All who waited for a home that hangs: none of them was counted before all were let in."""
    homes, metrics = cast(HomeTable, Homes(t1="us")), RegionMetrics(CollectorRegistry())
    held_jobs = HeldJobs(database, metrics, homes, 400, 1, tenant_shards=TenantShards(1))

    async def is_held() -> bool:
        ids = IDS.make(FIRST_SHARD, 10)
        call = HeldCall(FIRST_SHARD, ONE, ids[0], ids[-1], len(ids), b"", None, None)
        try:
            await held_jobs.hold(call)
        except Unavailable:
            return False
        return True

    held_at_once = await asyncio.gather(*(is_held() for _ in range(40)))
    assert sum(held_at_once) * 10 == 400 // TENANT_PART
    await held_jobs.count(0)
    assert held_jobs.jobs == 400 // TENANT_PART
