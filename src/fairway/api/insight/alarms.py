"""The alarms over HTTP, for operators: those that are raised, with what helps, and those before."""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.decoding import json_reply
from fairway.core.insight.alarm_lines import AlarmLine
from fairway.core.insight.alarms import Raised, worth_telling
from fairway.core.unix_time import from_unix_ms
from fairway.services.platform import Platform
from fairway.wire.insight import AlarmHistory, AlarmList, AlarmRecord, AlarmView

ALARM = {
    "name": "OLDEST_AGE_OVER_SLO",
    "severity": "warning",
    "subject": "pool short",
    "since": "2025-06-01T12:00:00Z",
    "text": "The oldest job of the pool short that could run has waited 12.5 s; 0.5 s are"
    " promised.",
    "value": 12.5,
    "threshold": 0.5,
    "runbook": "`fairway top`: slots all in use, start workers for the pool.",
    "link": "/ui/pools",
}
RECORD = {
    **{name: ALARM[name] for name in ("name", "severity", "subject", "text")},
    "raised_at": "2025-06-01T12:00:00Z",
    "ended_at": "2025-06-01T12:04:00Z",
}
_PAGE = (
    replace(filters.named("limit")[0], about="Alarms in one page."),
    query("cursor", "`next_cursor` of the page before. Opaque.", "4711"),
)


@Endpoint(
    "GET /v1/alarms",
    keys=("operator",),
    reply=Reply(200, "The worst first.", AlarmList, {"items": [ALARM]}),
)
async def list_alarms(request: Request, platform: Platform) -> Response:
    """Alarms that are raised

    An alarm is raised when its threshold has been crossed for a while, and over when that has
    not been so for a while. Every server judges by what all of them see. Where a graver alarm
    about the same is raised, the lesser is left out.
    """
    raised = worth_telling(platform.alarms.raised())
    return json_reply(AlarmList(items=alarm_views(raised)))


@Endpoint(
    "GET /v1/alarms/history",
    keys=("operator",),
    parameters=_PAGE,
    reply=Reply(200, "A page of alarms.", AlarmHistory, {"items": [RECORD], "next_cursor": None}),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", *parts.QUICK),
)
async def list_alarm_history(request: Request, platform: Platform) -> Response:
    """Alarms that were raised

    Newest first, with those that still are; over all servers and restarts. Kept for ninety days,
    the newest 10 000 of them.
    """
    given = request.query_params
    filters.check_names(given, _PAGE)
    limit, below = filters.limit(given.get("limit")), filters.number_below(given.get("cursor"))
    found = await platform.alarms.history(below, limit + 1)
    shown = found[:limit]
    next_cursor = str(shown[-1].id) if len(found) > limit else None
    return json_reply(AlarmHistory(items=list(map(_record, shown)), next_cursor=next_cursor))


def _record(line: AlarmLine) -> AlarmRecord:
    return AlarmRecord(
        name=line.name,
        severity="critical" if line.severity == "critical" else "warning",
        subject=line.subject,
        text=line.text,
        raised_at=line.raised_at,
        ended_at=line.ended_at,
    )


def alarm_views(raised: list[Raised]) -> list[AlarmView]:
    return [
        AlarmView(
            name=one.alarm.name,
            severity=one.alarm.severity,
            subject=one.subject,
            since=from_unix_ms(one.since_ms),
            text=one.text,
            value=round(one.reading.value, 3),
            threshold=round(one.threshold, 3),
            runbook=one.alarm.runbook,
            link=one.alarm.link,
        )
        for one in raised
    ]
