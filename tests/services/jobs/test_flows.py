"""Flows on a running server: who waits starts once, when it should, whoever dies meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.locked import held_flows
from tests.services.platform_room import (
    QUICK,
    Hand,
    add_tenant,
    freeze,
    new,
    open_pair,
    owner_on,
    owns_all,
    sight,
    stored,
    submit,
    until,
)
from tests.services.platform_room import kill as killed

from fairway.core.backlog.key_limits import KeyLimit, pack
from fairway.core.errors import Conflict, NotFound, Unavailable
from fairway.core.flows import Kind, Needs
from fairway.core.ids import JobId
from fairway.core.job import JobMarks
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.services.jobs.flow_cascades import FlowCascades
from fairway.services.maintenance.pruner import Pruner
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import End
from fairway.services.submit.flow_intake import FlowPage, MadeFlow, WantedFlow
from fairway.store import flows as store
from fairway.store.flows import FlowRecord

BROKEN = Outcome(OutcomeKind.FAILED, 5, failure=FailureClass.PERMANENT, error=b'{"type":"Oops"}')

MUTEX = pack([KeyLimit("customer-1", 1)])
MARKS = JobMarks(["nightly", "customer:17"], b'{"k":"v"}')


async def make(
    platform: Platform, tenant: Tenant, count: int, key: str | None = None, **more: Any
) -> MadeFlow:
    kind = more.pop("kind", Kind.GROUP)
    jobs = [new(payload=b'{"n":%d}' % n) for n in range(count)]
    wanted = WantedFlow(kind, jobs, **more)
    return await platform.flow_intake.create(tenant, wanted, (key, b"hash") if key else None)


async def chain(platform: Platform, tenant: Tenant, count: int, **more: Any) -> MadeFlow:
    arguments = [None] + ["before"] * (count - 1)
    return await make(platform, tenant, count, kind=Kind.CHAIN, arguments=arguments, **more)


async def states(platform: Platform, jobs: Sequence[str]) -> list[State]:
    return [(await stored(platform, job))[0] for job in jobs]


async def flow(platform: Platform, tenant: Tenant, made: MadeFlow) -> FlowRecord:
    return await platform.flows.look(tenant.id, JobId(made.id))


async def run(hand: Hand, count: int = 1, outcome: Outcome | None = None, **word: Any) -> list[str]:
    """Take so many jobs and end them; answers which."""
    leases = await hand.take(count)
    words = [hand.done(lease, outcome, **word) for lease in leases]
    assert (await hand.report(*words))[1] == set()
    return [lease.job.id for lease in leases]


async def test_a_result_is_the_next_ones_argument(platform: Platform, tenant: Tenant) -> None:
    made, hand = await chain(platform, tenant, 3), Hand(platform)
    first, second, third = made.jobs
    assert await states(platform, made.jobs) == [State.QUEUED, State.SCHEDULED, State.SCHEDULED]
    assert await run(hand, result=b'{"a":[1]}') == [first]
    (lease,) = await hand.take()
    assert (lease.job.id, lease.job.payload) == (second, b'{"before":{"a":[1]},"n":1}')
    await hand.report(hand.done(lease))
    (lease,) = await hand.take()
    assert (lease.job.id, lease.job.payload) == (third, b'{"before":null,"n":2}')
    assert (await flow(platform, tenant, made)).succeeded == 2
    await hand.report(hand.done(lease))
    found = await flow(platform, tenant, made)
    assert (found.succeeded, found.tally.live, found.finished_at is None) == (3, 0, False)


async def test_a_callback_starts_once_when_all_have_succeeded(
    platform: Platform, tenant: Tenant
) -> None:
    made = await make(platform, tenant, 5, callback=new(payload=b'{"last":1}'))
    hand = Hand(platform, short=8)
    leases = await hand.take(5)
    await hand.report(*[hand.done(lease) for lease in leases[:4]])
    assert await states(platform, [made.callback or ""]) == [State.SCHEDULED]
    last = hand.done(leases[4])
    await hand.report(last)
    await hand.report(last)  # heard again: nothing is counted twice
    (lease,) = await hand.take()
    assert (lease.job.id, lease.job.payload) == (made.callback, b'{"last":1}')
    await hand.report(hand.done(lease))
    assert (await flow(platform, tenant, made)).tally == (5, 5, 0, 0)
    assert platform.dispatcher.depth_of(tenant.id) == 0


async def test_a_replay_of_what_failed_lets_the_callback_start(
    platform: Platform, tenant: Tenant
) -> None:
    made, hand = await make(platform, tenant, 3, callback=new()), Hand(platform)
    leases = await hand.take(3)
    await hand.report(*[hand.done(one, BROKEN if n else None) for n, one in enumerate(leases)])
    found = await flow(platform, tenant, made)
    assert (found.tally, found.last_failed in made.jobs) == ((3, 1, 2, 0), True)
    assert await states(platform, [made.callback or ""]) == [State.SCHEDULED]
    assert await platform.flows.replay(tenant.id, JobId(made.id)) == 2
    assert (await flow(platform, tenant, made)).tally == (3, 1, 0, 0)
    await run(hand, 2)
    assert await run(hand) == [made.callback]


async def test_by_choice_a_callback_starts_whatever_became_of_the_rest(
    platform: Platform, tenant: Tenant
) -> None:
    made = await make(platform, tenant, 3, callback=new(), needs=Needs.ENDED)
    hand = Hand(platform, short=2)
    first, second = await hand.take(2)
    third = ({*made.jobs} - {first.job.id, second.job.id}).pop()
    await platform.control.cancel(tenant.id, JobId(third))
    await hand.report(hand.done(first, BROKEN), hand.done(second))
    assert await run(hand) == [made.callback]
    assert (await flow(platform, tenant, made)).tally == (3, 1, 1, 1)


async def test_what_will_never_be_is_not_waited_for(platform: Platform, tenant: Tenant) -> None:
    made = await chain(platform, tenant, 4)
    await platform.control.cancel(tenant.id, made.jobs[1])
    ends = await states(platform, made.jobs)
    assert ends == [State.QUEUED, *[State.CANCELLED] * 3]
    assert b"FlowIncomplete" in ((await sight(platform, tenant, made.jobs[3])).record.error or b"")
    assert (await flow(platform, tenant, made)).cancelled == 3


async def test_a_long_row_of_flows_is_given_up_in_parts(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever ends the first of them does not wait for all, nor does who wants its connection."""
    monkeypatch.setattr(store, "STEPS_MAX", 2)
    await platform.loops["flow cascades"].stop()
    made = await chain(platform, tenant, 9)
    await platform.control.cancel(tenant.id, made.jobs[0])
    early = await states(platform, made.jobs)
    assert 1 <= early.count(State.CANCELLED) <= 4
    cascades = FlowCascades(platform.database, platform.dispatcher, platform.watchers)
    async with held_flows(platform.database.dsn, tenant):
        assert await cascades.run_once(0) > 0
    assert await states(platform, made.jobs) == early
    while not await cascades.run_once(0):
        pass
    assert await states(platform, made.jobs) == [State.CANCELLED] * 9
    found = await flow(platform, tenant, made)
    assert (found.cancelled, found.finished_at is None) == (9, False)


