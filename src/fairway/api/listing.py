"""`GET /v1/jobs`: a tenant's jobs by filter, newest first, page by page.

Filters are a closed list, each checked before anything is asked of the store. A cursor is a place
in the caller's own list, so a page stays where it was while new jobs come in above it.
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import views
from fairway.api.auth import tenant_of
from fairway.core.errors import InvalidRequest
from fairway.core.ids import LOWEST_JOB_ID, lowest_id_at
from fairway.core.job import JobFilter
from fairway.core.lifecycle import BY_LABEL
from fairway.core.pools import BY_NAME
from fairway.services.platform import Platform
from fairway.wire import messages

PAGE_DEFAULT = 50
PAGE_MAX = 200
HIGHEST_JOB_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
FILTERS = ("state", "type", "pool", "since", "until", "limit", "cursor")


async def list_jobs(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    wanted = _filter(request, platform)
    if wanted is None:  # a type that no job ever had
        return Response(messages.encode(messages.JobList(jobs=[])), media_type="application/json")
    sights = await platform.insight.jobs(tenant.id, wanted._replace(limit=wanted.limit + 1))
    page = sights[: wanted.limit]
    next_cursor = _cursor(page[-1].record.id) if len(sights) > wanted.limit else None
    jobs = [await views.job_view(sight, platform.directory, whole=False) for sight in page]
    headers = {}
    if next_cursor:
        query = urlencode(dict(request.query_params) | {"cursor": next_cursor})
        headers["link"] = f'<{request.scope["path"]}?{query}>; rel="next"'
    body = messages.encode(messages.JobList(jobs=jobs, next_cursor=next_cursor))
    return Response(body, media_type="application/json", headers=headers)


def _filter(request: Request, platform: Platform) -> JobFilter | None:
    query = request.query_params
    _check_names(query)
    type_name = query.get("type")
    type_id = platform.directory.type_ids.get(type_name) if type_name else None
    if type_name and type_id is None:
        return None
    until = _moment(query.get("until"), "until", HIGHEST_JOB_ID)
    cursor = query.get("cursor")
    return JobFilter(
        before=min(until, _uncursor(cursor)) if cursor else until,
        since=_moment(query.get("since"), "since", LOWEST_JOB_ID),
        states=_states(query.get("state")),
        type=type_id,
        pool=_pool(query.get("pool")),
        limit=_limit(query.get("limit")),
    )


def _check_names(query: QueryParams) -> None:
    for name in query:
        if name not in FILTERS:
            known = ", ".join(FILTERS)
            raise InvalidRequest(
                f"There is no filter {name[:64]!r}; there are {known}.", field=name
            )
        if len(query.getlist(name)) > 1:
            raise InvalidRequest(f"The filter {name} is given more than once.", field=name)


def _states(text: str | None) -> list[int] | None:
    if text is None:
        return None
    unknown = [name for name in text.split(",") if name not in BY_LABEL]
    if unknown:
        raise InvalidRequest(
            f"There is no state {unknown[0][:64]!r}; there are {', '.join(BY_LABEL)}.",
            field="state",
        )
    return [BY_LABEL[name].value for name in text.split(",")]


def _pool(name: str | None) -> int | None:
    if name is None:
        return None
    if name not in BY_NAME:
        raise InvalidRequest(
            f"There is no pool {name[:64]!r}; there are {', '.join(BY_NAME)}.",
            code="UNKNOWN_POOL",
            field="pool",
        )
    return BY_NAME[name].number


def _limit(text: str | None) -> int:
    if text is None:
        return PAGE_DEFAULT
    if text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= PAGE_MAX:
        return int(text)
    raise InvalidRequest(f"limit is a number from 1 to {PAGE_MAX}.", field="limit")


def _moment(text: str | None, field: str, default: str) -> str:
    """A date and time as a bound on ids."""
    if text is None:
        return default
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))
        if moment.tzinfo is None:
            raise ValueError
        return lowest_id_at(max(0, int(moment.timestamp() * 1000)))
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"{field} is a time with its zone, such as 2026-01-31T12:00:00Z.", field=field
        ) from None


def _cursor(last: str) -> str:
    return base64.urlsafe_b64encode(bytes.fromhex(last.replace("-", ""))).decode().rstrip("=")


def _uncursor(text: str) -> str:
    """A cursor is only a place in the caller's own list: a forged one can show nothing more."""
    try:
        digits = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).hex()
    except (binascii.Error, ValueError):
        digits = ""
    place = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    if len(digits) != 32 or _cursor(place) != text:  # the decoder overlooks characters
        raise InvalidRequest(
            "The cursor is not one of ours.", code="INVALID_CURSOR", field="cursor"
        )
    return place
