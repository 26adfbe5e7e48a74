"""`/v1/prices`: the price list. What has begun is never changed."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.endpoint import Endpoint, Reply, path
from fairway.api.http.decoding import decoded, json_reply
from fairway.core.audit import Actor
from fairway.core.billing.pricing import Price
from fairway.services.billing import prices as services
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire.billing import NewPrice, PriceList, PriceView

_PRICE = {
    "id": "*-2026020100",
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
    return json_reply(PriceList(prices=[_view(one) for one in found]))


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

    From an hour that is still to come: what was used keeps its price, and a price that has begun is
    never changed; until then it can be taken back. A base fee is charged for a month by the price
    that holds when it begins: that of `*` always, that of a pool when the tenant used it.
    """
    wanted = await decoded(request, NewPrice)
    price = services.NewPrice(**msgspec.structs.asdict(wanted))
    added = await platform.billing.prices.add(price, actor)
    return json_reply(_view(added), 201)


@Endpoint(
    "DELETE /v1/prices/{id}",
    keys=("operator",),
    permission="admin",
    parameters=(path("id", "The price's id, as the list has it.", "long-2999010100"),),
    reply=Reply(204, "It will not begin."),
    problems=("NOT_FOUND", "CONFLICT"),
)
async def drop_price(request: Request, platform: Platform, actor: Actor) -> Response:
    """Take a price back

    While it has not begun: nothing was charged by it. One that has begun stays for good, 409.
    """
    await platform.billing.prices.drop(request.path_params["id"], actor)
    return Response(status_code=204)


def _view(price: Price) -> PriceView:
    return PriceView(id=price.id, **price._asdict())
