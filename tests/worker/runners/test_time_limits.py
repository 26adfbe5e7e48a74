"""Jobs past their limit in the shared runner are found by looking, once each, never too early."""

from __future__ import annotations

from msgspec import Raw

from fairway.core.ids import Epoch
from fairway.wire.exchange import Lease
from fairway.worker.pipe.pipe import Declared
from fairway.worker.runners.time_limits import GRACE_SECONDS, OverdueJobs

DECLARED = {
    "timed": Declared(name="timed", mode="thread", timeout_ms=2000),
    "free": Declared(name="free", mode="thread"),
}


def lease(job: str, kind: str = "timed", epoch: int = 1, timeout_ms: int | None = None) -> Lease:
    return Lease(
        job=job, epoch=Epoch(epoch), token="t", type=kind, pool="short", tenant="acme", attempt=1,
        delivery=1, payload=Raw(b"{}"), timeout_ms=timeout_ms,
    )  # fmt: skip


def test_a_job_is_overdue_after_its_limit_and_the_grace() -> None:
    overdue, running = OverdueJobs(), {"a": lease("a")}
    due = 2 + GRACE_SECONDS
    assert overdue.look(running, DECLARED, 100.0) == []
    assert overdue.look(running, DECLARED, 100.0 + due - 0.1) == []
    assert overdue.look(running, DECLARED, 100.0 + due) == ["a"]
    assert overdue.look(running, DECLARED, 100.5 + due) == [], "told once, then given time again"


def test_a_job_without_a_limit_never_is() -> None:
    overdue, running = OverdueJobs(), {"a": lease("a", "free"), "b": lease("b", "unknown")}
    assert overdue.look(running, DECLARED, 0.0) == []
    assert overdue.look(running, DECLARED, 10.0**6) == []


def test_the_limit_of_the_lease_goes_before_the_declared_one() -> None:
    overdue, running = OverdueJobs(), {"a": lease("a", timeout_ms=60_000)}
    overdue.look(running, DECLARED, 0.0)
    assert overdue.look(running, DECLARED, 2 + GRACE_SECONDS) == []
    assert overdue.look(running, DECLARED, 60 + GRACE_SECONDS) == ["a"]


def test_another_lease_of_the_same_job_begins_anew() -> None:
    overdue = OverdueJobs()
    overdue.look({"a": lease("a")}, DECLARED, 0.0)
    assert overdue.look({"a": lease("a", epoch=2)}, DECLARED, 2 + GRACE_SECONDS) == []


def test_a_job_that_ended_between_two_looks_is_forgotten() -> None:
    overdue = OverdueJobs()
    overdue.look({"a": lease("a")}, DECLARED, 0.0)
    overdue.look({}, DECLARED, 1.0)
    assert overdue.look({"a": lease("a")}, DECLARED, 2 + GRACE_SECONDS) == []