async def test_the_end_of_a_member_is_not_refused_under_a_stale_term(
    platform: Platform, tenant: Tenant
) -> None:
    """While it waited to be counted another server took the shard, and this one has not heard."""
    await make(platform, tenant, 1)
    hand = Hand(platform, short=1)
    (lease,) = await hand.take()
    await freeze(platform)
    async with held_flows(platform.database.dsn, tenant):
        platform.dispatcher.succeeded([End(lease, 1, 10, b"1")])
        await until(lambda: bool(platform.recorder._flow_lines._waiting))
        async with platform.database.background() as connection:
            await connection.execute("UPDATE shards SET term = term + 1, owner = 'another'")
    await platform.recorder.drain()
    session = platform.dispatcher.sessions[hand.key]
    assert (session.recorded, session.refused, session.greeted) == ([], [], False)


async def test_jobs_wait_for_any_others(platform: Platform, tenant: Tenant) -> None:
    hand = Hand(platform, short=3)
    await submit(platform, tenant, *[new() for _ in range(3)])
    leases = await hand.take(3)  # they run already, and know of no flow
    await hand.report(hand.done(leases[0]))
    after = [JobId(lease.job.id) for lease in leases]
    made = [await make(platform, tenant, 1, after=after) for _ in range(2)]
    waiting = [one.jobs[0] for one in made]
    await hand.report(hand.done(leases[1]))
    assert await states(platform, waiting) == [State.SCHEDULED] * 2
    await hand.report(hand.done(leases[2]))
    assert sorted(await run(hand, 2)) == sorted(waiting)
    at_once = await make(platform, tenant, 1, after=after)
    assert await states(platform, at_once.jobs) == [State.QUEUED]


