"""The price list: read by all, kept by operators.

What has begun is never changed. One that is to come can be taken back: nothing was charged by it.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.core.audit import Act, Actor
from fairway.core.billing.periods import is_whole_hour
from fairway.core.billing.pricing import ANY_POOL, Price, parsed_id
from fairway.core.errors import Conflict, InvalidRequest, NotFound
from fairway.core.ids import TenantId
from fairway.core.pools import PoolTable
from fairway.services.registry.audit_log import AuditLog
from fairway.services.transient_errors import told_if_away
from fairway.store.billing import prices as store
from fairway.store.connections.database import Connection, Database


class NewPrice(NamedTuple):
    pool: str  # or every pool
    valid_from: datetime | None  # None: the next hour
    base_fee_micros: int
    slot_second_micros: int


class Prices:
    def __init__(self, database: Database, pools: PoolTable, audit_log: AuditLog) -> None:
        self._database = database
        self._pools = pools
        self._audit_log = audit_log

    async def all(self, asker: TenantId | None = None) -> list[Price]:
        async with told_if_away, self._database.asked(asker) as connection:
            return await store.list_prices(connection)

    async def add(self, wanted: NewPrice, actor: Actor) -> Price:
        """Refuses what does not lie ahead: an hour that was charged keeps its price."""
        if wanted.pool != ANY_POOL:
            self._pools.named(wanted.pool, "/pool")
        if wanted.valid_from is not None and not is_whole_hour(wanted.valid_from):
            raise InvalidRequest(
                "A price begins with an hour, such as 2026-12-01T00:00:00Z.", field="/valid_from"
            )
        async with told_if_away, self._database.asked(None) as connection:
            return await self._add(connection, wanted, actor)

    async def _add(self, connection: Connection, wanted: NewPrice, actor: Actor) -> Price:
        known = await store.list_prices(connection)
        if len(known) >= store.PRICES_MAX:
            raise Conflict(f"There are {len(known)} prices already, as many as there may be.")
        begins = wanted.valid_from or await store.next_hour(connection)
        price = Price(wanted.pool, begins, wanted.base_fee_micros, wanted.slot_second_micros)
        async with connection.transaction():
            if not await store.add_price(connection, price):
                raise _refusal(price, known)
            act = Act("add_price", price.pool, after=price._asdict())
            await self._audit_log.add(connection, actor, act)
        return price

    async def drop(self, id_: str, actor: Actor) -> None:
        """Take back one that has not begun."""
        asked = parsed_id(id_)
        if asked is None:
            raise _no_such(id_)
        async with told_if_away, self._database.asked(None) as connection, connection.transaction():
            dropped = await store.drop_price(connection, *asked)
            if dropped is None:
                known = await store.list_prices(connection)
                raise _has_begun(id_) if any(one.id == id_ for one in known) else _no_such(id_)
            act = Act("drop_price", dropped.id, before=dropped._asdict())
            await self._audit_log.add(connection, actor, act)


def _no_such(id_: str) -> NotFound:
    return NotFound(f"There is no price {id_[:64]!r}; ids are in the list of prices.")


def _has_begun(id_: str) -> Conflict:
    return Conflict(
        f"The price {id_} has begun, and what was used keeps its price: add one that begins later."
    )


def _refusal(price: Price, known: list[Price]) -> Exception:
    if any((one.pool, one.valid_from) == (price.pool, price.valid_from) for one in known):
        return Conflict(
            f"There is a price for {price.pool} from {price.valid_from.isoformat()} already, and"
            f" prices are not changed: take {price.id} back first, or begin at another hour."
        )
    return InvalidRequest(
        "A price begins in the future: what was used keeps the price it was used at.",
        field="/valid_from",
    )
