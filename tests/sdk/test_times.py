"""Time in the SDK: when a job is wanted, moved or too late; schedules that an app declares."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fairway import App, JobExpired, testing
from fairway.core.errors import Conflict
from fairway.sdk.handler.codec import InvalidArguments

app = App("clock", url="http://127.0.0.1:1", api_key="k")


@app.job
def remind(who: str) -> str:
    return f"remember, {who}"


def test_a_delay_and_a_moment_travel() -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    soon = remind.options(delay="1h30m").request(("ada",), {})
    assert (soon.delay_seconds, soon.execute_at) == (5400, None)
    then = remind.options(at=moment, exact=True, not_after=moment + timedelta(hours=1))
    request = then.request(("ada",), {})
    assert (request.execute_at, request.exact, request.on_late) == (moment, True, None)
    assert request.not_after == moment + timedelta(hours=1)


def test_times_that_make_no_sense_are_refused_at_once() -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match="not both"):
        remind.options(delay="1h", at=moment)
    with pytest.raises(ValueError, match="zone"):
        remind.options(at=datetime(2030, 1, 1))  # noqa: DTZ001  # that is the point
    with pytest.raises(ValueError, match="not_after"):
        remind.options(on_late="flag")


def test_a_delayed_job_waits_for_its_time_in_tests() -> None:
    with testing.manual() as mode:
        handle = remind.options(delay="2h").enqueue("ada")
        assert handle.status().state == "scheduled"
        assert testing.drain() == {}
        mode.clock.advance("2h")
        assert testing.drain() == {"succeeded": 1}


def test_a_scheduled_job_can_be_moved() -> None:
    with testing.manual() as mode:
        handle = remind.options(delay="2h").enqueue("ada")
        handle.reschedule(delay="10m")
        mode.clock.advance("10m")
        assert testing.drain() == {"succeeded": 1}
        with pytest.raises(Conflict):
            handle.reschedule(delay="1m")
        with pytest.raises(ValueError, match="either"):
            handle.reschedule()


def test_a_job_past_its_last_moment_is_skipped() -> None:
    with testing.manual() as mode:
        last = datetime.fromtimestamp(mode.clock.unix_seconds + 60, UTC)
        late = remind.options(not_after=last).enqueue("ada")
        flagged = remind.options(not_after=last, on_late="flag").enqueue("bob")
        mode.clock.advance("2m")
        assert testing.drain() == {"expired": 1, "succeeded": 1}
        assert flagged.result() == "remember, bob"
        with pytest.raises(JobExpired):
            late.result()


# -- declared schedules ----------------------------------------------------------------------------


def test_a_job_is_put_on_a_schedule_and_stays_a_job() -> None:
    own = App("own")

    @own.schedule("0 9 * * MON-FRI", tz="Europe/Lisbon", args={"who": "ada"}, overlap="queue_one")
    @own.job(pool="medium", timeout="1m")
    def report(who: str) -> str:
        return who

    assert report("x") == "x"
    request = own.schedules["report"].request("app:own")
    assert (request.cron, request.timezone) == ("0 9 * * MON-FRI", "Europe/Lisbon")
    assert (request.type, request.pool, request.timeout_seconds) == ("report", "medium", 60)
    assert bytes(request.payload) == b'{"who":"ada"}'
    assert (request.overlap, request.catch_up, request.source) == ("queue_one", "last", "app:own")


def test_a_plain_function_becomes_a_job() -> None:
    own = App("own")

    @own.schedule(every="90s", tick="at", jitter="5s", catch_up="all", catch_up_window="1h")
    async def sweep(at: datetime) -> None:
        assert at

    assert own.jobs["sweep"] is sweep
    request = own.schedules["sweep"].request("app:own")
    assert (request.every_seconds, request.tick_argument) == (90, "at")
    assert (request.jitter_seconds, request.catch_up_window_seconds) == (5, 3600)


def test_one_job_may_have_several_schedules_with_names_of_their_own() -> None:
    own = App("own")

    @own.schedule("0 9 * * *", name="morning")
    @own.schedule("0 17 * * *", name="evening")
    @own.job
    def ping() -> None: ...

    assert set(own.schedules) == {"morning", "evening"}
    with pytest.raises(ValueError, match="already has a schedule"):
        own.schedule("0 1 * * *", name="morning")(ping)


def test_a_declaration_is_checked() -> None:
    with pytest.raises(ValueError, match="either"):
        app.schedule()
    with pytest.raises(ValueError, match="either"):
        app.schedule("* * * * *", every="5m")
    own = App("own")
    own.schedule("* * * * *")(own.job(remind.function))
    with pytest.raises(InvalidArguments):
        own.schedules["remind"].request("app:own")
