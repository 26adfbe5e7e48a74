"""What one tenant may see of itself: its queues, its rates of the last minute, its share.

Only the owner of the tenant's shard knows what waits and runs.
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.ids import TenantId
from fairway.core.insight.activity import JobCounts
from fairway.core.insight.buckets import Quantiles, quantiles
from fairway.core.insight.sight import RATES, ShareSight
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.insight.board import Board
from fairway.services.insight.minute_writer import MinuteWriter
from fairway.services.insight.observer import Observer
from fairway.services.store_clock import StoreClock


class OwnPool(NamedTuple):
    """A pool as one tenant sees it."""

    share: ShareSight
    oldest_ms: int | None  # how long its oldest job waits
    rates: dict[str, float | None]
    pickup: Quantiles
    whole: Quantiles


class TenantView:
    def __init__(
        self,
        dispatcher: Dispatcher,
        observer: Observer,
        board: Board,
        minutes: MinuteWriter,
        store_clock: StoreClock,
    ) -> None:
        self._dispatcher = dispatcher
        self._observer = observer
        self._board = board
        self._minutes = minutes
        self._clock = store_clock

    def pools(self, tenant: TenantId) -> list[OwnPool]:
        """As the owner of its shard sees it."""
        seen, feed = self._board.seen, self._dispatcher.windows()
        slots = {pool.name: pool.slots for pool in seen.pools} if seen else {}
        found = []
        for pool in list(self._dispatcher.pools.by_name.values()):
            number = pool.number
            depth = feed.depth_in(number, tenant)
            share = self._observer.share_of(tenant, number, depth, slots.get(pool.name, 0))
            since_ms = feed.oldest_ms(number, tenant)
            oldest_ms = None if since_ms is None else max(self._clock.unix_ms() - since_ms, 0)
            last = self._minutes.last
            tally = None if last is None else last.of_tenant.get((tenant, number), JobCounts())
            found.append(
                OwnPool(
                    share,
                    oldest_ms,
                    self._rates(tally),
                    quantiles([] if tally is None else tally.pickup),
                    quantiles([] if tally is None else tally.whole),
                )
            )
        return found

    def _rates(self, tally: JobCounts | None) -> dict[str, float | None]:
        """Other servers take jobs in, too: then nobody knows how many came in all."""
        seconds = self._minutes.last_seconds
        if tally is None or seconds <= 0:
            return dict.fromkeys(RATES)
        rates: dict[str, float | None] = {name: getattr(tally, name) / seconds for name in RATES}
        if self._board.servers > 1:
            rates["accepted"] = None
        return rates
