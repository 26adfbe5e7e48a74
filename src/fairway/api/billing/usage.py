"""`GET /v1/usage` and `GET /v1/usage/attempts`: what was used, and the runs behind it."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.billing.asked import FROM, TENANT, TO, hours, whose
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.decoding import json_reply
from fairway.core.billing.periods import SPAN_MAX, By, beginnings
from fairway.core.billing.usage import Used, joined, total_of
from fairway.core.errors import InvalidRequest
from fairway.core.ids import TypeId
from fairway.services.billing.attempts import Attempt, AttemptFilter
from fairway.services.billing.usage import UsageWish
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire.billing import AttemptList, AttemptView, Usage, UsageLine, UsageTotal

GROUPS = ("pool", "type")
COLUMNS = ("period", "pool", "type", "jobs", "attempts", "billed_us", "unbilled_us")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
_SUMS = {"jobs": 120_000, "attempts": 120_417, "billed_us": 5_400_250_000, "unbilled_us": 3_500_000}
_BY = query(
    "by", "The length of a period.", "day", "day", {"type": "string", "enum": list(SPAN_MAX)}
)
_GROUP = query("group", "To tell apart: pool, type, or both with a comma.", "pool", "pool,type")
_FORMAT = query(
    "format", "As JSON, or as CSV.", "json", schema={"type": "string", "enum": ["json", "csv"]}
)
USAGE = (TENANT, FROM, TO, _BY, _GROUP, _FORMAT)
ATTEMPTS = (TENANT, FROM, TO, *filters.named("pool", "type", "cursor"))


@Endpoint(
    "GET /v1/usage",
    keys=("tenant", "operator"),
    parameters=USAGE,
    replies=(
        Reply(
            200,
            "What was used, by period.",
            Usage,
            {
                "tenant": "acme",
                "since": "2026-01-01T00:00:00Z",
                "before": "2026-02-01T00:00:00Z",
                "by": "month",
                "lines": [
                    {"period": "2026-01-01T00:00:00Z", "pool": "short", "type": None, **_SUMS}
                ],
                "total": _SUMS,
            },
        ),
        Reply(
            200,
            "The same as CSV.",
            schema={"type": "string"},
            example=",".join(COLUMNS),
            media="text/csv",
        ),
    ),
    problems=("INVALID_REQUEST", "NOT_FOUND", *parts.SLOW),
)
async def get_usage(request: Request, platform: Platform, principal: Principal) -> Response:
    """What was used

    Slot-time of the runs that ended in some time, to the microsecond, by hour, day or month of UTC,
    pool and job type. It is exact at any moment: a run is in it when its end is recorded, once.
    Runs that the platform cut short (a worker died, a deploy) are not billed. Kept when the jobs
    are long gone. An operator says `tenant`.
    """
    given = request.query_params
    filters.check_names(given, USAGE)
    tenant, asker = await whose(platform, principal, given.get("tenant"))
    since, before = hours(given, platform.store_clock.now())
    by = _by(given.get("by"), before - since)
    groups = set(filters.words(given.get("group", "pool"), "group", GROUPS))
    form = _one_of(given.get("format", "json"), "format", ("json", "csv"))
    cuts = beginnings(since, before, by)
    wish = UsageWish(tenant.id, since, before, cuts, "pool" in groups, "type" in groups)
    used = await platform.billing.usage.read(wish, asker)
    for part in tenant.parts[1:]:
        of_part, part_asks = wish._replace(tenant=part), None if asker is None else part
        used = joined([*used, *await platform.billing.usage.read(of_part, part_asks)])
    by_type = "type" in groups
    types = await platform.directory.names.names_of(one.type for one in used) if by_type else {}
    lines = [_line(platform, one, cuts, groups, types) for one in used]
    if form == "csv":
        return Response(_csv(lines), media_type="text/csv; charset=utf-8")
    total = UsageTotal(**dict(zip(COLUMNS[3:], total_of(used)[3:], strict=True)))
    return json_reply(
        Usage(tenant=tenant.name, since=since, before=before, by=by, lines=lines, total=total)
    )


def _by(text: str | None, span: timedelta) -> By:
    by = cast("By", _one_of(text or "day", "by", SPAN_MAX))
    most = SPAN_MAX[by]
    if span > most:
        raise InvalidRequest(f"By {by}, ask for {most.days} days at most.", field="from")
    return by


def _one_of(text: str, field: str, known: Collection[str]) -> str:
    first, *others = filters.words(text, field, known)
    if others:
        raise InvalidRequest(f"{field} is one of {', '.join(known)}.", field=field)
    return first


def _line(
    platform: Platform,
    one: Used,
    cuts: Sequence[datetime],
    groups: set[str],
    types: Mapping[TypeId, str],
) -> UsageLine:
    return UsageLine(
        period=cuts[one.period - 1],
        pool=platform.directory.pools.by_number[one.pool].name if "pool" in groups else None,
        type=types.get(one.type),
        jobs=one.jobs,
        attempts=one.attempts,
        billed_us=one.billed_us,
        unbilled_us=one.unbilled_us,
    )


def _csv(lines: Sequence[UsageLine]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for line in lines:
        values = msgspec.to_builtins(line)
        writer.writerow([_inert(values[name]) for name in COLUMNS])
    return text.getvalue()


def _inert(value: Any) -> Any:
    """Names of job types are whatever a program says: none begins as a spreadsheet's formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


@Endpoint(
    "GET /v1/usage/attempts",
    keys=("tenant", "operator"),
    parameters=ATTEMPTS,
    reply=Reply(
        200,
        "A page of runs.",
        AttemptList,
        {
            "attempts": [
                {
                    "job": parts.JOB_ID,
                    "pool": "short",
                    "type": "email.send",
                    "ended_at": "2026-01-31T12:00:00.168Z",
                    "outcome": "succeeded",
                    "ran_us": 42_000,
                    "billed": True,
                }
            ],
            "next_cursor": None,
        },
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", "UNKNOWN_POOL", "NOT_FOUND", *parts.SLOW),
)
async def list_attempts(request: Request, platform: Platform, principal: Principal) -> Response:
    """The runs behind a line

    Every run that ended in some time, from the jobs that are still there: of jobs past their
    retention only the sums are left, and a job tells of its newest fifty runs. A page looks at
    so many jobs; it may be empty, go on with `next_cursor` until that is null.
    """
    given = request.query_params
    filters.check_names(given, ATTEMPTS)
    tenant, asker = await whose(platform, principal, given.get("tenant"))
    since, before = hours(given, platform.store_clock.now())
    cursor = given.get("cursor")
    wanted = AttemptFilter(
        tenant.id,
        since,
        before,
        filters.pool(given.get("pool"), platform.directory.pools),
        await filters.job_type(given.get("type"), platform.directory, tenant.id),
        None if cursor is None else filters.place_of(cursor),
    )
    found = await platform.billing.attempts.page(wanted, asker)
    types = await platform.directory.names.names_of(one.type for one in found.attempts)
    views = [_attempt(platform, one, types) for one in found.attempts]
    next_cursor = None if found.last is None else filters.cursor_of(found.last)
    return json_reply(AttemptList(attempts=views, next_cursor=next_cursor))


def _attempt(platform: Platform, one: Attempt, types: Mapping[TypeId, str]) -> AttemptView:
    return AttemptView(
        job=one.job,
        pool=platform.directory.pools.by_number[one.pool].name,
        type=types[one.type],
        ended_at=one.end.ended_at,
        outcome=one.end.outcome,
        ran_us=one.end.ran_us,
        billed=one.end.is_billed,
    )
