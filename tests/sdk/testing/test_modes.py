"""The testing modes, as a user's own tests would use them."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import Raw
from tests.sdk.sample_jobs import (
    Score,
    calls_sync,
    drowsy,
    fans_out,
    flaky,
    hopeless,
    leans_on_stripe,
    score,
    slow,
    tried,
    unwanted,
)

from fairway import (
    App,
    InvalidArguments,
    JobCancelled,
    JobFailed,
    Retry,
    Snooze,
    StillRunning,
    testing,
)
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.lifecycle import State

# -- inline ----------------------------------------------------------------------------------------


def test_inline_gives_a_finished_handle() -> None:
    with testing.inline():
        handle = score.enqueue("cv1", rubric="r1")
        assert handle.result() == Score(1, "cv1 r1")
        assert handle.status().state == "succeeded"


async def test_inline_in_async_code() -> None:
    with testing.inline():
        handle = await score.aenqueue("cv1")
        assert await handle.aresult() == Score(1, "cv1 plain")
        kinds = [event.kind async for event in handle.aevents()]
        assert kinds[-1] == "state"
        assert "progress" in kinds


def test_inline_goes_through_the_codec() -> None:
    with testing.inline(), pytest.raises(InvalidArguments, match="`cv_id`: expected str, got int"):
        score.enqueue(1)  # type: ignore[arg-type]


def test_inline_retries_without_waiting() -> None:
    with testing.inline() as mode:
        before = mode.clock.unix_seconds
        assert flaky.enqueue(3).result() == 3
        assert tried == [1, 2, 3]
        assert mode.clock.unix_seconds - before == 1 + 5


def test_a_dead_job_is_replayed_with_fresh_counters() -> None:
    with testing.manual() as mode:
        handle = flaky.enqueue(4)
        testing.drain(with_scheduled=True)
        assert handle.status().state == "dead"
        assert handle.replay().attempts == 0
        mode.enqueued[0].request.payload = Raw(b'{"good_at":2}')
        testing.drain(with_scheduled=True)
        assert handle.result() == 2
        with pytest.raises(NotFound, match="no dead letter"):
            handle.replay()


def test_inline_ends_dead_when_attempts_are_used_up() -> None:
    with testing.inline():
        handle = flaky.enqueue(99)
        with pytest.raises(JobFailed, match=r"dead after 3 attempts.*ConnectionError: not yet"):
            handle.result()
        assert handle.status().attempts == 3


@pytest.mark.parametrize(("retry", "runs"), [(Retry(1), 2), (Retry(1, most={"timeout": 1}), 1)])
def test_attempts_are_no_bound_of_runs_that_are_too_slow(retry: Retry, runs: int) -> None:
    app = App("shop")
    begun = []

    @app.job(retry=retry, timeout="50ms")
    async def pay() -> None:
        begun.append(1)
        await asyncio.sleep(10)

    with testing.inline():
        assert pay.enqueue().status().state == "dead"
    assert len(begun) == runs


def test_inline_keeps_the_time_limit() -> None:
    with testing.inline(), pytest.raises(JobFailed, match="TimeLimitPassed"):
        slow.options(timeout="20ms").enqueue().result()


def test_inline_snoozes_and_cancels() -> None:
    with testing.inline():
        assert drowsy.enqueue(60).result() == "awake"
        assert tried == [1, 2, 3]
        with pytest.raises(JobCancelled, match="not needed"):
            unwanted.enqueue().result()


def test_a_job_that_snoozes_for_ever_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    @App("x").job
    def sleeper() -> Snooze:
        return Snooze(1)

    with testing.inline(), pytest.raises(RuntimeError, match="not ended after 100 runs"):
        sleeper.enqueue()


def test_jobs_may_enqueue_jobs() -> None:
    with testing.inline():
        fans_out.enqueue(3).result()
        calls_sync.enqueue().result()
        assert len(testing.all_enqueued(score)) == 4


# -- manual ----------------------------------------------------------------------------------------


def test_manual_keeps_jobs_until_drained() -> None:
    with testing.manual():
        handle = score.enqueue("cv1")
        assert handle.status().state == "queued"
        with pytest.raises(StillRunning, match="nothing runs in manual mode before drain"):
            handle.result()
        assert testing.drain() == {"succeeded": 1}
        assert handle.result() == Score(1, "cv1 plain")


async def test_drain_runs_what_jobs_enqueue() -> None:
    with testing.manual():
        await fans_out.aenqueue(2)
        assert await testing.adrain() == {"succeeded": 3}


def test_drain_counts_by_outcome() -> None:
    with testing.manual():
        flaky.enqueue(2)
        unwanted.enqueue()
        hopeless.enqueue()
        assert testing.drain(with_scheduled=True) == {"failed": 2, "succeeded": 1, "cancelled": 1}


def test_scheduled_jobs_wait_for_the_clock() -> None:
    with testing.manual():
        handle = flaky.enqueue(2)
        assert testing.drain() == {"failed": 1}
        assert handle.status().state == "scheduled"
        assert testing.drain() == {}
        testing.clock.advance("2h")
        assert testing.drain() == {"succeeded": 1}


def test_a_dependency_is_waited_for_as_it_asked() -> None:
    with testing.manual() as mode:
        leans_on_stripe.enqueue()
        testing.drain()
        record = mode.enqueued[0]
        assert 60 <= record.due_at - testing.clock.unix_seconds <= 72


def test_drain_goes_by_priority_then_age() -> None:
    with testing.manual() as mode:
        flaky.options(priority=9).enqueue(3)
        flaky.options(priority=1).enqueue(1)
        testing.drain(with_scheduled=True)
        assert tried == [1, 1, 2, 3]
        assert [record.state for record in mode.enqueued] == [State.SUCCEEDED, State.SUCCEEDED]


def test_drain_begins_with_the_highest_priority_as_servers_do() -> None:
    ran: list[str] = []

    @App("order").job
    def note(text: str) -> None:
        ran.append(text)

    with testing.manual():
        for priority, text in ((1, "low"), (9, "high"), (9, "high, younger")):
            note.options(priority=priority).enqueue(text)
        testing.drain()
    assert ran == ["high", "high, younger", "low"]


def test_cancel_keeps_a_job_from_running() -> None:
    with testing.manual():
        handle = score.enqueue("cv1")
        assert handle.cancel().state == "cancelled"
        assert testing.drain() == {}
        with pytest.raises(JobCancelled):
            handle.result()
        assert list(handle.events())[-1].data == {"state": "cancelled"}


def test_an_idempotency_key_names_one_job() -> None:
    with testing.manual():
        named = score.options(idempotency_key="k")
        assert named.enqueue("cv1").id == named.enqueue("cv1").id
        with pytest.raises(InvalidRequest, match="other arguments"):
            named.enqueue("cv2")
        assert len(testing.all_enqueued()) == 1


def test_jobs_of_another_mode_are_unknown() -> None:
    with testing.manual():
        handle = score.enqueue("cv1")
    with testing.manual(), pytest.raises(NotFound):
        score.handle("none").status()
    assert handle.status().state == "queued"
