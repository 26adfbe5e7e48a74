"""`fairway.testing` has no flows of its own kind: the same story ends there as it does here."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from msgspec import Raw
from tests.services.jobs.test_flows import BROKEN, states
from tests.services.platform_room import Hand, new

from fairway import App, Fail, chain, group, testing
from fairway.core.flows import Kind, Needs
from fairway.core.ids import JobId
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.submit.flow_intake import WantedFlow

app = App("stories", url="http://127.0.0.1:9", patience=0)  # nothing listens there


@app.job
def work(before: int, end: str) -> int:
    if end == "fails":
        raise Fail("as it was told")
    return before + 1


class Story(NamedTuple):
    kind: Any
    ends: list[str]  # of each member: it succeeds, fails, or is cancelled before anything runs
    on_all: Any = "succeeded"
    replays: bool = False  # those that failed, and then they succeed


STORIES = [
    Story("chain", ["succeeds"] * 3),
    Story("chain", ["succeeds", "fails", "succeeds"]),
    Story("chain", ["fails", "succeeds"], replays=True),
    Story("chain", ["succeeds", "cancelled", "succeeds"]),
    Story("group", ["succeeds"] * 2),
    Story("group", ["succeeds", "fails"]),
    Story("group", ["succeeds", "fails"], replays=True),
    Story("group", ["fails", "cancelled"], replays=True),
    Story("group", ["succeeds", "fails", "cancelled"], on_all="ended"),
    Story("group", ["fails"], on_all="ended", replays=True),
]

Ending = tuple[list[State], tuple[int, ...], bool]


async def on_a_server(platform: Platform, tenant: Tenant, story: Story) -> Ending:
    is_chain, ends = story.kind == "chain", story.ends
    arguments = [None] + ["before"] * (len(ends) - 1) if is_chain else []
    callback = None if is_chain else new()
    wanted = WantedFlow(
        Kind[story.kind.upper()], [new() for _ in ends], arguments, callback,
        Needs[story.on_all.upper()],
    )  # fmt: skip
    made = await platform.flow_intake.create(tenant, wanted, None)
    jobs = [*made.jobs, *([made.callback] if made.callback else [])]
    for job, end in zip(made.jobs, ends, strict=True):
        if end == "cancelled":
            await platform.control.cancel(tenant.id, job)
    fails = {job for job, end in zip(made.jobs, ends, strict=True) if end == "fails"}
    hand = Hand(platform)

    async def run_all() -> None:
        while State.QUEUED in await states(platform, jobs):
            leases = await hand.take()
            told = [(one, BROKEN if one.job.id in fails else None) for one in leases]
            await hand.report(*[hand.done(*one) for one in told])

    await run_all()
    if story.replays:
        fails.clear()
        await platform.flows.replay(tenant.id, JobId(made.id))
        await run_all()
    found = await platform.flows.look(tenant.id, JobId(made.id))
    return await states(platform, jobs), found.tally, found.finished_at is not None


def in_memory(story: Story) -> Ending:
    is_chain = story.kind == "chain"
    calls = [
        work.s(end=end) if is_chain and n else work.s(0, end=end)
        for n, end in enumerate(story.ends)
    ]
    with testing.manual() as mode:
        callback = work.s(0, end="succeeds")
        flow = chain(*calls) if is_chain else group(calls, then=callback, on_all=story.on_all)
        handle = flow.enqueue()
        for one, end in zip(handle.jobs, story.ends, strict=True):
            if end == "cancelled":
                one.cancel()
        testing.drain()
        if story.replays:
            for record in mode.enqueued:
                payload = bytes(record.request.payload).replace(b"fails", b"succeeds")
                record.request.payload = Raw(payload)
            handle.replay()
            testing.drain()
        status = handle.status()
        tally = (status.total, status.succeeded, status.failed, status.cancelled)
        return [one.state for one in mode.enqueued], tally, status.finished_at is not None


@pytest.mark.parametrize("kind", ["chain", "group"])
async def test_a_story_ends_in_memory_as_it_does_on_a_server(
    platform: Platform, tenant: Tenant, kind: str
) -> None:
    for story in STORIES:
        if story.kind == kind:
            assert in_memory(story) == await on_a_server(platform, tenant, story), story
