"""`POST /v1/jobs/wait`: one call that waits for many jobs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.auth import caller_of
from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.asgi import read_body
from fairway.api.http.decoding import UNDECODABLE, invalid, json_reply
from fairway.api.jobs import views
from fairway.api.relay import RelayedReply
from fairway.core.errors import InvalidRequest
from fairway.core.ids import JobId, ShardId, parse_job_id
from fairway.core.tenant import Tenant
from fairway.runtime.loops import SLICE_REST_SECONDS, pause
from fairway.services.platform import Platform
from fairway.wire.bulk import IDS_MAX, JobsEnded, WaitForJobs, decode_wait

BODY_BYTES_MAX = 64 * IDS_MAX
TOLD_MAX = 200  # jobs in one answer, and missing ones; the rest with the next
FEW_IDS = 100  # nobody waits for a turn with so many


@Endpoint(
    "POST /v1/jobs/wait",
    keys=("tenant",),
    permission="read",
    body=WaitForJobs,
    body_example={"ids": [parts.JOB_ID], "wait_seconds": 30},
    reply=Reply(
        200,
        "Those that have ended.",
        JobsEnded,
        {"jobs": [parts.JOB_EXAMPLE], "missing": []},
    ),
    problems=("NOT_OWNER", *parts.QUICK),
)
async def wait_for_jobs(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Wait for many jobs

    Answers as soon as any of these jobs has ended, with all that have; ask again with the rest.
    It takes the place of a call and a connection for each. A server without room for one more such
    call answers at once how things stand.
    """
    shard = platform.tenant_shards.of(tenant.id)
    body = await read_body(request.scope, request.receive, BODY_BYTES_MAX)
    if request.app.state.relay.is_elsewhere(shard):
        return RelayedReply(request.app.state.relay, body, shard)
    try:
        wanted = decode_wait(body)
    except UNDECODABLE as error:
        raise invalid(error, body) from None
    async with AsyncExitStack() as turn:  # of the tenant's, until it waits: this is free
        if len(wanted.ids) > FEW_IDS:
            await turn.enter_async_context(platform.long_looks.held(tenant.id, is_small=True))
            await pause(SLICE_REST_SECONDS)  # others get more than what this takes
        asked_by = caller_of(request).key_id, tenant
        return json_reply(await _told(platform, asked_by, shard, wanted, turn))


async def _told(
    platform: Platform,
    asked_by: tuple[str, Tenant],
    shard: ShardId,
    wanted: WaitForJobs,
    turn: AsyncExitStack,
) -> JobsEnded:
    ids, (_, tenant) = job_ids(wanted.ids), asked_by
    homes = platform.tenant_shards
    jobs = [job for job in ids if homes.of_job(tenant.id, job) == shard]
    missing: list[str] = sorted(set(ids) - set(jobs))  # of other tenants, whoever they are
    if not wanted.all:
        if missing:  # that is news
            wanted = replace(wanted, wait_seconds=0)
        jobs, gone = await _ended(platform, asked_by, shard, jobs, wanted, turn)
        if gone:
            homes.still_takes(tenant.id, shard)  # where they were: who waited asks again
        missing += gone
    records = await platform.many_waits.views(tenant.id, shard, jobs[:TOLD_MAX]) if jobs else []
    sights = await platform.job_lookup.with_runs(tenant.id, records)
    found = [await views.job_view(one, platform.directory, whole=False) for one in sights]
    return JobsEnded(jobs=found, missing=missing[:TOLD_MAX])


def job_ids(texts: Sequence[str]) -> list[JobId]:
    """Each once; what can be no id is a mistake of the caller's, not a job that is gone."""
    found: dict[JobId, None] = {}
    for place, text in enumerate(texts):
        job = parse_job_id(text)
        if job is None:
            raise InvalidRequest(
                f"{text[:64]!r} is no job id: it is a UUID, as the answer to a submission has it.",
                field=f"/ids/{place}",
            )
        found[job] = None
    return list(found)


async def _ended(
    platform: Platform,
    asked_by: tuple[str, Tenant],
    shard: ShardId,
    jobs: list[JobId],
    wanted: WaitForJobs,
    turn: AsyncExitStack,
) -> tuple[list[JobId], list[str]]:
    (key_id, tenant), caller = asked_by, wanted.caller
    waiting, seconds = platform.waiting, wanted.wait_seconds
    with ExitStack() as held:
        if seconds and waiting.has_slot("many_waits", tenant.id):
            held.enter_context(waiting.slot("many_waits", tenant.id))
        else:
            seconds = 0  # how things stand: who cannot wait here asks again
        async with platform.revocation.held(key_id):
            found = await platform.many_waits.ended(
                tenant.id, shard, jobs, seconds, caller, turn.aclose
            )
    return found.ended, list(found.missing)
