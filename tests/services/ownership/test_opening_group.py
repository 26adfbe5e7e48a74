"""Shards that come together read once; who comes later reads anew; one that is sick fails alone."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from fairway.core.ids import ShardId
from fairway.runtime.clock import ManualClock
from fairway.services.ownership.move_times import CLAIMED, OPENED, RESTORED, STEPS_KEPT, MoveTimes
from fairway.services.ownership.opening_group import OpeningGroup

SICK = ShardId(3)


class Reads:
    def __init__(self) -> None:
        self.made: list[list[ShardId]] = []
        self.may_go = asyncio.Event()

    async def read(self, shards: Collection[ShardId]) -> None:
        self.made.append(sorted(shards))
        await self.may_go.wait()
        if SICK in shards:
            raise LookupError("not to be read")


async def test_who_comes_while_one_reads_shares_the_next() -> None:
    reads = Reads()
    group = OpeningGroup(reads.read)
    waiting = [asyncio.create_task(group.ready(ShardId(one))) for one in (0, 1)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting += [asyncio.create_task(group.ready(ShardId(one))) for one in (1, 2)]
    await asyncio.sleep(0)
    reads.may_go.set()
    await asyncio.gather(*waiting)
    assert reads.made == [[0, 1], [1, 2]], "1 was lost and taken again: the first read is too old"


async def test_one_that_cannot_be_read_holds_up_no_other() -> None:
    reads = Reads()
    reads.may_go.set()
    group = OpeningGroup(reads.read)
    found = await asyncio.gather(
        *(group.ready(ShardId(one)) for one in (2, SICK, 4)), return_exceptions=True
    )
    assert [type(one) for one in found] == [type(None), LookupError, type(None)]


def test_a_move_is_told_in_parts_and_little_of_it_is_kept() -> None:
    clock, shard = ManualClock(), ShardId(7)
    moves = MoveTimes(clock)
    assert moves.last_move_ms(shard) == {}
    for _ in range(STEPS_KEPT):
        for name, seconds in ((CLAIMED, 0.5), (RESTORED, 0.02), (OPENED, 0.03)):
            clock.advance(seconds)
            moves.note(name, [shard])
    assert moves.last_move_ms(shard) == {RESTORED: 20, OPENED: 30}
    assert len(moves.between(shard, 0, clock.now_us())) == STEPS_KEPT