async def alone(hand: Hand) -> str:
    """The one job that is granted while there is room for more; ended."""
    (lease,) = await hand.take()
    news = await hand.say(wait_seconds=0.05)
    assert news is not None
    assert news.leases == []
    await hand.report(hand.done(lease))
    return lease.job.id


async def test_limits_and_tags_of_members_hold(platform: Platform, tenant: Tenant) -> None:
    job = new(limits=MUTEX, marks=MARKS)
    wanted = WantedFlow(Kind.GROUP, [job], callback=job, is_open=True)
    made = await platform.flow_intake.create(tenant, wanted, None)
    page = FlowPage(1, [job], is_last=True)
    members = [*made.jobs, *await platform.flow_intake.add_page(tenant, made.id, page)]
    hand = Hand(platform, short=4)
    assert [await alone(hand), await alone(hand)] == members
    other = await submit(platform, tenant, new(limits=MUTEX))  # beside it the callback waits, too
    assert {await alone(hand), await alone(hand)} == {made.callback, *other}
    for job_id in (*members, made.callback):
        record = (await sight(platform, tenant, JobId(job_id or ""))).record
        assert (record.tags, record.metadata) == (MARKS.tags, MARKS.metadata)
    listed = await platform.flows.jobs(tenant.id, JobId(made.id), "f" * 36, 10)
    assert [one.record.tags for one in listed.sights] == [MARKS.tags] * 2


async def test_a_link_of_a_chain_keeps_its_limits(platform: Platform, tenant: Tenant) -> None:
    jobs = [new(), new(limits=MUTEX)]
    wanted = WantedFlow(Kind.CHAIN, jobs, [None, "before"])
    made = await platform.flow_intake.create(tenant, wanted, None)
    hand = Hand(platform, short=4)
    (held,) = await submit(platform, tenant, new(limits=MUTEX))
    leases = {lease.job.id: lease for lease in await hand.take(2)}
    await hand.report(hand.done(leases[made.jobs[0]]))
    news = await hand.say(wait_seconds=0.05)
    assert news is not None
    assert news.leases == []
    await hand.report(hand.done(leases[held]))
    assert await run(hand) == [made.jobs[1]]


async def test_whom_nobody_can_wait_for(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant, new())
    other = await add_tenant(platform, "other")
    with pytest.raises(NotFound, match=job):
        await make(platform, other, 1, after=[job])
    await platform.control.cancel(tenant.id, job)
    with pytest.raises(Conflict, match="never succeed"):
        await make(platform, tenant, 1, after=[job])
    made = await make(platform, tenant, 1)
    with pytest.raises(NotFound):
        await platform.flows.look(other.id, JobId(made.id))


async def test_a_flow_is_cancelled_as_a_whole(platform: Platform, tenant: Tenant) -> None:
    made = await make(platform, tenant, 5, callback=new(), needs=Needs.ENDED)
    hand = Hand(platform, short=1)
    (lease,) = await hand.take()
    await platform.flows.cancel(tenant.id, JobId(made.id))
    await hand.report(hand.done(lease))  # it may succeed all the same
    assert await states(platform, [made.callback or ""]) == [State.CANCELLED]
    assert (await flow(platform, tenant, made)).tally == (5, 1, 0, 4)


