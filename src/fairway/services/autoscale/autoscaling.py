"""What people ask of autoscaling: how pools stand, what was decided, what they want otherwise."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.audit import PLATFORM, Act, Actor
from fairway.core.autoscale.facts import Override, PoolFacts, RecordedDecision, ScaleSettings
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.insight.alarm_readings import PoolAtMaximum
from fairway.runtime.loops import Step
from fairway.services.autoscale.autoscaler import Autoscaler
from fairway.services.registry.audit_log import AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store import autoscale as store
from fairway.store.connections.database import Database

NOTHING_SAID = ScaleSettings()


class PoolStanding(NamedTuple):
    """One pool: what is said of it, what is seen of it, what is wanted."""

    pool: str
    settings: ScaleSettings
    facts: PoolFacts | None
    wanted: int
    may_go: list[str]  # idle workers that get no jobs any more
    override: Override | None


class Autoscaling:
    def __init__(
        self,
        database: Database,
        directory: Directory,
        store_clock: StoreClock,
        autoscaler: Autoscaler,
        audit_log: AuditLog,
    ) -> None:
        self._database = database
        self._pools = directory.pools
        self._clock = store_clock
        self._autoscaler = autoscaler
        self._audit_log = audit_log

    def steps(self) -> dict[str, Step]:
        return {"autoscale": self._autoscaler.run_once}

    # -- looking ---------------------------------------------------------------------------------

    async def standings(self) -> list[PoolStanding]:
        """Every pool there is."""
        async with told_if_away, self._database.asked(None) as connection:
            rows = {row.pool: row for row in await store.all_pools(connection)}
        return [self._standing(name, rows.get(name)) for name in self._pools.by_name]

    async def standing(self, pool: str) -> PoolStanding:
        self._check(pool)
        return next(one for one in await self.standings() if one.pool == pool)

    def _standing(self, pool: str, row: store.PoolScale | None) -> PoolStanding:
        """Whoever may go is so only while it is seen closed and idle: what was decided is older."""
        facts = self._autoscaler.facts_of(pool)
        there = 0 if facts is None else facts.workers
        if row is None or row.mode == "off":
            settings = NOTHING_SAID if row is None else row.settings
            return PoolStanding(pool, settings, facts, there, [], None)
        wanted = there if row.wanted_workers is None else row.wanted_workers
        spare = () if facts is None else facts.spare
        idle = {one.name for one in spare if one.is_closed and not one.busy}
        may_go = [name for name in row.leaving if name in idle and row.mode == "on"]
        override = row.settings.override_at(self._clock.unix_ms())
        return PoolStanding(pool, row.settings, facts, wanted, may_go, override)

    async def decisions(self, pool: str | None, below: int, limit: int) -> list[RecordedDecision]:
        """Newest first."""
        if pool is not None:
            self._check(pool)
        async with told_if_away, self._database.asked(None) as connection:
            return await store.decisions(connection, pool, below, limit)

    def at_maximum(self) -> tuple[PoolAtMaximum, ...] | None:
        """For alarms; None: not known."""
        rows = self._autoscaler.rows
        if rows is None:
            return None
        return tuple(
            PoolAtMaximum(row.pool, row.short_of, row.maximum_workers)
            for row in rows.values()
            if row.mode == "on"
        )

    # -- saying otherwise ------------------------------------------------------------------------

    async def put_settings(self, pool: str, settings: ScaleSettings, actor: Actor) -> PoolStanding:
        self._check(pool)
        before = (await self.standing(pool)).settings
        async with (
            told_if_away,
            self._database.asked(None) as connection,
            connection.transaction(),
        ):
            await store.put_settings(connection, pool, settings)
            act = Act("set_autoscale", pool, None, _fields(before), _fields(settings))
            await self._audit_log.add(connection, actor, act)
        return await self.standing(pool)

    async def begin(self, maximum_workers: int) -> None:
        """Turn it on for pools that nobody said anything about."""
        settings = ScaleSettings(mode="on", maximum_workers=max(maximum_workers, 1))
        async with told_if_away, self._database.asked(None) as connection:
            known = {row.pool for row in await store.all_pools(connection)}
        for pool in self._pools.by_name.keys() - known:
            await self.put_settings(pool, settings, PLATFORM)

    async def put_override(
        self, pool: str, workers: int, seconds: float, actor: Actor
    ) -> PoolStanding:
        now = await self._check_overridable(pool, workers)
        until = now + timedelta(seconds=seconds)
        async with (
            told_if_away,
            self._database.asked(None) as connection,
            connection.transaction(),
        ):
            await store.put_override(connection, pool, workers, until, actor.name or actor.id)
            after = {"workers": workers, "until": until.isoformat()}
            act = Act("override_autoscale", pool, None, {}, after)
            await self._audit_log.add(connection, actor, act)
        return await self.standing(pool)

    async def _check_overridable(self, pool: str, workers: int) -> datetime:
        settings = (await self.standing(pool)).settings
        if settings.mode == "off":
            raise InvalidRequest(
                f"Autoscaling of the pool {pool} is off, so nobody would act on it: turn it on"
                f" first, `fairway autoscale set {pool} mode=on`.",
                field="/workers",
            )
        if workers > settings.maximum_workers:
            raise InvalidRequest(
                f"The pool {pool} may have {settings.maximum_workers} workers at most: raise that"
                f" first, `fairway autoscale set {pool} maximum_workers={workers}`.",
                field="/workers",
            )
        return self._clock.now()

    async def drop_override(self, pool: str, actor: Actor) -> PoolStanding:
        before = await self.standing(pool)
        async with (
            told_if_away,
            self._database.asked(None) as connection,
            connection.transaction(),
        ):
            if not await store.drop_override(connection, pool):
                raise NotFound(f"Nobody overrides the autoscaling of the pool {pool}.")
            workers = None if before.override is None else before.override.workers
            act = Act("end_autoscale_override", pool, None, {"workers": workers}, {})
            await self._audit_log.add(connection, actor, act)
        return await self.standing(pool)

    def _check(self, pool: str) -> None:
        if pool not in self._pools.by_name:
            raise NotFound(
                f"There is no pool {pool[:64]!r}; there are {', '.join(self._pools.by_name)}."
            )


def _fields(settings: ScaleSettings) -> dict[str, object]:
    return {
        "mode": settings.mode,
        "minimum_workers": settings.minimum_workers,
        "maximum_workers": settings.maximum_workers,
        "down_after_seconds": settings.down_after_seconds,
    }
