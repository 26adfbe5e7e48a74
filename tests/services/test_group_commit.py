"""Group commit: whoever comes while a write is under way shares the next one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

import pytest
from tests.services.platform_room import until

from fairway.core.ids import ShardId
from fairway.runtime.clock import ManualClock, SystemClock
from fairway.runtime.telemetry import Instruments, Metrics
from fairway.services.group_commit import (
    BYTES_MAX,
    FULL_JOBS,
    JOBS_MAX,
    LINGER_MIN,
    PATIENCE_SECONDS,
    GroupCommit,
    Lingering,
    ShardCommits,
    Sizes,
    linger_of_ends,
)


class Disk:
    """A slow disk: writes wait until they are let through."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.error: Exception | None = None
        self._through = asyncio.Event()
        self.at_once = 0
        self.at_once_most = 0

    async def write(self, items: list[int]) -> None:
        self.groups.append(items)
        self.at_once += 1
        self.at_once_most = max(self.at_once_most, self.at_once)
        try:
            await self._through.wait()
            if self.error is not None:
                raise self.error
        finally:
            self.at_once -= 1

    def let_through(self) -> None:
        self._through.set()

    def hold(self) -> None:
        self._through.clear()


@pytest.fixture
def disk() -> Disk:
    return Disk()


def group_to(
    disk: Disk,
    *,
    writes_max: int = 1,
    linger_seconds: float = 0,
    sizes: Sizes[int] | None = None,
) -> GroupCommit[int]:
    instruments = Instruments(SystemClock(), Metrics())
    return GroupCommit(
        "test", disk.write, instruments=instruments, sizes=sizes, writes_max=writes_max,
        linger=Lingering(linger_seconds),
    )  # fmt: skip


async def turn() -> None:
    """Let everything that is due happen."""
    for _ in range(5):
        await asyncio.sleep(0)


async def busy_group_to(disk: Disk, *, linger_seconds: float) -> GroupCommit[int]:
    """One whose last group was large, so that company is likely; the disk has forgotten it."""
    group = group_to(disk, linger_seconds=linger_seconds)
    disk.let_through()
    group.add_many(list(range(4 * LINGER_MIN)))  # a quarter of it counts
    await group.drain()
    disk.groups.clear()
    return group


async def test_nobody_waits_when_it_is_quiet(disk: Disk) -> None:
    group = group_to(disk)
    group.add(1)
    await turn()
    assert disk.groups == [[1]]
    disk.let_through()
    await group.drain()


async def test_who_has_a_part_of_what_comes_lingers_at_its_part_and_for_longer(disk: Disk) -> None:
    """Four processes would make four writes of what one makes one of."""
    disk.let_through()
    instruments = Instruments(SystemClock(), Metrics())
    alone, shared = (
        GroupCommit("test", disk.write, instruments=instruments, linger=linger)
        for linger in (
            linger_of_ends(is_distributed=False, processes=n)._replace(per_second_min=math.inf)
            for n in (1, 4)
        )
    )
    for group in (alone, shared):
        for _ in range(8):  # groups of three
            group.add_many([1, 2, 3])
            await group.drain()
        disk.groups.clear()
        group.add(1)
        await asyncio.sleep(0.015)  # longer than one process waits
        group.add(2)
        await group.drain()
        assert disk.groups == ([[1], [2]] if group is alone else [[1, 2]])


async def test_groups_grow_while_a_write_is_under_way_and_keep_their_order(disk: Disk) -> None:
    group = group_to(disk)
    group.add(1)
    await turn()
    for item in range(2, 7):
        group.add(item)
        await turn()
    assert disk.groups == [[1]]
    assert group.jobs_waiting == 6
    disk.let_through()
    await group.drain()
    assert disk.groups == [[1], [2, 3, 4, 5, 6]]
    assert group.jobs_waiting == 0


async def test_a_group_is_bounded_by_jobs_but_never_empty(disk: Disk) -> None:
    shares = {1: 0.4, 2: 0.6, 3: 0.1, 4: 2.5, 5: 0.9}
    group = group_to(disk, sizes=Sizes(lambda item: round(shares[item] * JOBS_MAX), lambda item: 0))
    disk.let_through()
    group.add_many([1, 2, 3])
    group.add_many([4, 5])
    assert group.jobs_waiting == round(4.5 * JOBS_MAX)
    await group.drain()
    assert disk.groups == [[1, 2], [3], [4], [5]]
    assert group.jobs_waiting == 0


