"""Checkpoints in the hands of the services: fenced, verified, and missed out loud."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.services.platform_room import (
    LONG,
    QUICK,
    Hand,
    add_tenant,
    new,
    owner_on,
    submit,
    told_events,
)

from fairway.core.errors import Conflict, NotFound, Unavailable
from fairway.core.explain import Reason
from fairway.core.ids import Epoch
from fairway.core.run.lease import LeaseProof
from fairway.core.run.outcome import Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.runtime.settings import replaced
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease


class Room:
    def __init__(self, platform: Platform, tenant: Tenant, hand: Hand, folder: Path) -> None:
        self.platform, self.tenant, self.hand, self.folder = platform, tenant, hand, folder

    async def save(self, lease: Lease, number: int, body: bytes) -> None:
        await self.platform.large_data.checkpoints.save(proof(lease), number, body)

    async def load(self, lease: Lease) -> bytes | None:
        found = await self.platform.large_data.checkpoints.load(
            lease.job.tenant, lease.job.id, Epoch(lease.epoch + 1)
        )
        return found.body if found else None

    async def last_word(self) -> str:
        """What the tenant was last told of a lost checkpoint."""
        found = await told_events(self.platform, self.tenant, "checkpoint.lost")
        return str(found[-1].data["detail"])

    def objects(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("checkpoints/**/*") if path.is_file())


def proof(lease: Lease) -> LeaseProof:
    return LeaseProof(lease.job.tenant, lease.job.id, lease.epoch, lease.token)


@pytest.fixture
async def room(database_url: str, tmp_path: Path) -> AsyncIterator[Room]:
    folder = tmp_path / "objects"
    settings = replaced(QUICK, storage_url=f"file://{folder}")
    async with owner_on(database_url, settings) as platform:
        yield Room(platform, await add_tenant(platform), Hand(platform, long=1), folder)


@pytest.fixture
async def lease(room: Room) -> Lease:
    await submit(room.platform, room.tenant, new(pool=LONG))
    (lease,) = await room.hand.take()
    return lease


async def test_the_newest_two_are_kept(room: Room, lease: Lease) -> None:
    for number in (1, 2, 3, 4):
        await room.save(lease, number, str(number).encode())
    assert [path.read_bytes() for path in room.objects()] == [b"3", b"4"]
    assert await room.load(lease) == b"4"


async def test_broken_ones_are_passed_over(room: Room, lease: Lease) -> None:
    await room.save(lease, 1, b"one")
    await room.save(lease, 2, b"two")
    older, newest = room.objects()
    newest.write_bytes(b"tw0")
    assert await room.load(lease) == b"one"
    assert "goes on from number 1" in await room.last_word()
    older.unlink()
    with pytest.raises(NotFound, match="gone from object storage") as lost:
        await room.load(lease)
    assert lost.value.code == "CHECKPOINT_LOST"
    assert "begins at the beginning" in await room.last_word()


async def test_a_lost_lease_leaves_nothing_behind(room: Room, lease: Lease) -> None:
    await room.save(lease, 1, b"good")
    await room.hand.report(room.hand.done(lease, Outcome(OutcomeKind.RETURNED, 5)))
    with pytest.raises(Conflict, match="no longer in force"):
        await room.save(lease, 2, b"zombie")
    assert [path.read_bytes() for path in room.objects()] == [b"good"]


async def test_a_repeated_save_of_a_lost_lease_takes_nothing_away(room: Room, lease: Lease) -> None:
    """Its reply was lost, it is said again, and the lease ends in between."""
    await room.save(lease, 1, b"good")
    await room.hand.report(room.hand.done(lease, Outcome(OutcomeKind.RETURNED, 5)))
    with pytest.raises(Conflict, match="no longer in force"):
        await room.save(lease, 1, b"good")
    assert await room.load(lease) == b"good"


async def test_a_store_that_is_away_is_the_reason_that_explain_gives(
    room: Room, lease: Lease
) -> None:
    await room.save(lease, 1, b"one")
    shutil.rmtree(room.folder)
    room.folder.write_text("somebody put a file where the folder was")
    with pytest.raises(Unavailable, match="Object storage does not answer"):
        await room.load(lease)
    snoozed = Outcome(OutcomeKind.SNOOZED, 5, delay_ms=30_000)  # as a worker does then
    await room.hand.report(room.hand.done(lease, snoozed))
    platform = room.platform
    why = await platform.explainer.explain(room.tenant.id, lease.job.id, platform.clock.now_us())
    assert why.reason == Reason.CHECKPOINT_STORE
    assert str(room.folder) in why.note
