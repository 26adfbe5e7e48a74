"""`GET /v1/history`: what happened over time, as columns for a graph."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, cast

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.decoding import json_reply
from fairway.api.operators.tenants import tenant_named
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.ids import TenantId
from fairway.core.insight.activity import OTHER_TENANT
from fairway.core.insight.history import COLUMNS, KEPT, POINTS_MAX, STEP_SECONDS, Step
from fairway.core.insight.minutes import LineKind
from fairway.services.insight.history import HistoryWish
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire.insight import History

Of = Literal["pool", "type", "tenant"]

NAME_MAX = 256
USUAL_STEPS = 60  # an hour of minutes, if nobody says from when on
_MOMENT = {"type": "string", "format": "date-time"}
PARAMETERS = (
    query(
        "of",
        "What it is about; pools are for operators.",
        "pool",
        "pool",
        {"type": "string", "enum": ["pool", "type", "tenant"]},
    ),
    query(
        "name",
        "Which pool, job type or tenant; a tenant's key needs none for itself.",
        "short",
        "short",
    ),
    query(
        "from",
        "Its beginning, with its zone; 60 steps before `to` if left out.",
        "2026-01-31T11:00:00Z",
        schema=_MOMENT,
    ),
    query("to", "Its end, with its zone; now if left out.", "2026-01-31T12:00:00Z", schema=_MOMENT),
    query(
        "step",
        "By the minute (kept for two days) or by the hour (for ninety).",
        "minute",
        schema={"type": "string", "enum": list(STEP_SECONDS), "default": "minute"},
    ),
)
_EXAMPLE = {
    "of": "pool",
    "name": "short",
    "step_seconds": 60,
    "at": [1_769_857_200],
    "accepted": [600],
    "started": [598],
    "succeeded": [590],
    "failed": [6],
    "retried": [5],
    "dead": [1],
    "queued": [12],
    "running": [3],
    "slots": [8],
    "oldest_age_seconds": [0.4],
    "pickup_p50": [0.012],
    "pickup_p99": [0.1],
    "run_p50": [0.2],
    "run_p99": [0.9],
}


class Subject(NamedTuple):
    kind: LineKind
    tenant: TenantId
    name: str  # as lines have it
    shown: str


@Endpoint(
    "GET /v1/history",
    keys=("operator", "tenant"),
    parameters=PARAMETERS,
    reply=Reply(200, "The columns.", History, _EXAMPLE),
    problems=("INVALID_REQUEST", "UNKNOWN_POOL", "NOT_FOUND", *parts.QUICK),
)
async def get_history(request: Request, platform: Platform, principal: Principal) -> Response:
    """What happened over time

    Jobs, runs, queues and times of a pool, a job type or a tenant, by the minute or the hour, over
    all servers. Of types and tenants those with the most to do have lines of their own in each
    minute: others are null there. A tenant's key shows that tenant, and its own part of a type.
    """
    given = request.query_params
    filters.check_names(given, PARAMETERS)
    step = cast("Step", _one(given.get("step", "minute"), "step", tuple(STEP_SECONDS)))
    since, before = _span(given, step, platform.store_clock.now())
    of = cast("Of", _one(given.get("of", ""), "of", ("pool", "type", "tenant")))
    subject = await _subject(platform, principal, of, given.get("name"))
    asker = None if principal.tenant is None else principal.tenant.id
    wish = HistoryWish(subject.kind, subject.tenant, subject.name, since, before, step)
    found = await platform.insight.history.read(wish, asker)
    return json_reply(
        History(
            of=of,
            name=subject.shown,
            step_seconds=found.step_seconds,
            at=found.at,
            **{name: found.columns[name] for name in COLUMNS},  # type: ignore[arg-type]  # whole numbers or not, by name
        )
    )


async def _subject(platform: Platform, principal: Principal, of: Of, name: str | None) -> Subject:
    if of == "tenant":
        tenant = principal.tenant
        if tenant is None:
            tenant = await tenant_named(platform, _required(name, of), "name")
        elif name not in (None, tenant.name):
            raise NotFound(f"There is no tenant {name[:64]!r} for your key.", field="name")
        return Subject(LineKind.TENANT, tenant.id, "", tenant.name)
    name = _required(name, of)
    if of == "type" and principal.tenant is not None:
        return Subject(LineKind.TENANT_TYPE, principal.tenant.id, name, name)
    if of == "type":
        return Subject(LineKind.TYPE, OTHER_TENANT, name, name)
    if principal.tenant is not None:
        raise InvalidRequest(
            "How a whole pool does is for operators; ask with of=tenant for yours.", field="of"
        )
    platform.directory.pools.named(name, "name")
    return Subject(LineKind.POOL, OTHER_TENANT, name, name)


def _required(name: str | None, of: Of) -> str:
    if not name or len(name) > NAME_MAX or "\0" in name:
        raise InvalidRequest(f"Say which {of}, as in name=….", field="name")
    return name


def _span(given: QueryParams, step: Step, now: datetime) -> tuple[datetime, datetime]:
    seconds = timedelta(seconds=STEP_SECONDS[step])
    before = moment_of(given.get("to"), "to") or now
    since = moment_of(given.get("from"), "from") or before - USUAL_STEPS * seconds
    if since >= before:
        raise InvalidRequest("from lies before to.", field="from")
    if before - since > POINTS_MAX * seconds:
        most = f"{KEPT[step].days} days are kept, and {POINTS_MAX} steps are shown at most"
        raise InvalidRequest(f"By the {step}, {most}.", field="from")
    return since, before


def moment_of(text: str | None, field: str) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))
        if found.tzinfo is not None and 2000 <= found.year < 3000:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InvalidRequest(
        f"{field} is a time with its zone, such as 2026-01-31T12:00:00Z.", field=field
    )


def _one(text: str, field: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise InvalidRequest(f"{field} is one of {', '.join(known)}.", field=field)
    return text