async def test_a_group_comes_in_pages_and_each_once(platform: Platform, tenant: Tenant) -> None:
    made = await make(platform, tenant, 2, callback=new(), is_open=True)
    hand = Hand(platform, short=8)
    await run(hand, 2)
    assert await states(platform, [made.callback or ""]) == [State.SCHEDULED]  # more is to come
    add = platform.flow_intake.add_page
    page = FlowPage(2, [new(), new()], is_last=False)
    ids = await add(tenant, made.id, page)
    assert await add(tenant, made.id, page) == ids
    with pytest.raises(Conflict, match="has 4 jobs"):
        await add(tenant, made.id, page._replace(start=5))
    await run(hand, 2)
    assert await add(tenant, made.id, FlowPage(4, [], is_last=True)) == []
    assert await run(hand) == [made.callback]
    with pytest.raises(Conflict, match="complete"):
        await add(tenant, made.id, FlowPage(4, [new()], is_last=True))


async def test_a_flow_sent_again_is_the_same(platform: Platform, tenant: Tenant) -> None:
    one = await make(platform, tenant, 3, key="k", callback=new())
    two = await make(platform, tenant, 3, key="k", callback=new())
    assert (two.id, two.jobs, two.callback, two.replayed) == (one.id, one.jobs, one.callback, True)
    assert platform.dispatcher.depth_of(tenant.id) <= 3


async def test_a_result_too_large_to_hand_on_is_told(database_url: str, tmp_path: Path) -> None:
    async with owner_on(database_url, replace(QUICK, data_dir=tmp_path)) as platform:
        tenant = await add_tenant(platform)
        made, hand = await chain(platform, tenant, 2), Hand(platform)
        await run(hand, result=b'"' + b"x" * (QUICK.inline_bytes_max + 10) + b'"')
        record = (await sight(platform, tenant, made.jobs[1])).record
        assert (record.state, b"too large" in (record.error or b"")) == (State.CANCELLED, True)


async def test_the_next_owner_counts_on(database_url: str) -> None:
    """The owner dies with half of a group counted; the rest, and the callback, are the next's."""
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    await until(lambda: tenant.id in second.directory.tenants)
    made = await make(first, tenant, 6, callback=new())
    hand = Hand(first, short=3)
    leases = await hand.take(3)
    await hand.report(*[hand.done(lease) for lease in leases])
    await killed(first)
    await until(lambda: owns_all(second))
    other = Hand(second, short=8)
    await run(other, 3)
    assert await run(other) == [made.callback]
    assert (await flow(second, tenant, made)).tally == (6, 6, 0, 0)
    await second.stop()


async def test_old_flows_are_forgotten_with_those_that_wait(database_url: str) -> None:
    async with owner_on(database_url) as platform:
        tenant = await add_tenant(platform)
        made = await make(platform, tenant, 1, callback=new())
        async with platform.database.background() as connection:
            await connection.execute("UPDATE flows SET created_at = now() - interval '400 days'")
        pruner = Pruner(
            platform.database, platform.dispatcher, platform.store_clock, platform.instruments,
            platform.settings,
        )  # fmt: skip
        await pruner.run_once(0)
        assert await states(platform, [made.callback or ""]) == [State.CANCELLED]
        with pytest.raises(NotFound):
            await flow(platform, tenant, made)
        await run(Hand(platform))  # its member ends as if nothing were


async def test_no_member_ends_while_its_flow_may_be_in_another_shard(
    platform: Platform, tenant: Tenant
) -> None:
    """An operator acts for a tenant that moves: the flow would wait for that member for ever."""
    made, dead = await make(platform, tenant, 2), await make(platform, tenant, 1)
    hand = Hand(platform)
    await run(hand, 3, BROKEN)
    await platform.dead_letters.replay_one(tenant.id, made.jobs[0], None)
    move_flows = "UPDATE flows SET shard = shard + $1"
    async with platform.database.background() as connection:
        await connection.execute(move_flows, 1)
    platform.tenant_shards.learn(tenant.id, None, is_moving=True)
    for act in (
        lambda: platform.control.cancel(tenant.id, made.jobs[0]),
        lambda: platform.dead_letters.replay_one(tenant.id, dead.jobs[0], None),
    ):
        with pytest.raises(Unavailable) as refused:
            await act()
        assert refused.value.code == "TENANT_MOVING"
    async with platform.database.background() as connection:
        await connection.execute(move_flows, -1)
    platform.tenant_shards.learn(tenant.id, None)
    await platform.control.cancel(tenant.id, made.jobs[0])
    assert (await flow(platform, tenant, made)).tally.cancelled == 1
