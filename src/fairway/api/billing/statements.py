"""`GET /v1/statements/{month}`: what a month came to, line by line."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.billing.asked import TENANT, whose
from fairway.api.endpoint import Endpoint, Reply, path
from fairway.api.http.decoding import json_reply
from fairway.core.billing.periods import parsed_month
from fairway.core.errors import InvalidRequest
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire.billing import StatementLine, StatementView

_NOTHING = {"jobs": 0, "attempts": 0, "billed_us": 0, "unbilled_us": 0}


@Endpoint(
    "GET /v1/statements/{month}",
    keys=("tenant", "operator"),
    parameters=(path("month", "A month of UTC.", "2026-01"), TENANT),
    reply=Reply(
        200,
        "The statement.",
        StatementView,
        {
            "tenant": "acme",
            "month": "2026-01",
            "closed": True,
            "closed_at": "2026-02-01T01:00:12Z",
            "lines": [
                {
                    "kind": "base_fee",
                    "pool": "*",
                    "type": "",
                    **_NOTHING,
                    "price_micros": 5_000_000,
                    "amount_micros": 5_000_000,
                },
                {
                    "kind": "usage",
                    "pool": "short",
                    "type": "email.send",
                    "jobs": 120_000,
                    "attempts": 120_417,
                    "billed_us": 5_400_250_000,
                    "unbilled_us": 3_500_000,
                    "price_micros": 25,
                    "amount_micros": 135_006,
                },
            ],
            "total_micros": 5_135_006,
        },
    ),
    problems=("INVALID_REQUEST", "NOT_FOUND", *parts.SLOW),
)
async def get_statement(request: Request, platform: Platform, principal: Principal) -> Response:
    """What a month came to

    Base fees, and usage by pool, job type and price; all whole numbers, and the total is the sum of
    the lines. While the month is open it is as of now. An hour after its end it is closed and kept,
    and never changes. The runs behind a line: `GET /v1/usage/attempts`. An operator says `tenant`.
    """
    filters.check_names(request.query_params, (TENANT,))
    tenant, asker = await whose(platform, principal, request.query_params.get("tenant"))
    month = parsed_month(request.path_params["month"])
    if month is None:
        raise InvalidRequest("A month is written as 2026-01.", field="month")
    found = await platform.billing.statements.of(tenant.id, month, asker)
    return json_reply(
        StatementView(
            tenant=tenant.name,
            month=str(month),
            closed=found.is_closed,
            closed_at=found.closed_at,
            lines=[StatementLine(**line._asdict()) for line in found.lines],
            total_micros=found.total_micros,
        )
    )
