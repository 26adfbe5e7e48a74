"""A line of a job's history: JSON whatever it says, and never longer than it may be."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.run.run_note import PROGRESS_BYTES_MAX, RunNote, note_text

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
texts = st.none() | st.recursive(st.integers() | st.text(), st.lists).map(
    lambda value: json.dumps(value).encode()
)


@given(st.text(), st.text(), texts, texts, st.none() | st.integers(0, 10**9), st.booleans())
def test_a_note_is_json_and_says_all_of_it(
    worker: str,
    reason: str,
    error: bytes | None,
    progress: bytes | None,
    late_ms: int | None,
    billable: bool,
) -> None:
    note = RunNote(
        2, 1, "failed", AT, 1_500_000, worker, "b1", reason, error, late_ms, progress, billable
    )
    told = json.loads(note_text(note))
    assert (told["delivery"], told["attempt"], told["outcome"]) == (2, 1, "failed")
    assert (told["ran_seconds"], told["ended_at"]) == (1.5, AT.isoformat())
    assert (told["worker"], told["reason"], told["billable"]) == (worker, reason, billable)
    assert told.get("late_seconds") == (None if late_ms is None else late_ms / 1000)
    assert ("error" in told, "progress" in told) == (
        error is not None,
        progress is not None and len(progress) <= PROGRESS_BYTES_MAX,
    )
    if error is not None:
        assert told["error"] == json.loads(error)


def test_progress_that_is_too_long_is_left_out() -> None:
    long = json.dumps("x" * PROGRESS_BYTES_MAX).encode()
    assert "progress" not in json.loads(note_text(RunNote(1, 1, "lost", AT, progress=long)))
