"""The alarms over HTTP, for operators: those that are raised, with what helps."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.decoding import json_reply
from fairway.core.insight.alarms import Raised
from fairway.core.unix_time import from_unix_ms
from fairway.services.platform import Platform
from fairway.wire.insight import AlarmList, AlarmView

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


@Endpoint(
    "GET /v1/alarms",
    keys=("operator",),
    reply=Reply(200, "The worst first.", AlarmList, {"items": [ALARM]}),
)
async def list_alarms(request: Request, platform: Platform) -> Response:
    """Alarms that are raised

    An alarm is raised when its threshold has been crossed for a while, and over when that has
    not been so for a while. Every server judges by what all of them see.
    """
    return json_reply(AlarmList(items=alarm_views(platform.alarm_watch.raised())))


def alarm_views(raised: list[Raised]) -> list[AlarmView]:
    return [
        AlarmView(
            name=one.alarm.name,
            severity=one.alarm.severity,
            subject=one.subject,
            since=from_unix_ms(one.since_ms),
            text=one.reading.text,
            value=round(one.reading.value, 3),
            threshold=round(one.threshold, 3),
            runbook=one.alarm.runbook,
            link=one.alarm.link,
        )
        for one in raised
    ]
