"""Ends of members of flows, beside the lanes: each tenant has a line of its own.

To count an end takes its tenant's lock, which a page of cancellations or a large flow that comes in
may hold for long. Nobody else's end waits for that: the lanes leave members of flows to this, one
group of each tenant's is under way at a time, and what comes meanwhile is its next group. An end
stays here until it is decided; how it is written, and with how many connections, is the caller's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from fairway.core.ids import ShardId, TenantId, Term
from fairway.runtime.telemetry import logger
from fairway.services.group_commit import BYTES_MAX, JOBS_MAX
from fairway.services.recording.flow_ends import EndRow
from fairway.services.recording.parent_ends import SIZES
from fairway.services.sessions.sessions import End

log = logger("flow_lines")


class FlowLine(NamedTuple):
    shard: ShardId
    term: Term  # under which its ends were taken
    tenant: TenantId


class Member(NamedTuple):
    """An end, and the row that its lane would have written."""

    end: End
    row: EndRow


class FlowLines:
    def __init__(self, write: Callable[[FlowLine, list[Member]], Awaitable[None]]) -> None:
        """`write` gets ends of one kind, and tells everyone how it went."""
        self._write = write
        self._waiting: dict[FlowLine, list[Member]] = {}  # each has a task
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, term_of: Callable[[ShardId], Term], members: Sequence[Member]) -> None:
        for member in members:
            shard = member.end.lease.shard
            line = FlowLine(shard, term_of(shard), member.end.lease.job.tenant)
            if line not in self._waiting:
                self._waiting[line] = []
                task = asyncio.create_task(self._advance(line), name="flow line")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            self._waiting[line].append(member)

    async def drain(self) -> None:
        """Wait until all that was added is decided; given up, it lets all of it go."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _advance(self, line: FlowLine) -> None:
        try:
            while self._waiting[line]:
                group, self._waiting[line] = next_group(self._waiting[line])
                try:
                    await self._write(line, group)
                except Exception as error:
                    log.error("ends of a flow failed", tenant=line.tenant, error=repr(error))
        finally:
            del self._waiting[line]


def next_group(waiting: Sequence[Member]) -> tuple[list[Member], list[Member]]:
    """As many as one write takes, of the kind of the first; and the rest, in their order."""
    group: list[Member] = []
    rest: list[Member] = []
    kind, jobs, weight_bytes = kind_of(waiting[0].end), 0, 0
    for member in waiting:
        more, more_bytes = SIZES.jobs(member.end), SIZES.bytes(member.end)
        fits = jobs + more <= JOBS_MAX and weight_bytes + more_bytes <= BYTES_MAX
        if kind_of(member.end) == kind and (fits or not group):
            group.append(member)
            jobs, weight_bytes = jobs + more, weight_bytes + more_bytes
        else:
            rest.append(member)
    return group, rest


def kind_of(end: End) -> tuple[bool, bool]:
    """Ends of one kind are written by one statement."""
    return end.decision is not None, end.children is not None
