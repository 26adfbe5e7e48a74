"""Ends of runs in the words of their rows, and which statement takes them: no decision."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from fairway.core.ids import ShardId, shards_named
from fairway.core.lifecycle import State
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.run.billing import is_attempt, is_billable
from fairway.core.run.run_note import RunNote, note_text
from fairway.core.scheduling.timing import Timing, lateness_ms
from fairway.core.unix_time import to_unix_ms
from fairway.services.recording.flow_ends import EndStatement
from fairway.services.recording.parent_ends import row_of, success_of
from fairway.services.sessions.sessions import End, Session
from fairway.services.store_clock import StoreClock
from fairway.store import outcomes


def shard_of_end(end: End) -> ShardId:
    return end.lease.shard


def result_bytes(ends: Sequence[End]) -> int:
    return sum([len(end.result or b"") for end in ends])


def numbers_by_session(ends: Sequence[End]) -> dict[Session, list[int]]:
    """In which reports of whom these ends came."""
    sessions = {end.lease.session for end in ends}
    if len(sessions) == 1:  # as mostly, and worth its line
        return {sessions.pop(): [end.number for end in ends if end.number is not None]}
    numbers: dict[Session, list[int]] = {session: [] for session in sessions}
    for end in ends:
        if end.number is not None:
            numbers[end.lease.session].append(end.number)
    return numbers


def shards_of(ends: Sequence[End], homes: TenantShards) -> list[ShardId]:
    """The shard of each."""
    if not homes.any_moved:
        return shards_named([end.lease.job.id for end in ends])
    return [end.lease.shard for end in ends]


def statement_for(end: End) -> EndStatement[Any]:
    """The one that writes ends of this kind: it takes what `row_for` makes of one."""
    if end.decision is not None:
        return outcomes.settle
    return outcomes.record_successes if end.children is None else outcomes.record_parents


def row_for(
    end: End, store_clock: StoreClock
) -> outcomes.Settlement | outcomes.Parent | outcomes.Success:
    """For `statement_for`, when it is not known where the job's row lies."""
    if end.decision is not None:
        return settlement_of(end, store_clock)
    return success_of(end) if end.children is None else row_of(end)


def settlement_of(end: End, store_clock: StoreClock) -> outcomes.Settlement:
    decision, job, session = end.decision, end.lease.job, end.lease.session
    assert decision is not None
    tally, now, due = decision.tally, store_clock.now(), None
    if decision.state is State.SCHEDULED:
        due = now + timedelta(milliseconds=decision.delay_ms)
    billable = is_billable(end.outcome_label, end.failure, end.ran_us)
    note = RunNote(
        job.deliveries + 1, job.attempts + 1, end.outcome_label, now, end.ran_us, session.worker,
        session.build, decision.reason, end.error, _late_ms(end, store_clock), end.lease.progress,
        billable,
    )  # fmt: skip
    return outcomes.Settlement(
        end.lease.shard, job.tenant, job.id, end.lease.epoch, decision.state, tally.attempts,
        tally.deliveries, due, end.ran_us, end.error,
        tally.failures if any(tally.failures) else None, end.fingerprint, note_text(note),
        end.ran_us if billable else 0, is_attempt(end.outcome_label, end.failure, end.ran_us), now,
    )  # fmt: skip


def _late_ms(end: End, store_clock: StoreClock) -> int | None:
    if end.lease.job.timing is None:
        return None
    began = store_clock.at_us(end.lease.granted_us)
    return lateness_ms(Timing.of(end.lease.job.timing), to_unix_ms(began))
