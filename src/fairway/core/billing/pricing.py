"""Prices with the time from which they hold, and what usage costs by them. No floats anywhere.

Money is in whole millionths of the currency (micros), slot-time in whole microseconds. A price
begins with an hour, and usage is kept by the hour, so every hour has one price in each pool. A line
of a statement is all usage of one pool and type at one price; it is rounded once, half up, and a
statement's total is the sum of its lines as they stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from fairway.core.billing.periods import Month

ANY_POOL = "*"
_ID = re.compile(r"(\*|[a-z][a-z0-9_-]{0,31})-(\d{10})")
US_PER_SECOND = 1_000_000


class Price(NamedTuple):
    pool: str  # or ANY_POOL
    valid_from: datetime
    base_fee_micros: int  # a month
    slot_second_micros: int

    @property
    def id(self) -> str:
        """`gpu-2026120100`: its pool, and the hour of UTC with which it begins."""
        return f"{self.pool}-{self.valid_from.astimezone(UTC):%Y%m%d%H}"


def parsed_id(text: str) -> tuple[str, datetime] | None:
    """Pool and hour of a price's id; None for what is none."""
    found = _ID.fullmatch(text)
    if found is None or not text.isascii():
        return None
    try:
        return found[1], datetime.strptime(found[2], "%Y%m%d%H").replace(tzinfo=UTC)
    except ValueError:
        return None


class PricedUse(NamedTuple):
    """What one pool and type used while one set of prices held."""

    since: datetime
    pool: str
    type: str
    jobs: int
    attempts: int
    billed_us: int
    unbilled_us: int


class Line(NamedTuple):
    """Of a statement. A base fee has no type, and for all pools together `*` as its pool."""

    kind: str  # base_fee or usage
    pool: str
    type: str
    jobs: int
    attempts: int
    billed_us: int
    unbilled_us: int
    price_micros: int  # a slot-second; of a base fee, a month
    amount_micros: int


def price_at(prices: Iterable[Price], pool: str, moment: datetime) -> Price | None:
    """The pool's own, else that of every pool; None before there was one."""
    begun = [one for one in prices if one.valid_from <= moment and one.pool in (pool, ANY_POOL)]
    return max(begun, key=lambda one: (one.pool != ANY_POOL, one.valid_from), default=None)


def cuts(prices: Iterable[Price], month: Month) -> list[datetime]:
    """Where prices may change within a month, its beginning first."""
    changes = {one.valid_from for one in prices if month.begins < one.valid_from < month.ends}
    return [month.begins, *sorted(changes)]


def amount_of(billed_us: int, slot_second_micros: int) -> int:
    """Rounded half up, once."""
    return (billed_us * slot_second_micros + US_PER_SECOND // 2) // US_PER_SECOND


def lines_of(used: Sequence[PricedUse], prices: Sequence[Price], month: Month) -> list[Line]:
    """A month's statement: base fees first, then usage by pool, type and price.

    The base fee for every pool is owed whatever was used, that of one pool when that was used. It
    is the one that held when the month began.
    """
    return [*_base_fees({one.pool for one in used}, prices, month), *_usage(used, prices)]


def _base_fees(pools: Iterable[str], prices: Sequence[Price], month: Month) -> list[Line]:
    found = []
    for pool in (ANY_POOL, *sorted(pools)):
        price = price_at((one for one in prices if one.pool == pool), pool, month.begins)
        if price is not None and price.base_fee_micros:
            fee = price.base_fee_micros
            found.append(Line("base_fee", pool, "", 0, 0, 0, 0, fee, fee))
    return found


def _usage(used: Sequence[PricedUse], prices: Sequence[Price]) -> list[Line]:
    sums: dict[tuple[str, str, int], tuple[int, int, int, int]] = {}
    for one in used:
        price = price_at(prices, one.pool, one.since)
        key = one.pool, one.type, 0 if price is None else price.slot_second_micros
        jobs, attempts, billed_us, unbilled_us = sums.get(key, (0, 0, 0, 0))
        sums[key] = (
            jobs + one.jobs,
            attempts + one.attempts,
            billed_us + one.billed_us,
            unbilled_us + one.unbilled_us,
        )
    return [
        Line("usage", *key[:2], *sums[key], key[2], amount_of(sums[key][2], key[2]))
        for key in sorted(sums)
    ]


def total_micros(lines: Iterable[Line]) -> int:
    return sum(line.amount_micros for line in lines)
