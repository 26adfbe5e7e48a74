"""`/v1/prices`: the price list, which is added to and never changed."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.decoding import decoded, json_reply
from fairway.core.audit import Actor
from fairway.services.billing import prices as services
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire.billing import NewPrice, PriceList, PriceView

_PRICE = {
    "pool": "*",
    "valid_from": "2026-02-01T00:00:00Z",
    "base_fee_micros": 5_000_000,
    "slot_second_micros": 25,
}


@Endpoint(
    "GET /v1/prices",
    keys=("tenant", "operator"),
    reply=Reply(200, "The price list.", PriceList, {"prices": [_PRICE]}),
    problems=parts.QUICK,
)
async def list_prices(platform: Platform, principal: Principal) -> Response:
    """What it costs

    All prices with the hour from which each holds: those that held, those that hold and those that
    will. A pool's own comes before that of every pool, `*`. Nothing is priced before the first.
    """
    asker = None if principal.tenant is None else principal.tenant.id
    found = await platform.billing.prices.all(asker)
    return json_reply(PriceList(prices=[PriceView(**one._asdict()) for one in found]))


@Endpoint(
    "POST /v1/prices",
    keys=("operator",),
    permission="admin",
    body=NewPrice,
    body_example={"slot_second_micros": 25, "base_fee_micros": 5_000_000},
    reply=Reply(201, "It will hold from then on.", PriceView, _PRICE),
    problems=("CONFLICT", "UNKNOWN_POOL"),
)
async def add_price(request: Request, platform: Platform, actor: Actor) -> Response:
    """Add a price

    From an hour that is still to come: what was used keeps its price, and a price that is there is
    never changed. A base fee is charged for a month by the price that holds when it begins: that of
    `*` always, that of a pool when the tenant used it.
    """
    wanted = await decoded(request, NewPrice)
    price = services.NewPrice(**msgspec.structs.asdict(wanted))
    added = await platform.billing.prices.add(price, actor)
    return json_reply(PriceView(**added._asdict()), 201)
