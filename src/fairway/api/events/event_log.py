"""`GET /v1/events`: a tenant's log of events, on from a position, or from its end."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.auth import caller_of, part_ids
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.asgi import Scope
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.http.headers import WAIT_MAX_SECONDS, header
from fairway.api.tenant_parts.meant import PART, parts_asked
from fairway.core.audit import Actor
from fairway.core.errors import Conflict, InvalidRequest
from fairway.core.events.event import Event
from fairway.core.events.event_filter import EventFilter, parse_kinds
from fairway.core.events.log_places import Places, moved, parse_places, shown, text_of
from fairway.core.ids import TenantId, parse_job_id
from fairway.core.tenant import Tenant
from fairway.core.webhooks.messages import wants_job_events
from fairway.services.events.part_logs import FoundInParts, PartLogs
from fairway.services.platform import Platform
from fairway.wire.events import EventList, EventSettings, EventView

PAGE_DEFAULT, PAGE_MAX = 100, 1000
TYPES_MAX = 50
ORDERS = ("oldest", "newest")
#: A number; of a tenant in several shards one for each.
#: Empty: from the beginning, for a program that has stored no place yet.
AFTER = {"type": "string", "pattern": r"^([0-9]{1,18}(\.[0-9]{1,18}){0,15})?$"}

EVENT_FILTERS = (
    query(
        "after",
        "The `cursor` of the page before; 0, or left out, for the beginning. With `order=newest`"
        " the page goes on below it.",
        "4711",
        schema=AFTER,
    ),
    query(
        "limit",
        "Events in one page.",
        "100",
        schema={"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT},
    ),
    query(
        "kind",
        "One or more kinds, with commas between; `job.*` for all of a noun.",
        "job.dead,circuit.*",
    ),
    query("type", "One or more job types, with commas between.", "email.send"),
    query("job", "Of this job only.", parts.JOB_ID, schema={"type": "string", "format": "uuid"}),
    query(
        "order",
        "`oldest` first, to follow the log; `newest` first, to look at it.",
        "newest",
        schema={"type": "string", "enum": list(ORDERS), "default": "oldest"},
    ),
    query(
        "wait",
        f"Where there is none yet: seconds to wait for one, up to {WAIT_MAX_SECONDS}. When the wait"
        " is over the page is empty.",
        "20",
        schema={"type": "integer", "minimum": 0, "maximum": WAIT_MAX_SECONDS},
    ),
)
EVENT_EXAMPLE = {
    "position": 4712,
    "at": "2026-01-31T12:00:00.168Z",
    "kind": "job.succeeded",
    "job": parts.JOB_ID,
    "subject": "email.send",
    "data": {"state": "succeeded", "attempt": 1, "pool": "short", "ran_ms": 42.0},
}
_SETTINGS = Reply(200, "The settings in force.", EventSettings, {"job_events": True})


@Endpoint(
    "GET /v1/events",
    keys=("tenant",),
    parameters=EVENT_FILTERS,
    reply=Reply(
        200,
        "A page of events.",
        EventList,
        {
            "events": [EVENT_EXAMPLE],
            "cursor": 4712,
            "trimmed_to": 0,
            "has_more": False,
            "end": 4712,
        },
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", "TOO_MANY_WAITING", *parts.QUICK),
)
async def list_events(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Read your log of events

    Notices of the platform (circuits, quarantines, late jobs), and what becomes of your jobs where
    you asked for that: all of them by `PUT /v1/events/settings`, a single one by `"events": true`
    when you submit it. Every event has a position: 1, 2, 3 … without gaps, and none is ever seen
    before an earlier one, so whoever remembers the last `cursor` misses nothing.

    Kept for three days, unless the operator says otherwise. What was missed longer than that is
    told by `trimmed_to`.

    A tenant in several shards has a log in each: they are read as one, in order of time. Events of
    one job come in their order; a `cursor` is a place in all of them.
    """
    given = request.query_params
    filters.check_names(given, EVENT_FILTERS)
    wanted, limit, after = filter_of(given), limit_of(given.get("limit")), given.get("after")
    logs, seconds = logs_of(request.scope, platform, tenant), wait_of(given)
    if _is_newest(given.get("order")):
        below = None if after is None else places_of(after, logs.count)
        return json_reply(_page(await logs.newest(wanted, below, limit), None))
    begin = places_of(after or "0", logs.count)
    found = await logs.following(wanted, begin, limit)
    refuse_beyond(begin, found.end)
    if seconds and not found.page.events:
        key, begin = caller_of(request).key_id, found.page.cursor
        with platform.waiting.slot("waits", tenant.id):  # for as long as the key is good
            async with platform.revocation.held(key):
                begin = await logs.until_match(wanted, begin, seconds)
        found = await logs.following(wanted, begin, limit)
    return json_reply(_page(found, begin))


def logs_of(scope: Scope, platform: Platform, tenant: Tenant) -> PartLogs:
    """The logs that are meant: of all parts, or of the one that is named."""
    asked = parts_asked(header(scope, PART), tenant, platform.directory.parts)
    events = platform.events
    return PartLogs(events.reader, events.tails, [one.id for one in asked])


