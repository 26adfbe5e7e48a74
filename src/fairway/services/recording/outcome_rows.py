"""The end of a run but a success, in the words of its row: a translation, no decision."""

from __future__ import annotations

from datetime import timedelta

from fairway.core.lifecycle import State
from fairway.core.run.billing import is_billable
from fairway.core.run.run_note import RunNote, note_text
from fairway.core.scheduling.timing import Timing, lateness_ms
from fairway.core.unix_time import to_unix_ms
from fairway.services.sessions.sessions import End
from fairway.services.store_clock import StoreClock
from fairway.store import outcomes


def settlement_of(end: End, store_clock: StoreClock) -> outcomes.Settlement:
    decision, job, session = end.decision, end.lease.job, end.lease.session
    assert decision is not None
    tally, now, due = decision.tally, store_clock.now(), None
    if decision.state is State.SCHEDULED:
        due = now + timedelta(milliseconds=decision.delay_ms)
    billable = is_billable(end.outcome_label, end.failure)
    note = RunNote(
        job.deliveries + 1, job.attempts + 1, end.outcome_label, now, end.ran_us, session.worker,
        session.build, decision.reason, end.error, _late_ms(end, store_clock), end.lease.progress,
        billable,
    )  # fmt: skip
    return outcomes.Settlement(
        job.tenant, job.id, end.lease.epoch, decision.state, tally.attempts, tally.deliveries,
        due, end.ran_us, end.error, tally.failures if any(tally.failures) else None,
        end.fingerprint, note_text(note), end.ran_us if billable else 0,
    )  # fmt: skip


def _late_ms(end: End, store_clock: StoreClock) -> int | None:
    if end.lease.job.timing is None:
        return None
    began = store_clock.at_us(end.lease.granted_us)
    return lateness_ms(Timing.of(end.lease.job.timing), to_unix_ms(began))
