"""`/v1/marks`: deploys, incidents and notes, to be seen beside graphs. For operators."""

from __future__ import annotations

from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.insight.history import moment_of
from fairway.core.audit import Actor
from fairway.core.errors import InvalidRequest
from fairway.core.insight.marks import ChartMark
from fairway.services.platform import Platform
from fairway.wire.insight import MarkList, MarkRequest, MarkView

USUAL_SPAN = timedelta(days=1)
_MOMENT = {"type": "string", "format": "date-time"}
PARAMETERS = (
    query(
        "from",
        "Its beginning, with its zone; a day before `to` if left out.",
        "2026-01-31T11:00:00Z",
        schema=_MOMENT,
    ),
    query("to", "Its end, with its zone; now if left out.", "2026-01-31T12:00:00Z", schema=_MOMENT),
)
_MARK = {
    "at": "2026-01-31T11:42:00Z",
    "kind": "deploy",
    "text": "build 1.4.2 of workers first seen",
    "until": None,
}


@Endpoint(
    "GET /v1/marks",
    keys=("operator",),
    parameters=PARAMETERS,
    reply=Reply(200, "The marks.", MarkList, {"items": [_MARK]}),
    problems=("INVALID_REQUEST", *parts.QUICK),
)
async def list_marks(request: Request, platform: Platform) -> Response:
    """Marks beside graphs

    Deploys (a version of the server, or a build of shared workers, that was first seen then),
    incidents (critical alarms, until they were over) and notes of operators, of a span; the newest
    1 000 of each sort. Kept for ninety days.
    """
    given = request.query_params
    filters.check_names(given, PARAMETERS)
    before = moment_of(given.get("to"), "to") or platform.store_clock.now()
    since = moment_of(given.get("from"), "from") or before - USUAL_SPAN
    if since >= before:
        raise InvalidRequest("from lies before to.", field="from")
    found = await platform.alarms.marks.between(since, before)
    return json_reply(MarkList(items=list(map(_view, found))))


@Endpoint(
    "POST /v1/marks",
    keys=("operator",),
    body=MarkRequest,
    body_example={"text": "moved to the larger database", "kind": "note"},
    reply=Reply(201, "The mark.", MarkView, _MARK | {"kind": "note"}),
    problems=parts.QUICK,
)
async def add_mark(request: Request, platform: Platform, actor: Actor) -> Response:
    """Add a mark

    At this moment: what people should know who look at graphs later.
    """
    wanted = await decoded(request, MarkRequest)
    if not wanted.text.isprintable():
        raise InvalidRequest("The text of a mark stands on one line.", field="/text")
    made = await platform.alarms.marks.add(wanted.kind, wanted.text, actor)
    return json_reply(_view(made), 201)


def _view(mark: ChartMark) -> MarkView:
    return MarkView(at=mark.at, kind=mark.kind, text=mark.text, until=mark.until)
