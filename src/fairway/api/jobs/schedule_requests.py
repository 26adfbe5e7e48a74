"""What requests about schedules have in common: the name in the path, the body, the query."""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial

import msgspec
from starlette.requests import Request

from fairway.api.auth import platform_of, tenant_of
from fairway.api.endpoint import Parameter
from fairway.api.http.asgi import BODY_BYTES, read_body
from fairway.api.http.decoding import UNDECODABLE, invalid
from fairway.api.payloads.body_cost import CAREFUL_BYTES_MAX, is_large, weigh
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.scheduling.schedule import ScheduleKey
from fairway.services.platform import Platform
from fairway.wire.payload import check_carefully, check_payload, is_plain
from fairway.wire.schedules import (
    SCHEDULE_NAME_PATTERN,
    ScheduleRequest,
)

ENVELOPE_BYTES_MAX = 8 << 10  # of a schedule, around its payload


def place_of(request: Request) -> tuple[Platform, ScheduleKey]:
    platform, tenant = platform_of(request), tenant_of(request)
    name = request.path_params["name"]
    if not re.fullmatch(SCHEDULE_NAME_PATTERN, name):
        if request.method == "PUT":
            raise InvalidRequest(
                "A schedule's name has up to 64 letters, digits and _.- and begins with a letter"
                " or digit.",
                field="name",
            )
        raise NotFound(f"There is no schedule {name[:64]!r}.")
    return platform, platform.schedules.key_of(tenant.id, name)


async def wanted_schedule(request: Request, platform: Platform) -> ScheduleRequest:
    """What is long or refused is paid for, and looked at in the lane, as jobs are."""
    tenant = tenant_of(request)
    payload_max = platform.settings.inline_bytes_max
    if is_large(request.scope):
        platform.admission.refuse_debtors(tenant)
    try:
        body = await read_body(
            request.scope,
            request.receive,
            payload_max + ENVELOPE_BYTES_MAX,
            counted=(platform.bodies.requests, tenant.id),
        )
        if len(body) < CAREFUL_BYTES_MAX:
            return _understood(body, payload_max)
        return await platform.heavy.run(
            tenant.id, partial(_understood, body, payload_max), len(body)
        )
    except InvalidRequest:
        platform.admission.charge(tenant, request.scope.get(BODY_BYTES, 0), 1)
        raise


def _understood(body: bytes, payload_max: int) -> ScheduleRequest:
    weigh(body)
    try:
        wanted = msgspec.json.decode(body, type=ScheduleRequest)
    except UNDECODABLE as error:
        raise invalid(error, body) from None
    check_payload(bytes(wanted.payload), payload_max)
    if not is_plain(body):
        check_carefully(body)
    return wanted


def check_query(request: Request, parameters: tuple[Parameter, ...]) -> None:
    known = [parameter.name for parameter in parameters]
    for name in request.query_params:
        if name not in known:
            raise InvalidRequest(
                f"There is no parameter {name[:64]!r}; there are {', '.join(known)}.", field=name
            )


def moment_before(request: Request) -> datetime | None:
    text = request.query_params.get("before")
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))
        if moment.tzinfo is None:
            raise ValueError
        return moment
    except ValueError:
        raise InvalidRequest(
            "before is a time with its zone, such as 2026-01-31T12:00:00Z.", field="before"
        ) from None
