"""Errands that come back with something odd: a run must not wait for ever, nor die of it."""

from __future__ import annotations

import pytest
from tests.worker.platform import Platform, lease, said_of, until, working

from fairway.worker import transfers

APP = "tests.worker.odd_jobs:app"
PROXY = b"<html>no such page</html>"


@pytest.mark.parametrize("answer", [(200, b"<html>log in</html>"), (200, b"{}"), (404, PROXY)])
async def test_a_run_whose_checkpoint_cannot_be_read_is_put_off(answer: tuple[int, bytes]) -> None:
    platform = Platform()
    platform.errand = lambda path: answer
    platform.leases = [lease(1, resumes=True), lease(2)]
    async with platform.open(), working(platform, target=APP) as life:
        await until(lambda: len(platform.heard) == 2, life, "both were reported")
    put_off, other = platform.heard[lease(1).job], platform.heard[lease(2).job]
    assert (put_off.kind, put_off.delay_ms) == ("snoozed", transfers.PUT_OFF_MS)
    assert other.kind == "succeeded"


async def test_not_found_counts_only_from_a_server_of_ours() -> None:
    """Somebody in between who does not know the address says nothing about the payload."""
    platform = Platform()
    ours = b'{"status": 404, "code": "NOT_FOUND", "detail": "There is no such payload."}'
    platform.errand = lambda path: (404, ours if lease(2).job in path else PROXY)
    platform.leases = [lease(1, payload_bytes=1 << 20), lease(2, payload_bytes=1 << 20)]
    async with platform.open(), working(platform, target=APP) as life:
        await until(lambda: len(platform.heard) == 2, life, "both were reported")
    assert platform.heard[lease(1).job].kind == "snoozed"
    gone = platform.heard[lease(2).job]
    assert (gone.failure, said_of(gone)["type"]) == ("permanent", "PayloadGone")
