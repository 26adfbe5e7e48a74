"""Looks after runners that jobs share: jobs past their time limit, and runners that do not answer.

A runner is told which of its jobs are overdue; one that has no word in answer is killed, and those
jobs are late. It is pinged, too, whatever is overdue: while it does not answer it is quiet, and one
that does nothing at all any more is deaf and killed; its jobs were lost with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fairway.core.run.outcome import Outcome
from fairway.core.run.process_limits import timed_out
from fairway.runtime.telemetry import logger
from fairway.wire.exchange import Lease
from fairway.worker.exchange import synthetic_outcomes
from fairway.worker.pipe.pipe import Declared, KeeperMessage
from fairway.worker.runners.runner_process import RunnerProcess
from fairway.worker.runners.time_limits import OverdueJobs, limit_of

log = logger("fleet")

ANSWER_SECONDS_MAX = 10.0  # a runner with an overdue job that is silent for longer is killed


class Watchdog:
    def __init__(self, on_end: Callable[[Lease, Outcome], None]) -> None:
        self._on_end = on_end
        self._overdue = OverdueJobs()
        self._unanswered: dict[RunnerProcess, tuple[float, dict[str, Lease]]] = {}

    def heard(self, runner: RunnerProcess) -> None:
        """It spoke, or is gone."""
        if self._unanswered:
            self._unanswered.pop(runner, None)

    def ping(self, runners: Iterable[RunnerProcess]) -> None:
        for runner in runners:
            runner.ping()
            if runner.is_deaf:
                log.error("runner is deaf; killing it", pid=runner.pid, jobs=len(runner.jobs))
                runner.kill("neither answered nor did anything")

    def ask_overdue(
        self,
        runners: Iterable[RunnerProcess],
        running: Mapping[str, Lease],
        declared: Mapping[str, Declared],
        now: float,
    ) -> None:
        """Tell runners which jobs are overdue; kill one that has no answer."""
        late = self._overdue.look(running, declared, now)
        for runner in runners if late else ():
            for job in runner.jobs.keys() & set(late):
                _, asked = self._unanswered.setdefault(runner, (now, {}))
                asked[job] = running[job]
                runner.send(KeeperMessage(overdue=[job]))
        for runner, (since, asked) in list(self._unanswered.items()):
            if now - since >= ANSWER_SECONDS_MAX:
                self._kill_silent(runner, asked, declared)

    def _kill_silent(
        self, runner: RunnerProcess, asked: dict[str, Lease], declared: Mapping[str, Declared]
    ) -> None:
        log.error("runner does not answer; killing it", pid=runner.pid, overdue=len(asked))
        for job, lease in asked.items():
            if job in runner.jobs:
                runner.jobs.pop(job, None)
                runner.blamed.add(lease.tenant)
                limit_ms = limit_of(lease, declared.get(lease.type)) or 0
                self._on_end(lease, synthetic_outcomes.judged(timed_out(limit_ms), limit_ms * 1000))
        runner.kill()