async def test_a_group_is_bounded_by_bytes_but_never_empty(disk: Disk) -> None:
    """A thousand jobs of 64 KB in one commit would hold up everyone's single one."""
    shares = {1: 0.4, 2: 0.6, 3: 0.1, 4: 2.5, 5: 0.9}
    group = group_to(
        disk, sizes=Sizes(lambda item: 1, lambda item: round(shares[item] * BYTES_MAX))
    )
    disk.let_through()
    group.add_many([1, 2, 3, 4, 5])
    await group.drain()
    assert disk.groups == [[1, 2], [3], [4], [5]]


async def test_there_are_no_more_writes_at_once_than_lanes(disk: Disk) -> None:
    group = group_to(disk, writes_max=2, sizes=Sizes(lambda item: JOBS_MAX, lambda item: 0))
    for item in range(5):
        group.add(item)
    await turn()
    assert disk.groups == [[0], [1]]
    disk.let_through()
    await group.drain()
    assert disk.at_once_most == 2
    assert disk.groups == [[0], [1], [2], [3], [4]]


async def test_a_write_that_fails_does_not_stop_the_next(disk: Disk) -> None:
    group = group_to(disk)
    disk.let_through()
    disk.error = RuntimeError("disk on fire")
    group.add(1)
    await group.drain()
    disk.error = None
    group.add(2)
    await group.drain()
    assert disk.groups == [[1], [2]]
    assert group.jobs_waiting == 0


@pytest.mark.parametrize(("recent", "times"), [(0.0, 1), (1.0, 1), (2.5, 2.5), (90.0, 4)])
def test_where_a_statement_costs_the_same_for_many_groups_wait_for_more(
    recent: float, times: float
) -> None:
    assert linger_of_ends(is_distributed=True, processes=1).times(recent) == times
    assert linger_of_ends(is_distributed=False, processes=1).times(recent) == min(times, 2)


async def test_what_somebody_waits_for_lingers_as_if_it_came_alone(disk: Disk) -> None:
    """On a distributed store ends wait long for others: whoever asked for a result waited, too."""
    instruments = Instruments(SystemClock(), Metrics())
    linger = Lingering(0.02, recent_min=0, times_max=1000)
    commits = ShardCommits(
        lambda: GroupCommit("test", disk.write, instruments=instruments, linger=linger),
        lambda item: ShardId(item % 2),
        lambda shard: shard,
        is_any_awaited=lambda items: 601 in items,
    )
    disk.let_through()
    commits.add_many([*range(400)])
    await until(lambda: len(disk.groups) == 2)  # nothing came before: after one linger
    commits.add_many([500, 501])
    await asyncio.sleep(0.06)
    assert len(disk.groups) == 2, "they wait, as many came before"
    commits.add_many([601])
    await until(lambda: disk.groups[2:] == [[501, 601]])  # and not those of the other part
    await commits.drain()
    assert disk.groups[3:] == [[500]]


async def test_who_waits_for_an_end_hurries_it_where_a_statement_names_all_shards(
    disk: Disk,
) -> None:
    """And one that went on its way at once makes no other hurry."""
    instruments = Instruments(SystemClock(), Metrics())
    linger = Lingering(0.05, recent_min=2, times_max=1000)
    commits = ShardCommits(
        lambda: GroupCommit("test", disk.write, instruments=instruments, linger=linger),
        lambda item: ShardId(item % 2),
        None,
        is_any_awaited=lambda items: -1 in items,
    )
    disk.let_through()
    commits.add_many([-1, *range(400)])  # nothing came before: it goes at once
    await until(lambda: len(disk.groups) == 1)
    commits.add_many([500])
    await asyncio.sleep(0.15)
    assert len(disk.groups) == 1, "it waits, as many came before, and nobody waits for it"
    commits.add_many([501, -1])
    await until(lambda: disk.groups[1:] == [[500, 501, -1]])