def _page(found: FoundInParts, begin: Places | None) -> EventList:
    """`begin`: where it goes on from; None where it goes backwards, and events have no cursor."""
    page, events = found.page, []
    at = begin or ()
    is_one = len(found.end) == 1
    for part, event in page.events:
        if is_one:
            events.append(view_of(event))
            continue
        at = moved(at, part, event.position) if at else ()
        events.append(view_of(event, part, text_of(at) if at else None))
    return EventList(
        events=events,
        cursor=shown(page.cursor),
        trimmed_to=shown(found.trimmed_to),
        has_more=page.has_more,
        end=shown(found.end),
    )


@Endpoint("GET /v1/events/settings", keys=("tenant",), reply=_SETTINGS)
async def get_event_settings(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """See what is written to your log of events

    Notices of the platform always are; what becomes of your jobs is where `job_events` is true.
    """
    is_on = all(map(platform.events.settings.job_events, part_ids(request, tenant)))
    return json_reply(EventSettings(job_events=is_on))


@Endpoint(
    "PUT /v1/events/settings",
    keys=("tenant",),
    body=EventSettings,
    body_example={"job_events": True},
    reply=_SETTINGS,
    problems=("CONFLICT", "TOO_MANY_CHANGES", *parts.QUICK),
)
async def put_event_settings(
    request: Request, platform: Platform, tenant: Tenant, actor: Actor
) -> Response:
    """Choose what is written to your log of events

    It holds for jobs that come in from now on; other servers know within a few seconds.
    """
    wanted = await decoded(request, EventSettings)
    asked = part_ids(request, tenant)
    if not wanted.job_events:
        for one in asked:
            await _refuse_if_sent(platform, one)
    for one in asked:  # if one cannot be written, who asks again goes on there
        await platform.events.settings.set_job_events(one, wanted.job_events, actor)
    return json_reply(wanted)


async def _refuse_if_sent(platform: Platform, tenant: TenantId) -> None:
    """A webhook for what becomes of jobs would hear nothing more, and nobody would know why."""
    for hook in await platform.outbound.webhooks.all(tenant):
        if hook.terms.enabled and wants_job_events(hook.terms.kinds):
            raise Conflict(
                f"The webhook {hook.key.id} is sent what becomes of your jobs: switch it off, or"
                " let it have other kinds only, first."
            )


def refuse_beyond(after: Places, heads: Places) -> None:
    """Whoever waits there would hear nothing, and not know why."""
    for position, head in zip(after, heads, strict=True):
        if position > head:
            raise InvalidRequest(
                f"There is no event {position} yet: the newest is {head}. A position of another"
                " platform, or of one that was restored from a backup? Go on with"
                f" after={shown(heads)}, or begin at 0.",
                code="INVALID_CURSOR",
                field="after",
            )


def view_of(event: Event, part: int | None = None, cursor: str | None = None) -> EventView:
    return EventView(
        part=part,
        cursor=cursor,
        position=event.position,
        at=event.at,
        kind=event.kind,
        job=event.job,
        subject=event.subject,
        data=dict(event.data),
    )


def filter_of(given: Mapping[str, str | None]) -> EventFilter:
    """The filters of events, as texts with commas: in a query, or in a message on a socket."""
    types = tuple(dict.fromkeys(one for one in (given.get("type") or "").split(",") if one))
    if len(types) > TYPES_MAX:
        raise InvalidRequest(f"type names at most {TYPES_MAX} job types.", field="type")
    if given.get("type") == "":  # a variable that was not set must not mean all of them
        raise InvalidRequest("type names job types; leave it out for all types.", field="type")
    job = given.get("job")
    if job is not None and (job := parse_job_id(job)) is None:
        raise InvalidRequest("job is the id of a job.", field="job")
    return EventFilter(parse_kinds(given.get("kind") or ""), types, job)


def limit_of(text: str | None) -> int:
    if text is None:
        return PAGE_DEFAULT
    if text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= PAGE_MAX:
        return int(text)
    raise InvalidRequest(f"limit is a number from 1 to {PAGE_MAX}.", field="limit")


def places_of(text: str, parts: int) -> Places:
    found = parse_places(text, parts)
    if found is not None:
        return found
    if parts == 1:
        raise InvalidRequest("after is the cursor of a page: a number from 0 on.", field="after")
    raise InvalidRequest(
        f"after is the cursor of a page or of an event, with {parts} numbers for your {parts}"
        " shards; or 0 for the beginning. The position of an event is one of its own shard's.",
        field="after",
    )


def wait_of(given: QueryParams) -> int:
    text = given.get("wait", "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 2 and int(text) <= WAIT_MAX_SECONDS):
        raise InvalidRequest(
            f"wait is a number of seconds from 0 to {WAIT_MAX_SECONDS}.", field="wait"
        )
    if int(text) and _is_newest(given.get("order")):
        raise InvalidRequest("wait goes with order=oldest: news come at the end.", field="wait")
    return int(text)


def _is_newest(text: str | None) -> bool:
    if text not in (None, *ORDERS):
        raise InvalidRequest("order is oldest or newest.", field="order")
    return text == "newest"
