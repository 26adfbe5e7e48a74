"""The screen of `fairway top`: tidy at 80 columns, for operators and tenants, whatever is said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from tests.properties import tried

from fairway.cli.terminal.overview_screen import screen

AT, URL = "2026-11-17T12:00:00Z", "http://127.0.0.1:8700"
POOL: dict[str, Any] = {
    "name": "short", "queued": 12, "running": 3, "slots": 8, "utilisation": 0.38,
    "oldest_runnable_age_seconds": 12.5, "slo_seconds": 0.5,
    "held": {"paused": 0, "throttled": 0, "circuit": 2, "no_worker": 30},
    "accepted_per_second": 10.1, "started_per_second": 9.9, "ended_per_second": 9.8,
    "failed_per_second": 0.1, "retried_per_second": 0.0, "dead_per_second": 0.0,
    "pickup_seconds": {"p50": 0.01, "p95": 0.05, "p99": 0.1},
    "end_to_end_seconds": {"p50": 0.2, "p95": 0.3, "p99": 0.4},
    "drain_seconds": 1.2, "near_knee": False,
}  # fmt: skip
ALARM: dict[str, Any] = {
    "name": "OLDEST_AGE_OVER_SLO", "severity": "warning", "subject": "pool short",
    "since": "2026-11-17T11:57:00Z", "text": "The oldest job of the pool short that could run has"
    " waited 12.5 s; 0.5 s are promised.", "value": 12.5, "threshold": 0.5,
    "runbook": "`fairway top`: slots all in use, start workers for the pool.", "link": "/ui/pools",
}  # fmt: skip
OVERVIEW: dict[str, Any] = {
    "at": AT, "health": {"status": "warning", "reasons": [
        {"code": "OLDEST_AGE_OVER_SLO", "text": ALARM["text"], "link": "/ui/pools"},
        {"code": "NEAR_KNEE", "text": "The pool long is nearly full.", "link": "/ui/pools"},
    ]},
    "pools": [POOL, POOL | {"name": "long", "utilisation": None, "slots": 0}],
    "workers": {"live": 2, "draining": 1}, "shards": {"owned": 15, "total": 16},
    "restraints": {"circuit": 1, "quarantine": 0, "throttle": 0}, "alarms": [ALARM],
}  # fmt: skip
TENANT: dict[str, Any] = {
    "at": AT, "tenant": "acme", "pools": [
        {"name": "short", "queued": 5, "running": 1, "oldest_runnable_age_seconds": None,
         "accepted_per_second": 1.0, "ended_per_second": None, "pickup_seconds": None,
         "share_received": 0.25, "share_entitled": 0.5}
    ],
}  # fmt: skip


def shown(overview: dict[str, Any], width: int = 80, note: str = "") -> str:
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(screen(overview, width, URL, note))
    return capture.get()


def test_an_operator_sees_health_pools_and_alarms_on_one_screen() -> None:
    text = shown(OVERVIEW)
    lines = text.splitlines()
    assert lines[0].startswith(f"warning  Fairway  {URL}")
    assert "workers 2   draining 1   shards 15/16   held back: 1 circuit" in text
    assert "The pool long is nearly full." in text
    assert text.count("that could run") == 1, "what is an alarm is not told twice"
    (short,) = [line for line in lines if line.startswith("short")]
    assert short.split() == [
        "short", "12", "3/8", "12", "s", "500", "ms", "10.1", "9.8", "0.0", "100", "ms", "1.2", "s",
    ]  # fmt: skip
    assert "warning    3 min  The oldest job" in text
    held = "In short: 2 wait behind an open circuit, 30 wait for a worker that runs their type"
    assert held in " ".join(text.split())
    assert "→ `fairway top`: slots all in use" in text


def test_a_tenant_sees_its_own_part() -> None:
    text = shown(TENANT)
    assert "acme at http://127.0.0.1:8700" in text
    (short,) = [line for line in text.splitlines() if line.startswith("short")]
    assert short.split() == ["short", "5", "1", "–", "25%", "50%", "1.0", "–", "–", "–"]
    assert "alarm" not in text.lower()


def test_a_wide_screen_shows_more() -> None:
    assert "fail/s" not in shown(OVERVIEW)
    wide = shown(OVERVIEW, 140)
    assert all(title in wide for title in ("fail/s", "retry/s", "start p50", "used"))
    assert "████░░░░░░  38%" in wide


def test_that_nobody_answers_is_said_where_the_time_was() -> None:
    assert shown(OVERVIEW, note="no answer: this is old").splitlines()[0].endswith("this is old")


def test_more_than_fits_is_counted() -> None:
    pools = [POOL | {"name": f"pool-{number}"} for number in range(30)]
    text = shown(OVERVIEW | {"pools": pools, "alarms": [ALARM] * 9})
    assert "and 6 more pools" in text
    assert "and 3 more alarms" in text
    assert shown(OVERVIEW | {"alarms": []}).rstrip().endswith("No alarms.")


words = st.text(max_size=90)
numbers = st.none() | st.floats(0, 1e9)
counts = st.integers(0, 10**10)


@tried(60)
@given(words, counts, counts, numbers, st.sampled_from([80, 100, 120, 200]))
def test_no_word_and_no_number_breaks_a_line(
    word: str, count: int, slots: int, number: float | None, width: int
) -> None:
    """Nothing is wider than the screen, and no control character comes through."""
    rates = {f"{of}_per_second": number for of in ("accepted", "ended", "failed", "dead")}
    pool = POOL | rates | {"name": word, "queued": count, "running": slots, "slots": slots}
    times = {"oldest_runnable_age_seconds": number, "drain_seconds": number}
    alarm = ALARM | {"text": word, "runbook": word}
    text = shown(OVERVIEW | {"pools": [pool | times], "alarms": [alarm]}, width)
    assert [line for line in text.split("\n") if cell_len(line) > width] == []
    assert "\x1b" not in text


@pytest.mark.parametrize("word", ["[red]x[/red]", ":smile:", "\x1b[2J", "a\nb"])
def test_words_of_others_are_words(word: str) -> None:
    text = shown(OVERVIEW | {"pools": [POOL | {"name": word}]})
    assert "\x1b" not in text
    assert "[red]x" in text or "[red]" not in word