async def test_where_many_come_one_by_one_they_wait_for_each_other(disk: Disk) -> None:
    """Each alone would be a statement; unless somebody waits for one, or begins after it."""
    linger = Lingering(30, recent_min=1000, times_max=2, per_second_min=50)
    instruments = Instruments(ManualClock(), Metrics())  # all of this within one moment
    group = GroupCommit("test", disk.write, instruments=instruments, linger=linger)
    disk.let_through()
    group.add(1)
    await until(lambda: disk.groups == [[1]])  # few came: it goes at once
    group.add_many([1] * 3)
    await until(lambda: len(disk.groups) == 2)
    await turn()
    group.add(2)
    await asyncio.sleep(0.02)
    assert len(disk.groups) == 2, "with the fifth there are enough of them to wait for more"
    group.hurry()
    await until(lambda: disk.groups[2:] == [[2]])
    await turn()
    group.add(3)
    await turn()
    assert len(disk.groups) == 3, "the next waits again"
    await group.drain()
    group.keep_moving()
    group.add(4)
    await until(lambda: disk.groups[3:] == [[3], [4]])


async def test_a_group_that_was_hurried_leaves_no_timer_that_cuts_the_next_short(
    disk: Disk,
) -> None:
    """Each left one more behind: where somebody waited for many, soon nothing lingered."""
    instruments = Instruments(SystemClock(), Metrics())
    linger = Lingering(0.02, recent_min=0, times_max=10)
    group = GroupCommit("test", disk.write, instruments=instruments, linger=linger)
    disk.let_through()
    group.add_many([0] * 300)  # many come: the next wait for ten times as long
    await group.drain()
    group.add(1)
    group.hurry()
    await until(lambda: disk.groups[1:] == [[1]])
    await asyncio.sleep(0.1)
    group.add(2)
    began = asyncio.get_running_loop().time()
    await until(lambda: disk.groups[2:] == [[2]])
    assert asyncio.get_running_loop().time() - began >= 0.19


async def test_drain_does_not_wait_for_the_linger_of_what_lingers(disk: Disk) -> None:
    group = await busy_group_to(disk, linger_seconds=30)
    group.add_many([1, 2])
    group.add(3)
    await turn()
    assert disk.groups == [], "they linger"
    await asyncio.wait_for(group.drain(), 30)
    assert disk.groups == [[1, 2, 3]]
    assert group.jobs_waiting == 0


async def test_an_item_added_during_the_drain_is_drained_too(disk: Disk) -> None:
    group = group_to(disk)
    group.add(1)
    draining = asyncio.create_task(group.drain())
    await turn()
    group.add(2)
    disk.let_through()
    await draining
    assert disk.groups == [[1], [2]]


async def test_company_is_waited_for_only_when_it_is_likely(disk: Disk) -> None:
    """Where groups were small lately, an item goes at once, however long others would linger."""
    quiet = group_to(disk, linger_seconds=30)
    disk.let_through()
    for item in range(LINGER_MIN):
        quiet.add(item)
        await quiet.drain()
    assert disk.groups == [[item] for item in range(LINGER_MIN)]
    disk.groups.clear()
    quiet.add(1)
    await turn()
    assert disk.groups == [[1]]


async def test_an_item_of_many_jobs_is_no_company_where_items_are_counted(disk: Disk) -> None:
    sizes = Sizes[int](lambda _: 50, lambda _: 1)
    instruments = Instruments(SystemClock(), Metrics())
    group = GroupCommit(
        "test", disk.write, instruments=instruments, sizes=sizes,
        linger=Lingering(30, counts="items"),
    )  # fmt: skip
    disk.let_through()
    for item in range(3):
        group.add(item)
        await turn()
    assert disk.groups == [[0], [1], [2]]


async def test_where_company_is_likely_an_item_waits_for_it_once(disk: Disk) -> None:
    group = await busy_group_to(disk, linger_seconds=0.05)
    began = asyncio.get_running_loop().time()
    for item in range(3):
        group.add(item)
        await turn()
    assert disk.groups == [], "they linger"
    await until(lambda: bool(disk.groups))
    assert asyncio.get_running_loop().time() - began >= 0.04
    assert disk.groups == [[0, 1, 2]], "in one commit, and nobody drained it"


async def test_a_full_group_waits_for_nobody(disk: Disk) -> None:
    group = await busy_group_to(disk, linger_seconds=30)
    group.add_many(list(range(FULL_JOBS)))
    await turn()
    assert [len(some) for some in disk.groups] == [FULL_JOBS]


