"""Reports of runs that did not end well, heard in parts: one call may bring very many.

Each costs some tenths of a millisecond: its error is read, and its retry is decided.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from fairway.core.job import QueuedJob
from fairway.core.run.outcome import FailureClass, Outcome
from fairway.runtime.loops import WorkInParts
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.sessions.calls import Report
from fairway.services.sessions.sessions import Session


async def receive_failures(
    dispatcher: Dispatcher, session: Session, reports: Sequence[tuple[Report, Outcome]]
) -> list[Report]:
    """End the runs whose leases are in force; answers the reports that only the store can judge.

    Others go on between the parts, so every lease is looked up when its report has its turn. Should
    the session end meanwhile, the rest is left: its leases are lost with it, its worker is told to
    say hello, and reports then what nobody took.
    """
    work, left = WorkInParts(), deque(reports)
    doubtful: list[Report] = []
    crashed: list[QueuedJob] = []
    try:
        while left:
            with dispatcher.together():
                while left:
                    _receive(dispatcher, session, *left.popleft(), doubtful, crashed)
                    if work.is_long:
                        break
            if left:
                await work.let_others()
                if not dispatcher.has(session):
                    return []
    finally:  # also when its worker hangs up between two parts: those it killed are dead
        if crashed:  # what a worker says in one breath died together
            dispatcher.worker_died(crashed)
    return doubtful


def _receive(
    dispatcher: Dispatcher,
    session: Session,
    report: Report,
    outcome: Outcome,
    doubtful: list[Report],
    crashed: list[QueuedJob],
) -> None:
    lease = dispatcher.lease_of(session, report.job, report.epoch, report.token)
    if lease is not None:
        dispatcher.ended(lease, report.n, outcome)
        if outcome.failure is FailureClass.WORKER_CRASH:
            crashed.append(lease.job)
    elif report.n not in session.recording:
        doubtful.append(report)
