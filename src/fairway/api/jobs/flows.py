"""`/v1/flows`: chains and groups of jobs, made together, seen and acted upon as one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from typing import Any

import msgspec
from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, ReplyHeader, path, query
from fairway.api.http.asgi import BODY_BYTES, read_body
from fairway.api.http.decoding import UNDECODABLE, invalid, json_reply
from fairway.api.http.headers import idempotency_key, trace_header
from fairway.api.jobs import views
from fairway.api.jobs.listing import OF_CHILDREN
from fairway.api.jobs.submit import EMAIL, OF_SUBMISSIONS, decode, look_at, new_job, refuse_unique
from fairway.api.payloads.body_cost import CAREFUL_BYTES_MAX, is_large, weigh
from fairway.api.payloads.payload_schema import PayloadSchemas
from fairway.api.relay import RelayedReply
from fairway.core.errors import FairwayError, InvalidRequest, NotFound
from fairway.core.flows import AFTER_MAX, CHAIN_MAX, LABELS, PAGE_MAX, STARTERS_MAX, Kind, Needs
from fairway.core.ids import LOWEST_JOB_ID, JobId, parse_job_id
from fairway.core.tenant import Tenant
from fairway.core.unique import NOT_IN_A_FLOW
from fairway.runtime.loops import WorkInParts
from fairway.services.jobs.flows import FlowFilter
from fairway.services.platform import Platform
from fairway.services.submit.flow_intake import FlowPage, WantedFlow
from fairway.services.submit.submission_group import NewJob
from fairway.wire.flows import (
    FlowAccepted,
    FlowList,
    FlowPageAccepted,
    FlowPageRequest,
    FlowReplayed,
    FlowRequest,
    FlowView,
)
from fairway.wire.messages import JobList
from fairway.wire.payload import HOLDS_NUL

BODY_BYTES_MAX = 4 << 20
LOOKED_AT = "fairway.looked_at"  # so many jobs of a call, when it was refused
FLOW_ID = "01980a5e-7c1b-7000-8000-0d15ea5e0001"
KINDS = {"group": Kind.GROUP, "chain": Kind.CHAIN}
NEEDS = {"succeeded": Needs.SUCCEEDED, "ended": Needs.ENDED}

OF_FLOWS = (
    query("state", f"One or more of {', '.join(LABELS)}, with commas between.", "failed"),
    query("kind", "group, chain, or both with a comma between.", "chain"),
    *filters.named("since", "until", "limit", "cursor"),
)
_PATH = path("id", "The flow's id.", FLOW_ID, "$FLOW", schema={"type": "string", "format": "uuid"})
_VIEW: dict[str, Any] = {
    "id": FLOW_ID,
    "kind": "group",
    "state": "running",
    "on_all": "succeeded",
    "total": 50,
    "succeeded": 30,
    "failed": 1,
    "cancelled": 0,
    "complete": True,
    "callback": parts.JOB_ID,
    "failed_job": parts.JOB_ID,
    "error": {"type": "ValueError", "message": "no such address"},
    "created_at": "2026-01-31T12:00:00.123Z",
    "finished_at": None,
}
_LISTED = _VIEW | {"error": None}


@Endpoint(
    "POST /v1/flows",
    keys=("tenant",),
    permission="submit",
    parameters=(parts.IDEMPOTENCY_KEY, parts.TRACEPARENT),
    body=FlowRequest,
    body_example={"kind": "group", "jobs": [EMAIL], "callback": {"type": "report.build"}},
    reply=Reply(
        202,
        "The flow is on disk.",
        FlowAccepted,
        {"id": FLOW_ID, "jobs": [parts.JOB_ID], "callback": parts.JOB_ID},
        headers=(ReplyHeader("Location", "Where to ask about it.", f"/v1/flows/{FLOW_ID}"),),
    ),
    problems=(*OF_SUBMISSIONS, "IDEMPOTENCY_KEY_REUSED", "NOT_FOUND", "CONFLICT"),
)
async def create_flow(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Submit a flow

    Jobs that belong together: all of them are accepted, or none. Those of a group start at once,
    and its callback when all have ended; those of a chain start one after the other, each with the
    result of the one before. With `after` the first of them wait for jobs that are there already.
    """
    with _paid(request, platform, tenant):
        body, wanted = await _read(request, platform, tenant, FlowRequest)
        flow = await _wanted(wanted, request, platform, tenant)
    within = _tracer(request, platform, tenant)
    last = flow.callback and within(flow.callback)
    flow = flow._replace(jobs=list(map(within, flow.jobs)), callback=last)
    key = idempotency_key(request.scope)
    claim = None if key is None else (key, hashlib.sha256(body).digest())
    await request.app.state.passing.admit(tenant, flow.job_count)
    made = await platform.flow_intake.create(tenant, flow, claim, is_admitted=True)
    reply = json_reply(FlowAccepted(id=made.id, jobs=list(made.jobs), callback=made.callback), 202)
    reply.headers["location"] = f"/v1/flows/{made.id}"
    return reply


