"""The price list: read whole, added to; what has begun is never changed."""

from __future__ import annotations

from datetime import datetime

from fairway.core.billing.pricing import Price
from fairway.store.connections.database import Connection, fetch_as, fetch_value, is_found
from fairway.store.sql import load

_SQL = load("prices.sql")

PRICES_MAX = 1_000


async def list_prices(connection: Connection) -> list[Price]:
    """By pool, then by when they begin."""
    return await fetch_as(Price, connection, _SQL["list_prices"], limit=PRICES_MAX)


async def add_price(connection: Connection, price: Price) -> bool:
    """False when it does not lie ahead, or one that begins then is there."""
    return await is_found(connection, _SQL["add_price"], **price._asdict())


async def drop_price(connection: Connection, pool: str, valid_from: datetime) -> Price | None:
    """What it was; None when there is none, or it has begun."""
    found = await fetch_as(Price, connection, _SQL["drop_price"], pool=pool, valid_from=valid_from)
    return found[0] if found else None


async def next_hour(connection: Connection) -> datetime:
    moment: datetime = await fetch_value(connection, _SQL["next_hour"])
    return moment
