"""What was used and what it costs, over HTTP: `app.client.billing`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import quote, urlencode

import msgspec

from fairway.sdk.http.transport import Question, Transport
from fairway.wire.billing import (
    AttemptList,
    AttemptView,
    PriceList,
    PriceView,
    SpendCapView,
    StatementView,
    Usage,
)

_decode_usage = msgspec.json.Decoder(Usage).decode
_decode_attempts = msgspec.json.Decoder(AttemptList).decode
_decode_statement = msgspec.json.Decoder(StatementView).decode
_decode_prices = msgspec.json.Decoder(PriceList).decode
_decode_cap = msgspec.json.Decoder(SpendCapView).decode


class BillingCalls:
    """Of the tenant whose key it is. Moments are whole hours and have a zone."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def usage(
        self,
        since: datetime | None = None,
        before: datetime | None = None,
        *,
        by: Literal["hour", "day", "month"] = "day",
        group: str = "pool",
    ) -> Usage:
        """Of this month until now, unless told otherwise; `group` is pool, type or pool,type."""
        query = _query({"from": _text(since), "to": _text(before), "by": by, "group": group})
        return _decode_usage(await self._get(f"/v1/usage?{query}"))

    async def attempts(
        self,
        since: datetime | None = None,
        before: datetime | None = None,
        *,
        pool: str | None = None,
        type: str | None = None,
    ) -> AsyncIterator[AttemptView]:
        """The runs behind a line, of jobs that are still there."""
        asked = {"from": _text(since), "to": _text(before), "pool": pool, "type": type}
        cursor: str | None = ""
        while cursor is not None:
            query = _query(asked | {"cursor": cursor or None})
            page = _decode_attempts(await self._get(f"/v1/usage/attempts?{query}"))
            for one in page.attempts:
                yield one
            cursor = page.next_cursor

    async def statement(self, month: str) -> StatementView:
        """`"2026-01"`; as of now while the month is open."""
        return _decode_statement(await self._get(f"/v1/statements/{quote(month, safe='')}"))

    async def prices(self) -> list[PriceView]:
        return _decode_prices(await self._get("/v1/prices")).prices

    async def spend_cap(self) -> SpendCapView:
        return _decode_cap(await self._get("/v1/spend-cap"))

    async def _get(self, path: str) -> bytes:
        return await self._transport.ask(Question("GET", path))


def _query(values: dict[str, str | None]) -> str:
    return urlencode({name: value for name, value in values.items() if value is not None})


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
