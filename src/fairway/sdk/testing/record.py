"""A job in memory: what was enqueued under a testing mode, and what became of it.

It is also the sink of its own runs, so that a test can read what the handler said.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from fairway.core.failure.retry import NOTHING_YET, Decision, Tally
from fairway.core.lifecycle import LIVE, State
from fairway.core.run.outcome import Outcome
from fairway.sdk.handler.checkpoint import already_saved
from fairway.sdk.handler.context import Ctx, RunFacts
from fairway.sdk.handler.pauses import MIDDLE_SAMPLE
from fairway.sdk.http.sse import Event
from fairway.sdk.job import Job
from fairway.wire import run_logs as wire
from fairway.wire.messages import JobRequest, JobView

TENANT = "testing"


class LogLine(NamedTuple):
    """`level` is one of the `logging` module's."""

    level: int
    text: str


@dataclass(slots=True, kw_only=True)
class Enqueued:
    """One enqueued job and its history."""

    id: str
    job: Job[..., Any]
    request: JobRequest
    created_at: float  # of the test's clock, as is `due_at`
    due_at: float
    parent: str | None = None  # whose run started it
    children: int = 0  # how many its own run started
    flows: list[str] = field(default_factory=list)  # which flows count how it ends
    is_held: bool = False  # it waits for other jobs
    error: bytes | None = None  # why it never ran
    state: State = State.QUEUED
    tally: Tally = NOTHING_YET
    ends: list[Outcome] = field(default_factory=list)
    logs: list[LogLine] = field(default_factory=list)
    lines: list[wire.LogLine] = field(default_factory=list)  # the same, as `handle.logs()` has it
    progress_said: list[Any] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    checkpoints: list[bytes] = field(default_factory=list)  # every state saved, as JSON

    @property
    def attempts(self) -> int:
        return self.tally.attempts

    @property
    def deliveries(self) -> int:
        return self.tally.deliveries

    @property
    def type(self) -> str:
        return self.request.type

    @property
    def args(self) -> dict[str, Any]:
        """The arguments as JSON has them."""
        arguments: dict[str, Any] = msgspec.json.decode(self.request.payload)
        return arguments

    def facts(self, now_ms: int | None = None) -> RunFacts:
        return RunFacts(
            self.id,
            self.type,
            TENANT,
            self.attempts + 1,
            self.deliveries + 1,
            self.request.timeout_seconds,
            checkpoint=self.checkpoints[-1] if self.checkpoints else None,
            sample=MIDDLE_SAMPLE,
            now_ms=now_ms,
        )

    def take(self, end: Outcome, decision: Decision, unix_seconds: float) -> None:
        """Write down a run's end and what was decided about the job."""
        self.ends.append(end)
        self.tally = decision.tally
        self.due_at = unix_seconds + decision.delay_ms / 1000
        self.move(decision.state)

    @property
    def may_run(self) -> bool:
        return self.state in LIVE and not self.is_held

    def hold(self) -> None:
        """From the beginning it waits for other jobs."""
        self.is_held, self.state = True, State.SCHEDULED

    def release(self, payload: bytes, unix_seconds: float) -> None:
        """It waits for nobody any more, and has all its arguments."""
        self.is_held, self.due_at = False, unix_seconds
        self.request = msgspec.structs.replace(self.request, payload=Raw(payload))
        self.move(State.QUEUED)

    def give_up(self, error: bytes) -> None:
        """What it waited for will never be."""
        self.error = error
        self.move(State.CANCELLED)

    def move(self, state: State) -> None:
        self.state = state
        self.events.append(Event("state", {"state": state.label}, str(len(self.events) + 1)))

    def progress(self, job_id: str, progress: bytes) -> None:
        self.progress_said.append(msgspec.json.decode(progress))
        self.events.append(Event("progress", self.progress_said[-1], str(len(self.events) + 1)))

    def log(self, ctx: Ctx, level: int, line: str, logger: str = "") -> None:
        self.logs.append(LogLine(level, line))
        self.lines.append(
            wire.LogLine(
                attempt=ctx.attempt,
                at=datetime.now(UTC),
                text=line,
                level=logging.getLevelName(level).lower(),
            )
        )

    def checkpoint(self, job_id: str, epoch: int, number: int, state: bytes) -> Future[None]:
        self.checkpoints.append(state)
        return already_saved()

    def view(self) -> JobView:
        last = self.ends[-1] if self.ends else None
        return JobView(
            id=self.id,
            type=self.type,
            pool=self.request.pool or self.job.pool,
            state=self.state.label,
            priority=self.request.priority,
            attempts=self.attempts,
            deliveries=self.deliveries,
            created_at=datetime.fromtimestamp(self.created_at, UTC),
            execute_at=None if self.is_held else datetime.fromtimestamp(self.due_at, UTC),
            timeout_seconds=self.request.timeout_seconds,
            tags=self.request.tags,
            metadata=self.request.metadata,
            payload=self.request.payload,
            progress=_raw(self.progress_said and msgspec.json.encode(self.progress_said[-1])),
            result=_raw(last and last.result),
            error=_raw((last and last.error) or self.error),
            parent_id=self.parent,
            children=self.children,
        )


def _raw(text: Any) -> Raw | None:
    return Raw(text) if text else None
