"""Why a job waits, its place in line, and when it may start: facts in, sentences out.

An estimate is a guess with a spread, never a promise: tenants come and go, and runs differ. Where
nothing can be said of the start (a pause, no worker) nothing is said.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from fairway.core.backlog.key_limits import KeyLimit
from fairway.core.fair_share.standings import Waiting
from fairway.core.lifecycle import State

AHEAD_MAX = 10_000  # jobs of the stream that are counted; a place further back is only "beyond"
#: Later than any time that a job may have (`flows.NEVER`).
NO_TIME_US = 1000 * 365 * 86_400 * 1_000_000
SPREAD = 2  # a start is likely between half of the estimate and twice of it


class Reason(StrEnum):
    """Why a job is not running at this moment. Holds have reasons of their own."""

    RUNNING = "running"
    FINISHED = "finished"
    NOT_DUE = "not_due"
    AFTER_OTHERS = "after_others"
    RATE = "rate"
    CHECKPOINT_STORE = "checkpoint_store"
    NO_WORKER = "no_worker"
    LABELS = "labels"
    CAPPED = "capped"
    FAIR_SHARE = "fair_share"
    KEY_LIMIT = "key_limit"
    STARTING = "starting"
    SLOT = "slot"


SENTENCES = {
    Reason.RUNNING: "It runs now.",
    Reason.FINISHED: "It has ended.",
    Reason.NOT_DUE: "It is scheduled for later.",
    Reason.AFTER_OTHERS: "It waits for other jobs of its flow.",
    Reason.RATE: "It is due and waits to be put into the queue, which happens so many a second.",
    Reason.NO_WORKER: "No live worker runs this job type in this pool.",
    Reason.LABELS: "Workers offer this pool, but none has all the labels that it asks for.",
    Reason.CHECKPOINT_STORE: "It goes on from a checkpoint, and object storage does not answer.",
    Reason.CAPPED: "The tenant runs as many jobs in this pool as its cap allows.",
    Reason.FAIR_SHARE: "The tenant holds its fair slots; others have not got theirs yet.",
    Reason.KEY_LIMIT: "It waits for a place under a limit of your own.",
    Reason.STARTING: "A worker is about to take it.",
    Reason.SLOT: "All slots are busy; it starts when its turn comes.",
    "paused": "It is paused, by an operator or by the tenant.",
    "spend_cap": "The tenant has spent what it may this month; it starts when the cap is raised or"
    " the month is over.",
    "suspended": "The tenant is suspended, by an operator.",
    "moving": "The tenant is being moved within the platform; it starts when that is over.",
    "circuit_open": "Something its job type leans on is away; it waits, and nothing is"
    " counted against it.",
    "recycling_throttled": "The tenant's jobs killed too many workers in this pool; they start one"
    " at a time.",
}


class Facts(NamedTuple):
    """What the owner knows of a waiting job."""

    state: State
    due_in_us: int | None = None
    hold: str | None = None
    has_worker: bool = True
    has_slots: bool = True  # here; a worker of several owners gives them where work waits
    waiting: Waiting = Waiting.TURN
    jobs_ahead: int = 0  # of its own stream
    fair_slots_milli: int = 1000
    debt_us: int = 0
    run_us: int = 0  # a run of its type, about
    free_slots: int = 0
    lacking: tuple[str, ...] = ()  # labels that the nearest worker of the pool has not
    storage_failure: str | None = None  # why a checkpoint it has cannot be read
    result_waits: str | None = None  # why its result, which is there, cannot be stored yet
    full: KeyLimit | None = None  # the first of its own limits that has no place now


class Start(NamedTuple):
    """When it may start, in microseconds from now."""

    earliest_us: int
    likely_us: int
    latest_us: int


def reason_of(facts: Facts) -> str:
    if facts.state is State.RUNNING:
        return Reason.RUNNING
    if facts.state.is_final:
        return Reason.FINISHED
    if facts.result_waits is not None:
        return Reason.RUNNING  # it has run; only nothing says so yet
    if facts.storage_failure is not None:
        return Reason.CHECKPOINT_STORE
    if facts.state is State.SCHEDULED:
        return _reason_to_sleep(facts.due_in_us or 0)
    if facts.hold is not None:
        return facts.hold
    if not facts.has_worker:
        return Reason.LABELS if facts.lacking else Reason.NO_WORKER
    return _reason_in_line(facts)


def _reason_to_sleep(due_in_us: int) -> str:
    if due_in_us > NO_TIME_US:
        return Reason.AFTER_OTHERS
    return Reason.NOT_DUE if due_in_us > 0 else Reason.RATE


def _reason_in_line(facts: Facts) -> str:
    if facts.full is not None:
        return Reason.KEY_LIMIT
    if facts.waiting is Waiting.CAP:
        return Reason.CAPPED
    if facts.waiting is Waiting.FAIR_SLOTS:
        return Reason.FAIR_SHARE
    has_room = facts.free_slots > facts.jobs_ahead or not facts.has_slots
    return Reason.STARTING if has_room else Reason.SLOT


def start_of(facts: Facts) -> Start | None:
    """None when it runs, has ended, or nobody can say."""
    reason = reason_of(facts)
    if reason == Reason.NOT_DUE:
        due_us = facts.due_in_us or 0
        return Start(due_us, due_us, due_us + SPREAD * facts.run_us)
    if reason == Reason.STARTING:
        return Start(0, 0, facts.run_us)
    if reason not in (Reason.RATE, Reason.CAPPED, Reason.FAIR_SHARE, Reason.SLOT):
        return None
    if reason != Reason.CAPPED and facts.free_slots > facts.jobs_ahead:
        return Start(0, 0, facts.run_us)
    slots_milli = max(facts.fair_slots_milli, 1)
    owed_us = facts.jobs_ahead * facts.run_us + max(facts.debt_us, 0) + facts.run_us // 2
    likely_us = 1000 * owed_us // slots_milli
    return Start(likely_us // SPREAD, likely_us, SPREAD * likely_us + facts.run_us)


def note_of(facts: Facts) -> str:
    """What a sentence for all cannot say: which labels, which failure, which key."""
    match reason_of(facts):
        case Reason.LABELS:
            return f"Missing: {', '.join(facts.lacking)}."
        case Reason.CHECKPOINT_STORE:
            return facts.storage_failure or ""
        case Reason.KEY_LIMIT if facts.full is not None:
            return _said(facts.full)
        case Reason.RUNNING if facts.result_waits is not None:
            return f"It has a large result, which waits to be stored. {facts.result_waits}"
        case _:
            return ""


def _said(full: KeyLimit) -> str:
    if full.per_ms:
        seconds = full.per_ms / 1000
        return f"Of key {full.key!r}, {full.most} may start in any {seconds:g} s."
    return f"Of key {full.key!r}, {full.most} may run at once."


def sentence_of(reason: str) -> str:
    return SENTENCES.get(reason, f"It is held: {reason.replace('_', ' ')}.")
