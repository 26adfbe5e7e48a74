"""Looks after hot statements that were slow: counted, logged with their plan, statistics renewed.

A plan that flipped does not mend itself: what it slows down is what would change the table enough
to be analysed. So the first statement that takes a second has today's jobs analysed. All of it is
done beside the job path, by one at a time, and each at most once a minute.
"""

from __future__ import annotations

from fairway.runtime.telemetry import Metrics, logger
from fairway.store.connections.database import PINNED_PLANS, Database
from fairway.store.connections.slow_calls import SlowCall, analyse_today, explain

log = logger("slow statements")

AGAIN_US = 60_000_000  # a statement's plan, or an ANALYZE
REST_SECONDS = 60.0


class SlowStatements:
    def __init__(self, database: Database, metrics: Metrics) -> None:
        self._database = database
        self._metrics = metrics
        self._explained_us: dict[str, int] = {}
        self._analysed_us = -AGAIN_US

    async def run_once(self, now_us: int) -> float:
        """Look at those of the job path; a loop calls this, and they wake it."""
        slowest = self._database.slow_calls.take()
        for call, count in slowest:
            name = call.statement.name
            self._metrics.slow_statements.labels(name).inc(count)
            if now_us - self._explained_us.get(name, -AGAIN_US) >= AGAIN_US:
                self._explained_us[name] = now_us
                await self._tell(call)
        if slowest and now_us - self._analysed_us >= AGAIN_US:
            self._analysed_us = now_us
            await self._analyse()
        return REST_SECONDS

    async def _tell(self, call: SlowCall) -> None:
        try:
            async with self._database.background() as connection:
                plan = await explain(connection, call.statement, PINNED_PLANS)
        except Exception as error:  # then without: the statistics are still to be renewed
            plan = f"not found out: {error!r}"
        log.warning(
            "hot statement was slow",
            statement=call.statement.name,
            seconds=round(call.seconds, 3),
            plan=plan,
        )

    async def _analyse(self) -> None:
        async with self._database.upkeep() as connection:
            if table := await analyse_today(connection):
                log.info("statistics renewed", table=table)
