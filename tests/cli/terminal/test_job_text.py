"""A job as a person reads it: nothing that says nothing, and nothing left out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fairway.cli.jobs import COLUMNS
from fairway.cli.terminal.job_text import counted, details, told

AT = "2026-11-17T02:31:00+00:00"
JOB: dict[str, Any] = {
    "id": "01a1e757-e65f-7000-8000-03196f5fa290", "type": "t", "state": "dead", "pool": "short",
    "priority": 5, "created_at": AT, "execute_at": AT, "attempts": 1, "deliveries": 2,
}  # fmt: skip


def _run(outcome: str, ran_seconds: float, worker: str, reason: str) -> dict[str, Any]:
    found = {"outcome": outcome, "ran_seconds": ran_seconds, "worker": worker, "reason": reason}
    return found | {"ended_at": AT}


def test_family_and_tags_are_told_where_there_are_any() -> None:
    family = {"parent_id": "p-1", "children": 3, "tags": ["a", "b"], "metadata": {"k": "v"}}
    lines = [line.split(maxsplit=1) for line in told(JOB | family)]
    for fact in (["parent", "p-1"], ["children", "3"], ["tags", "a, b"], ["metadata", "k=v"]):
        assert fact in lines
    assert ["runs", "1 attempt, 2 deliveries"] in lines
    alone = "\n".join(told(JOB | {"parent_id": None, "children": 0, "tags": [], "metadata": {}}))
    assert not any(name in alone for name in ("parent", "children", "tags", "metadata"))


def test_a_job_that_is_held_says_where_and_for_whom() -> None:
    lines = [line.strip() for line in told(JOB | {"held_in": "us", "held_for": "eu"})]
    assert "held        in us until eu, its tenant's home, takes it" in lines
    assert not any(line.strip().startswith("held") for line in told(JOB))


def test_a_replay_among_the_runs_had_no_worker() -> None:
    runs = [_run("failed", 0.002, "w-1", "retrying"), _run("replayed", 0.0, "", "")]
    first, second = told(JOB | {"history": runs})[-2:]
    assert first.endswith("failed after 2 ms on w-1: retrying")
    assert second.endswith("  replayed")


def test_only_what_waits_is_due() -> None:
    (due,) = [column for column in COLUMNS if column.title == "due"]
    assert due.cell(JOB) == "–"
    assert due.cell(JOB | {"state": "scheduled"}) != "–"


def test_a_part_of_next_to_nothing_is_not_told() -> None:
    share = {"received_slot_seconds": 2.6, "window_seconds": 8.0}
    found: dict[str, Any] = {"reason": "running", "position": None, "start": None}
    now = datetime.now(UTC)
    (small,) = details(found | {"share": share | {"entitled_slot_seconds": 0.014}}, now)
    (large,) = details(found | {"share": share | {"entitled_slot_seconds": 5.2}}, now)
    assert small.endswith("2.6 slot-seconds of 0.0 due, in the last 8 s")
    assert large.endswith("2.6 slot-seconds of 5.2 due, 50% of it, in the last 8 s")


def test_one_is_not_many() -> None:
    assert [counted(n, "job") for n in (0, 1, 2)] == ["0 jobs", "1 job", "2 jobs"]
