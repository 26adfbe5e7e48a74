"""One call that waits for jobs in several parts: each part waits for its own, the first ends it.

Jobs that ended elsewhere meanwhile come with the next call, as they do with one shard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.jobs.wait_many import job_ids
from fairway.api.partial_waits import (
    ToldJobs,
    asking,
    decode_told,
    read_wait,
    reply_of,
)
from fairway.api.tenant_parts.replies import in_one_piece
from fairway.core.ids import JobId, shard_of
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform

OTHERS_SECONDS = 0.5  # for news of other parts, where one cannot be asked
Answer: TypeAlias = Callable[[Request], Awaitable[Response]]
Each: TypeAlias = Callable[[Request, Tenant, int], Request]


async def wait_for_all(
    request: Request, platform: Platform, tenant: Tenant, answer: Answer, each: Each
) -> Response:
    wanted = await read_wait(request)
    asked = _by_part(platform, tenant, job_ids(wanted.ids))
    if len(asked) <= 1:  # as a rule: who waits for the jobs of a batch
        place = next(iter(asked), 0)
        return await answer(asking(each(request, tenant, place), wanted))
    tasks = [
        asyncio.create_task(
            _told(asking(each(request, tenant, place), replace(wanted, ids=list(ids))), answer),
            name="part of a wait",
        )
        for place, ids in asked.items()
    ]
    try:
        return await _first_news(tasks, is_all=wanted.all)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _by_part(platform: Platform, tenant: Tenant, ids: list[JobId]) -> dict[int, list[JobId]]:
    """Those in no part of the tenant's are the first's to miss."""
    places = {
        part.shard: place for place, part in enumerate(platform.directory.parts.all_of(tenant))
    }
    found: dict[int, list[JobId]] = {}
    for job in ids:
        found.setdefault(places.get(shard_of(job), 0), []).append(job)
    return found


async def _first_news(tasks: list[asyncio.Task[Response]], *, is_all: bool) -> Response:
    """What is known once one part has answered; all of them where nothing is waited for.

    A part that cannot be asked says so first, and for as long as it has no owner: the others have a
    moment to tell of theirs. Who hears of some asks again for the rest.
    """
    until = asyncio.ALL_COMPLETED if is_all else asyncio.FIRST_COMPLETED
    done, pending = await asyncio.wait(tasks, return_when=until)
    if pending and any(_has_failed(task) for task in done):
        done |= (await asyncio.wait(pending, timeout=OTHERS_SECONDS))[0]
    failed = [task for task in done if _has_failed(task)]
    jobs: list[msgspec.Raw] = []
    missing: list[str] = []
    for task in done.difference(failed):
        told = decode_told(bytes(task.result().body))
        jobs += told.jobs
        missing += told.missing
    if failed and (is_all or not (jobs or missing)):
        return failed[0].result()
    return reply_of(ToldJobs(jobs, missing))


def _has_failed(task: asyncio.Task[Response]) -> bool:
    return task.cancelled() or task.exception() is not None or task.result().status_code != 200


async def _told(request: Request, answer: Answer) -> Response:
    return await in_one_piece(request, await answer(request))
