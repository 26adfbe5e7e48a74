"""From a tick to a job: its payload is JSON with the tick in it, its time the tick's own."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import PoolId, ShardId, TenantId, TypeId, make_job_id
from fairway.core.scheduling.schedule import (
    RunCause,
    RunOutcome,
    Schedule,
    ScheduleKey,
    ScheduleSpec,
)
from fairway.core.scheduling.timing import Timing
from fairway.core.unix_time import from_unix_ms, to_unix_ms
from fairway.services.scheduling.schedule_jobs import firing, may_be_tick, next_tick, payload_of

START = datetime(2026, 1, 1, tzinfo=UTC)
START_MS = to_unix_ms(START)
SPEC = ScheduleSpec(
    cron=None, every_ms=60_000, zone="UTC", type=TypeId(1), pool=PoolId(1), priority=5,
    timeout_ms=None, payload=b"{}", tick_argument=None, jitter_ms=0, starts_at=START,
    ends_at=None, overlap=0, catch_up=0, window_ms=0, paused=False, source="",
)  # fmt: skip
payloads = st.dictionaries(st.text(max_size=5), st.integers() | st.text(), max_size=3)


@given(payloads, st.sampled_from(["", " ", "\n\t"]), st.integers(0, 10**12))
def test_a_payload_gets_the_tick_and_stays_json(
    payload: dict[str, Any], blank: str, tick_ms: int
) -> None:
    text = f"{blank}{json.dumps(payload)}{blank}".encode()
    spec = SPEC._replace(payload=text)
    assert payload_of(spec, tick_ms) == text
    found = json.loads(payload_of(spec._replace(tick_argument="the tick"), tick_ms))
    tick = datetime.fromisoformat(found.pop("the tick"))
    assert (to_unix_ms(tick), tick.utcoffset()) == (tick_ms, timedelta(0))
    assert found == {name: value for name, value in payload.items() if name != "the tick"}


def test_an_object_with_nothing_in_it_but_blanks_gets_the_tick() -> None:
    spec = SPEC._replace(payload=b" { \n} ", tick_argument="at")
    assert json.loads(payload_of(spec, 0)) == {"at": "1970-01-01T00:00:00Z"}


@given(st.integers(-100_000, 10**9), st.integers(1, 10**7))
def test_the_next_tick_is_one_and_none_lies_between(after_ms: int, every_ms: int) -> None:
    spec = SPEC._replace(every_ms=every_ms)
    found = next_tick(spec, START_MS + after_ms)
    assert found is not None
    found_ms = to_unix_ms(found)
    assert may_be_tick(spec, found_ms)
    assert found_ms > START_MS + after_ms
    assert found_ms - every_ms <= max(START_MS + after_ms, START_MS)


def test_no_tick_after_the_end() -> None:
    spec = SPEC._replace(ends_at=START + timedelta(minutes=3))
    assert next_tick(spec, START_MS + 120_000) == START + timedelta(minutes=3)
    assert next_tick(spec, START_MS + 180_000) is None


@given(st.integers(0, 3_600_000), st.integers(0, 10**9))
def test_a_run_is_due_within_its_jitter_and_always_at_the_same_moment(
    jitter_ms: int, tick_ms: int
) -> None:
    spec = SPEC._replace(jitter_ms=jitter_ms)
    key = ScheduleKey(ShardId(0), TenantId(7), "daily")
    schedule = Schedule(key, spec, START, None, None, None, START, START)
    job_id = make_job_id(ShardId(0), START_MS, 1, 0)
    made = firing(schedule, job_id, tick_ms, RunCause.CLOCK)
    assert made.job.timing is not None
    due_ms = Timing.of(made.job.timing).due_ms
    assert tick_ms <= due_ms <= tick_ms + jitter_ms
    assert made == firing(schedule, job_id, tick_ms, RunCause.CLOCK)
    assert (made.run.tick, made.run.outcome) == (from_unix_ms(tick_ms), RunOutcome.FIRED)
    at_once = firing(schedule, job_id, tick_ms, RunCause.TRIGGER, due_ms=5)
    assert at_once.job.timing is not None
    assert Timing.of(at_once.job.timing).due_ms == 5