@Endpoint(
    "GET /v1/flows",
    keys=("tenant",),
    parameters=OF_FLOWS,
    reply=Reply(200, "A page of flows.", FlowList, {"flows": [_LISTED], "next_cursor": None}),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", *parts.SLOW),
)
async def list_flows(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """List flows

    Newest first. A page of those that match a filter may be short, or empty, before the last:
    follow `next_cursor` until it is null.
    """
    found = await platform.flows.page(tenant.id, _filter(request))
    after = None if found.last is None else filters.cursor_of(found.last)
    return json_reply(FlowList(flows=list(map(views.flow_view, found.flows)), next_cursor=after))


@Endpoint(
    "POST /v1/flows/{id}/jobs",
    keys=("tenant",),
    permission="submit",
    parameters=(_PATH, parts.TRACEPARENT),
    body=FlowPageRequest,
    body_example={"start": 1000, "jobs": [EMAIL]},
    reply=Reply(202, "They are on disk.", FlowPageAccepted, {"jobs": [parts.JOB_ID]}),
    problems=(*OF_SUBMISSIONS, "NOT_FOUND", "CONFLICT"),
)
async def add_flow_jobs(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Add jobs to a group

    To one that was made with `more`. A page that is sent again makes no doubles: its `start` says
    which it is.
    """
    flow = _flow_id(request)
    with _paid(request, platform, tenant):
        _, wanted = await _read(request, platform, tenant, FlowPageRequest)
        jobs = await _jobs(wanted.jobs, request, platform, tenant)
    jobs = list(map(_tracer(request, platform, tenant), jobs))
    page = FlowPage(wanted.start, jobs, is_last=not wanted.more)
    await request.app.state.passing.admit(tenant, len(jobs))
    ids = await platform.flow_intake.add_page(tenant, flow, page, is_admitted=True)
    return json_reply(FlowPageAccepted(jobs=list(ids)), 202)


@Endpoint(
    "GET /v1/flows/{id}",
    keys=("tenant",),
    parameters=(_PATH,),
    reply=Reply(200, "The flow.", FlowView, _VIEW),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def get_flow(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Get a flow

    Its state, how many of its jobs ended how, and what went wrong last.
    """
    return json_reply(await _view(platform, tenant, _flow_id(request)))


@Endpoint(
    "GET /v1/flows/{id}/jobs",
    keys=("tenant",),
    parameters=(_PATH, *OF_CHILDREN),
    reply=Reply(
        200, "A page of jobs.", JobList, {"jobs": [parts.LISTED_EXAMPLE], "next_cursor": None}
    ),
    problems=("NOT_FOUND", "INVALID_CURSOR", "INVALID_REQUEST", *parts.QUICK),
)
async def list_flow_jobs(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """List the jobs of a flow

    The last of them first, without payloads. Follow `next_cursor` until it is null.
    """
    flow, query = _flow_id(request), request.query_params
    filters.check_names(query, OF_CHILDREN)
    cursor, limit = query.get("cursor"), filters.limit(query.get("limit"))
    before = filters.place_of(cursor) if cursor else filters.HIGHEST_JOB_ID
    found = await platform.flows.jobs(tenant.id, flow, before, limit)
    directory = platform.directory
    jobs = [await views.job_view(sight, directory, whole=False) for sight in found.sights]
    after = None if found.last is None else filters.cursor_of(found.last)
    return json_reply(JobList(jobs=jobs, next_cursor=after))


@Endpoint(
    "DELETE /v1/flows/{id}",
    keys=("tenant",),
    parameters=(_PATH,),
    reply=Reply(200, "What has not ended is cancelled, or asked to stop.", FlowView, _VIEW),
    problems=("NOT_FOUND", "NOT_OWNER", *parts.QUICK),
)
async def cancel_flow(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Cancel a flow

    Its callback first, then every job of it that has not ended: what waits is cancelled at once,
    what runs is asked to stop.
    """
    flow = _flow_id(request)
    if request.app.state.relay.is_elsewhere(platform.tenant_shards.of(tenant.id)):
        return RelayedReply(request.app.state.relay, b"", platform.tenant_shards.of(tenant.id))
    await platform.flows.cancel(tenant.id, flow)
    return json_reply(await _view(platform, tenant, flow))


@Endpoint(
    "POST /v1/flows/{id}/replay",
    keys=("tenant",),
    parameters=(_PATH,),
    reply=Reply(202, "They wait again.", FlowReplayed, {"replayed": 3}),
    problems=("NOT_FOUND", "NOT_OWNER", *parts.QUICK),
)
async def replay_flow(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Replay what failed of a flow

    Its dead letters go back to the queue with fresh counters, and count again when they end: a
    callback that waits for all to succeed may still start.
    """
    flow = _flow_id(request)
    if request.app.state.relay.is_elsewhere(platform.tenant_shards.of(tenant.id)):
        return RelayedReply(request.app.state.relay, b"", platform.tenant_shards.of(tenant.id))
    return json_reply(FlowReplayed(replayed=await platform.flows.replay(tenant.id, flow)), 202)


@contextmanager
def _paid(request: Request, platform: Platform, tenant: Tenant) -> Iterator[None]:
    """Who sends what is refused pays for as many jobs as were looked at."""
    if is_large(request.scope):
        platform.admission.refuse_debtors(tenant)
    try:
        yield
    except InvalidRequest:
        size_bytes = request.scope.get(BODY_BYTES, 0)
        platform.admission.charge(tenant, size_bytes, request.scope.get(LOOKED_AT, 1))
        raise


async def _read(request: Request, platform: Platform, tenant: Tenant, kind: Any) -> tuple[Any, Any]:
    """The body, and the message in it; looked at with the care that a submission gets."""
    counted = (platform.bodies.requests, tenant.id)
    body = await read_body(request.scope, request.receive, BODY_BYTES_MAX, counted=counted)
    try:
        return body, msgspec.json.decode(body, type=kind)
    except UNDECODABLE as error:
        raise invalid(error, body) from None


async def _wanted(
    wanted: FlowRequest, request: Request, platform: Platform, tenant: Tenant
) -> WantedFlow:
    kind, arguments = KINDS[wanted.kind], list(wanted.arguments)
    if not wanted.jobs:
        raise InvalidRequest("A flow has at least one job.", field="/jobs")
    if kind is Kind.CHAIN:
        arguments += [None] * (len(wanted.jobs) - len(arguments))
        _check_chain(wanted, arguments)
    elif arguments:
        raise InvalidRequest("Only a chain hands results on.", field="/arguments")
    elif (wanted.after and len(wanted.jobs) > STARTERS_MAX) or (wanted.after and wanted.more):
        raise InvalidRequest(
            f"At most {STARTERS_MAX} jobs of a group wait for others.", field="/jobs"
        )
    after = _after(wanted)
    jobs = await _jobs(wanted.jobs, request, platform, tenant, arguments)
    callback = None
    if bytes(wanted.callback) != b"null":
        callback = _job(wanted.callback, platform, "/callback", None)
    return WantedFlow(kind, jobs, arguments, callback, NEEDS[wanted.on_all], after, wanted.more)


def _check_chain(wanted: FlowRequest, arguments: Sequence[str | None]) -> None:
    if len(wanted.jobs) > CHAIN_MAX:
        raise InvalidRequest(f"A chain has at most {CHAIN_MAX} jobs.", field="/jobs")
    if len(arguments) > len(wanted.jobs) or arguments[0] is not None:
        raise InvalidRequest(
            "There is one argument, or null, for each job; for the first there is no result.",
            field="/arguments",
        )
    for place, argument in enumerate(arguments):
        if argument is not None and "\0" in argument:
            raise InvalidRequest(HOLDS_NUL, field=f"/arguments/{place}")
    has_callback = bytes(wanted.callback) != b"null"
    if has_callback or wanted.more:
        field = "/callback" if has_callback else "/more"
        raise InvalidRequest("Only a group has that; add the job to the chain.", field=field)


def _after(wanted: FlowRequest) -> list[JobId]:
    if len(wanted.after) > AFTER_MAX:
        raise InvalidRequest(f"A job waits for at most {AFTER_MAX} others.", field="/after")
    found: dict[JobId, None] = {}
    for place, text in enumerate(wanted.after):
        job = parse_job_id(text)
        if job is None:
            raise NotFound(f"There is no job {text[:64]}.", field=f"/after/{place}")
        found[job] = None
    return list(found)


async def _jobs(
    texts: Sequence[Raw],
    request: Request,
    platform: Platform,
    tenant: Tenant,
    arguments: Sequence[str | None] = (),
) -> list[NewJob]:
    if len(texts) > PAGE_MAX:
        raise InvalidRequest(
            f"At most {PAGE_MAX} jobs come with one call; send more of a group in pages.",
            field="/jobs",
        )
    found: list[NewJob] = []
    async with platform.long_looks.held(tenant.id, is_small=True):
        platform.submissions.look(tenant, len(texts))
        work = WorkInParts()
        for place, (text, argument) in enumerate(zip_longest(texts, arguments)):
            request.scope[LOOKED_AT] = place + 1
            look, size = partial(_job, text, platform, f"/jobs/{place}", argument), len(text)
            is_light = size <= CAREFUL_BYTES_MAX
            found.append(look() if is_light else await platform.heavy.run(tenant.id, look, size))
            await work.let_others()
    return found


def _tracer(request: Request, platform: Platform, tenant: Tenant) -> Callable[[NewJob], NewJob]:
    """Puts a job into the trace of this request, if it is within one."""
    trace, spans = trace_header(request.scope), platform.instruments.spans
    if trace is None:
        return lambda job: job
    if spans is None:
        return lambda job: job._replace(trace=trace)
    return lambda job: job._replace(trace=spans.keeps(trace, tenant.id))


def _job(text: Raw, platform: Platform, field: str, argument: str | None) -> NewJob:
    """A job of a flow; one that lacks an argument yet is checked by who runs it."""
    try:
        weigh(bytes(text))
        new = new_job(decode(text), platform.settings.inline_bytes_max, platform.registry)
        refuse_unique(new, NOT_IN_A_FLOW)
        look_at(bytes(text))
        if new.upload is not None:
            raise InvalidRequest("Jobs of a flow take no uploads.", field="/payload_upload")
        if new.wish is not None:
            raise InvalidRequest("Jobs of a flow have no times of their own.", field="/execute_at")
        if platform.registry.schemas and argument is None:
            PayloadSchemas(platform.registry.schemas).check(new.type, new.payload)
        return new
    except FairwayError as error:
        if isinstance(error, InvalidRequest):
            place = field + error.field
            raise InvalidRequest(error.message, code=error.code, field=place) from None
        raise


def _flow_id(request: Request) -> JobId:
    text = request.path_params["id"]
    flow = parse_job_id(text)
    if flow is None:
        raise NotFound(f"There is no flow {text[:64]}.")
    return flow


def _filter(request: Request) -> FlowFilter:
    given = request.query_params
    filters.check_names(given, OF_FLOWS)
    until = filters.moment(given.get("until"), "until", filters.HIGHEST_JOB_ID)
    cursor = given.get("cursor")
    states, kinds = given.get("state"), given.get("kind")
    return FlowFilter(
        before=min(until, filters.place_of(cursor)) if cursor else until,
        since=filters.moment(given.get("since"), "since", LOWEST_JOB_ID),
        limit=filters.limit(given.get("limit")),
        states=None if states is None else filters.words(states, "state", LABELS),
        kinds=None if kinds is None else [KINDS[w] for w in filters.words(kinds, "kind", KINDS)],
    )


async def _view(platform: Platform, tenant: Tenant, flow: JobId) -> FlowView:
    found = await platform.flows.look(tenant.id, flow)
    return views.flow_view(found, await platform.flows.error_of(tenant.id, found))