async def test_a_group_that_stands_still_is_passed_by_in_the_next_lane(disk: Disk) -> None:
    group = group_to(disk, writes_max=2)
    for item in range(4):  # the first stands still, the second is a group of one, the rest waits
        group.add(item)
        await turn()
    assert disk.groups == [[0]]
    await until(lambda: len(disk.groups) == 2)
    await asyncio.sleep(2 * PATIENCE_SECONDS)
    group.add(4)
    await turn()
    assert disk.groups == [[0], [1, 2, 3]], "no more lanes than there are"
    disk.let_through()
    await group.drain()
    assert disk.groups == [[0], [1, 2, 3], [4]]


async def test_patience_counts_from_when_the_group_went_on_its_way(disk: Disk) -> None:
    group = group_to(disk, writes_max=2)
    group.add(0)
    await asyncio.sleep(0.8 * PATIENCE_SECONDS)
    group.add(1)
    assert disk.groups == [[0]]
    await asyncio.sleep(0.6 * PATIENCE_SECONDS)
    assert disk.groups == [[0], [1]]
    disk.let_through()
    await group.drain()


async def test_what_one_group_left_over_does_not_wait_for_it_when_it_stands_still(
    disk: Disk,
) -> None:
    group = group_to(disk, writes_max=2)
    group.add_many(list(range(JOBS_MAX + 3)))  # and nobody comes after these
    await turn()
    assert [len(some) for some in disk.groups] == [JOBS_MAX]
    await until(lambda: len(disk.groups) == 2)
    assert disk.groups[1] == [JOBS_MAX, JOBS_MAX + 1, JOBS_MAX + 2]
    disk.let_through()
    await group.drain()


async def test_where_each_is_written_apart_shards_do_not_wait_for_each_other() -> None:
    disks = {shard: Disk() for shard in range(3)}
    unused = iter(disks.values())
    groups = ShardCommits(
        lambda: group_to(next(unused)), lambda item: ShardId(item % 3), lambda shard: shard
    )
    disks[0].let_through()
    disks[2].let_through()
    groups.add_many(list(range(6)))
    await turn()
    groups.add_many([7, 8])
    await turn()
    assert [disk.groups for disk in disks.values()] == [[[0, 3]], [[1, 4]], [[2, 5], [8]]]
    disks[1].let_through()
    await groups.drain()
    assert disks[1].groups == [[1, 4], [7]]


async def test_what_is_withdrawn_is_not_written_and_nobody_waits_for_it(disk: Disk) -> None:
    lanes = ShardCommits(lambda: group_to(disk), lambda item: ShardId(item % 2), None)
    lanes.add_many([1])
    await until(lambda: disk.groups == [[1]])
    lanes.add_many([2, 3, 4])
    settling = asyncio.create_task(lanes.settle([ShardId(0), ShardId(1)]))
    await asyncio.sleep(0)
    assert lanes.withdraw([ShardId(1)]) == [3], "and what is under way goes on"
    assert lanes.withdraw([ShardId(1)]) == []
    disk.let_through()
    await asyncio.wait_for(settling, 10)
    await asyncio.wait_for(lanes.drain(), 10)
    assert disk.groups == [[1], [2, 4]]


async def test_shards_of_one_store_share_their_commits(disk: Disk) -> None:
    groups = ShardCommits(lambda: group_to(disk), lambda item: ShardId(item % 3), None)
    disk.let_through()
    groups.add_many(list(range(6)))
    await groups.drain()
    assert disk.groups == [[0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize("together", [None, lambda shard: shard])
async def test_a_shard_that_is_handed_over_waits_for_its_own_and_for_nothing_that_comes(
    disk: Disk, together: Callable[[ShardId], int] | None
) -> None:
    """Under load something always comes for other shards."""
    groups = ShardCommits(lambda: group_to(disk), lambda item: ShardId(item % 3), together)
    groups.add_many([1])
    groups.add_many([2, 4, 5])
    settling = asyncio.create_task(groups.settle([ShardId(1)]))
    await asyncio.sleep(0)
    assert not settling.done()

    async def write_on(items: list[int]) -> None:
        while not settling.done():
            groups.add_many(items)
            await asyncio.sleep(0)

    loading = asyncio.create_task(write_on([3]))
    disk.let_through()
    await asyncio.wait_for(settling, 10)
    assert {1, 4} <= {item for group in disk.groups for item in group}
    await loading
    await groups.drain()
