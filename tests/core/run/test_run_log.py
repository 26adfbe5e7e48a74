"""What a run may say: never more than its room, all accounted for, urgent words to the last."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.run import run_log
from fairway.core.run.run_log import (
    LINE_BYTES_MAX,
    LINES_MAX,
    MARK_BYTES,
    RUN_BYTES_MAX,
    RunLog,
    fitted,
    mark_text,
)

INFO, ERROR = 20, 40
LINES = st.lists(
    st.tuples(st.sampled_from([INFO, ERROR]), st.integers(0, LINE_BYTES_MAX), st.integers(1, 400)),
    max_size=8,
)  # level, bytes, how many of them in a row


@given(LINES)
def test_all_that_is_said_is_kept_or_counted_within_bounds(
    said: list[tuple[int, int, int]],
) -> None:
    log, numbers, kept_bytes, kept, dropped = RunLog(), [], 0, 0, 0
    for level, size_bytes, times in said:
        for _ in range(times):
            taken = log.take(level, size_bytes)
            if taken is None:
                continue
            if taken.mark is not None:
                numbers.append(taken.mark[0])
                dropped += taken.mark[1]
                kept_bytes += MARK_BYTES
            numbers.append(taken.number)
            kept, kept_bytes = kept + 1, kept_bytes + size_bytes
    mark = log.last_mark()
    if mark is not None:
        numbers.append(mark[0])
        dropped += mark[1]
        kept_bytes += MARK_BYTES
    assert log.last_mark() is None
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) <= LINES_MAX
    assert kept_bytes <= RUN_BYTES_MAX
    assert kept + dropped == sum(times for _, _, times in said)


@given(st.integers(0, LINE_BYTES_MAX))
def test_after_a_flood_there_is_room_for_what_is_urgent(size_bytes: int) -> None:
    log = RunLog()
    while log.take(INFO, size_bytes) is not None:
        pass
    assert log.take(ERROR, size_bytes) is not None
    assert log.take(INFO, size_bytes) is None


@given(st.text(st.characters(), max_size=2 * LINE_BYTES_MAX))
def test_a_line_that_is_kept_is_text_of_bounded_length(line: str) -> None:
    text = fitted(line)
    assert len(text.encode()) <= LINE_BYTES_MAX
    if text != line:
        assert text.endswith("…") or "?" in text


def test_long_and_broken_lines() -> None:
    assert fitted("é" * 5000).endswith("é…")
    assert fitted("a\ud800b") == "a?b"
    assert mark_text(1) == "… 1 line dropped"
    assert max(len(mark_text(10**15).encode()), 0) <= run_log.MARK_BYTES
