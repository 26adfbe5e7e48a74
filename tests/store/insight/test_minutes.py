"""A minute is in its hour once, however often it is sent; the store adds up as the core does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.core.insight.test_history import HOUR

from fairway.core.ids import TenantId
from fairway.core.insight.history import Step, Stored, minute_bit, rolled_up
from fairway.store.connections.database import Connection, Database
from fairway.store.insight import sights
from fairway.store.insight.minutes import (
    About,
    MinuteLine,
    forget_history,
    read_history,
    write_minute,
)

POOL, MINE = About(1, TenantId(0), "short"), About(3, TenantId(7), "")
BEGIN = datetime.fromtimestamp(HOUR, UTC)


def line(minute: int, *levels: int | None, pickup: list[int], run: list[int]) -> Stored:
    at = HOUR + 60 * minute
    return Stored._make((at, minute_bit(at), 9, 8, 7, 3, 2, 1, *levels, pickup, run))


MINUTES = [
    line(0, 5, None, 8, 100, pickup=[1, 2], run=[]),
    line(1, 7, 3, 8, None, pickup=[], run=[4]),
    line(59, None, 4, 8, 50, pickup=[1, 0, 0, 6], run=[1, 1]),
]


def in_order(lines: list[Stored]) -> list[Stored]:
    return sorted(lines, key=lambda one: (one.at, one.minutes))


async def write(connection: Connection, server: str, counts: Stored) -> None:
    at = datetime.fromtimestamp(counts.at, UTC)
    lines = [MinuteLine(POOL, counts), MinuteLine(MINE, counts)]
    await write_minute(connection, server, at, lines)


async def read(connection: Connection, step: Step, about: About = POOL) -> list[Stored]:
    found = await read_history(connection, step, about, BEGIN, BEGIN + timedelta(hours=1))
    lists = [one._replace(pickup=list(one.pickup), run=list(one.run)) for one in found]
    return in_order(lists)


async def test_an_hour_is_the_sum_of_its_minutes_by_server(connection: Connection) -> None:
    for counts in MINUTES:
        for _ in range(2):  # the first reply was lost
            await write(connection, "a", counts)
    await write(connection, "b", MINUTES[0])
    assert await read(connection, "minute") == in_order([*MINUTES, MINUTES[0]])
    whole = rolled_up(MINUTES)
    found = await read(connection, "hour")
    assert found == in_order([whole, MINUTES[0]])
    assert await read(connection, "hour", MINE) == found
    assert await read(connection, "hour", POOL._replace(name="long")) == []


async def test_old_lines_go_and_others_stay(connection: Connection) -> None:
    for counts in MINUTES:
        await write(connection, "a", counts)
    after = BEGIN + timedelta(minutes=30)
    assert await forget_history(connection, "minute", after, 3) == 3, "so many at once"
    assert await forget_history(connection, "minute", after, 3) == 1
    assert await read(connection, "minute") == [MINUTES[2]]
    assert await forget_history(connection, "hour", BEGIN, 100) == 0
    assert await forget_history(connection, "hour", after, 100) == 2


async def test_a_tenant_sees_its_own_lines_alone(database: Database) -> None:
    async with database.background() as connection:
        await write(connection, "a", MINUTES[0])
    async with database.asked(TenantId(7)) as connection:
        assert await read(connection, "minute", MINE) == [MINUTES[0]]
        assert await read(connection, "minute", POOL) == []
    async with database.asked(TenantId(8)) as connection:
        assert await read(connection, "minute", MINE) == []


async def test_servers_hear_each_other_while_they_speak(connection: Connection) -> None:
    for sight in (b"1", b"2"):
        await sights.tell_sight(connection, "a", sight)
    await sights.tell_sight(connection, "b", b"3")
    assert await sights.other_sights(connection, "b", 10) == [b"2"]
    await connection.execute("UPDATE insight_servers SET told_at = now() - interval '1 day'")
    assert await sights.other_sights(connection, "b", 10) == []
    assert await sights.forget_sights(connection) == 2
