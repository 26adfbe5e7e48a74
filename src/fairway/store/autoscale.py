"""How many workers pools should have: operators' settings, the last decision, and those before."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.core.autoscale.facts import Code, Mode, Override, RecordedDecision, ScaleSettings
from fairway.core.unix_time import to_unix_ms
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch_as,
    fetch_value,
)
from fairway.store.sql import load

_SQL = load("autoscale.sql")


class PoolScale(NamedTuple):
    """One pool's row."""

    pool: str
    mode: Mode
    minimum_workers: int
    maximum_workers: int
    down_after_seconds: float | None
    override_workers: int | None
    override_until: datetime | None
    override_by: str | None
    round: int
    wanted_workers: int | None
    short_of: int
    closed: list[str]
    leaving: list[str]

    @property
    def settings(self) -> ScaleSettings:
        override = None
        if self.override_workers is not None and self.override_until is not None:
            until_ms = to_unix_ms(self.override_until)
            override = Override(self.override_workers, until_ms, self.override_by or "")
        return ScaleSettings(
            mode=self.mode,
            minimum_workers=self.minimum_workers,
            maximum_workers=self.maximum_workers,
            down_after_seconds=self.down_after_seconds,
            override=override,
        )


class Decided(NamedTuple):
    """The state that a decision leaves."""

    pool: str
    round: int  # as it was read
    wanted: int
    short_of: int
    closed: list[str]
    leaving: list[str]


class NewDecision(NamedTuple):
    pool: str
    from_workers: int
    to_workers: int
    code: Code
    reason: str
    dry_run: bool
    facts: str  # a JSON object


async def all_pools(connection: Connection) -> list[PoolScale]:
    return await fetch_as(PoolScale, connection, _SQL["autoscale_pools"])


async def put_settings(connection: Connection, pool: str, settings: ScaleSettings) -> None:
    await execute(
        connection,
        _SQL["put_autoscale"],
        pool=pool,
        mode=settings.mode,
        minimum_workers=settings.minimum_workers,
        maximum_workers=settings.maximum_workers,
        down_after_seconds=settings.down_after_seconds,
    )


async def put_override(
    connection: Connection, pool: str, workers: int, until: datetime, by: str
) -> None:
    await execute(connection, _SQL["put_override"], pool=pool, workers=workers, until=until, by=by)


async def drop_override(connection: Connection, pool: str) -> bool:
    """Whether there was one."""
    return bool(await execute(connection, _SQL["drop_override"], pool=pool))


async def put_decided(connection: Connection, decided: Decided) -> int | None:
    """The new round; None when somebody else changed the row since it was read."""
    found: int | None = await fetch_value(connection, _SQL["put_decided"], **decided._asdict())
    return found


async def add_decision(connection: Connection, decision: NewDecision) -> None:
    await execute(connection, _SQL["add_decision"], **decision._asdict())


async def forget_decisions(connection: Connection, kept: int, limit: int) -> int:
    return await execute(connection, _SQL["forget_decisions"], kept=kept, limit=limit)


async def decisions(
    connection: Connection, pool: str | None, below: int, limit: int
) -> list[RecordedDecision]:
    """Newest first."""
    return await fetch_as(
        RecordedDecision,
        connection,
        _SQL["autoscale_decisions"],
        pool=pool,
        below=below,
        limit=limit,
    )
