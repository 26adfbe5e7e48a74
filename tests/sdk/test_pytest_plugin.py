"""Fixtures that open a testing mode, as a user's own tests would use them."""

from __future__ import annotations

import pytest
from tests.sdk.sample_jobs import Score, flaky, score, tried

from fairway import testing
from fairway.sdk.testing.clock import Clock
from fairway.sdk.testing.memory import MemoryDoor


@pytest.fixture(autouse=True)
def _forget() -> None:
    tried.clear()


# -- fixtures --------------------------------------------------------------------------------------


async def test_the_inline_fixture_reaches_async_tests(fairway_inline: MemoryDoor) -> None:
    assert await (await score.aenqueue("cv1")).aresult() == Score(1, "cv1 plain")
    assert len(fairway_inline.enqueued) == 1


def test_the_manual_fixture_reaches_sync_tests(fairway_manual: MemoryDoor) -> None:
    score.enqueue("cv1")
    assert testing.assert_enqueued(score).id == fairway_manual.enqueued[0].id


async def test_the_clock_fixture_opens_manual_mode(fairway_clock: Clock) -> None:
    handle = await flaky.aenqueue(2)
    await testing.adrain()
    fairway_clock.advance("1h")
    assert await testing.adrain() == {"succeeded": 1}
    assert await handle.aresult() == 2


def test_a_mode_is_closed_after_its_test() -> None:
    with pytest.raises(RuntimeError, match="no testing mode is open"):
        testing.all_enqueued()
