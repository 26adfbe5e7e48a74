"""Numbers that the documents tell are those of the code.

Each sentence is made from the constants it tells of, and must stand on its page to the letter (line
breaks do not count): so neither changes without the other.
"""

from __future__ import annotations

import re

import pytest
from tests.laws.source import ROOT

from fairway.api.events import conversation, socket
from fairway.api.http import socket_protocol
from fairway.api.jobs import events
from fairway.cli.processes import http
from fairway.core import pool_classifier
from fairway.core.failure import circuit_book, retry
from fairway.core.failure.circuits import CircuitSettings
from fairway.core.failure.quarantine import QuarantineSettings
from fairway.core.failure.retry import RetryPolicy
from fairway.core.fair_share import own_slots
from fairway.core.fair_share.entitlements import ShareSettings
from fairway.core.lifecycle import State
from fairway.core.object_storage import result_patience
from fairway.core.pools import LONG, MEDIUM, SHORT
from fairway.core.run import run_note
from fairway.runtime import stalls
from fairway.services import platform, shutdown
from fairway.services.events import event_tails
from fairway.services.maintenance import run_times
from fairway.services.object_storage import uploads
from fairway.services.sessions import session_table
from fairway.wire import bounds
from fairway.worker.exchange import reporting, unacknowledged_results
from fairway.worker.pipe import pings
from fairway.worker.runners import fleet, isolated, spares, start_failures, suspects

WORDS = {
    2: "two",
    3: "three",
    4: "four",
    5: "five",
    8: "eight",
    10: "ten",
    20: "20",
    100: "a hundred",
}
SECOND_US, MINUTE, HOUR = 1_000_000, 60, 3600
CIRCUIT, QUARANTINE, POLICY = CircuitSettings(), QuarantineSettings(), RetryPolicy()


def told(number: float) -> str:
    """Thousands apart, as pages write them."""
    return f"{number:,.0f}".replace(",", " ")


def span(seconds: float) -> str:
    return f"{seconds / MINUTE:g} min" if seconds >= MINUTE else f"{seconds:g} s"


def mb(size_bytes: int) -> str:
    return f"{size_bytes >> 20} MB"


PAUSES = ", ".join(map(span, retry.BACKOFF_SECONDS))
LEANING = ", ".join(f"{seconds:g}" for seconds in retry.DEPENDENCY_BACKOFF_SECONDS)
STOPS = (
    f"{2 * shutdown.HAND_OVER_SECONDS_MAX:g} s to hand over, {http.STOP_SECONDS} s for requests,"
    f" {platform.STOP_SECONDS_MAX:g} s to write, {shutdown.CLOSE_SECONDS_MAX:g} s to close"
)

SENTENCES = [
    (
        "FAILURES",
        f"tried again after {PAUSES} (± {retry.JITTER * 100:.0f}"
        f" %); dead at the {SHORT.attempts_max}th"
        f" (medium pool {MEDIUM.attempts_max}rd, long pool {LONG.attempts_max}nd)",
    ),
    (
        "FAILURES",
        f"tried again after {LEANING} s, never before its `retry_after` (up to a day);"
        f" dead at the {POLICY.dependencies_max}th",
    ),
    ("FAILURES", f"after {POLICY.deliveries_max} crashes dead as `poison`"),
    (
        "FAILURES",
        f"after {span(CIRCUIT.rest_us / SECOND_US)} (doubling up to"
        f" {span(CIRCUIT.rest_max_us / SECOND_US)}, and never before the `retry_after` it asked"
        f" for, up to an hour) {WORDS[CIRCUIT.probes]} jobs go out as probes",
    ),
    ("FAILURES", f"of the last minute failed (and at least {WORDS[CIRCUIT.calls_min]})"),
    ("FAILURES", f"circuits for {circuit_book.DEPENDENCIES_MAX} dependencies by name"),
    ("FAILURES", f"a tenant has {circuit_book.NAMED_MAX} by name"),
    ("FAILURES", f"until there are {told(circuit_book.CIRCUITS_MAX)} circuits in all"),
    (
        "FAILURES",
        f"(and at least {QUARANTINE.runs_min}) failed by their own doing within the last hour",
    ),
    (
        "FAILURES",
        f"get {WORDS[retry.QUARANTINE_RUNS_MAX]} tries instead of {WORDS[SHORT.attempts_max]}",
    ),
    ("LIFECYCLE", f"tried again after {PAUSES} (± {retry.JITTER * 100:.0f} %)"),
    ("LIFECYCLE", f"after {POLICY.deliveries_max} crashes `dead` as poison"),
    (
        "FAIRNESS",
        f"when all floors together exceed {ShareSettings().floors_max_share // 10} % of the pool",
    ),
    ("POOLS", f"lost after {span(SHORT.lease_seconds)} of silence"),
    ("POOLS", f"on disk first; {span(MEDIUM.lease_seconds)}"),
    (
        "POOLS",
        f"| pick-up, 99 % | {span(SHORT.pickup_target_seconds)} |"
        f" {span(MEDIUM.pickup_target_seconds)} | {LONG.pickup_target_seconds:g} s |",
    ),
    (
        "POOLS",
        f"If more than {pool_classifier.DRIFT_SHARE // 10} % of a type's runs outlast its pool",
    ),
    ("POOLS", f"more than {WORDS[pool_classifier.VIOLATIONS_MAX]} gross overruns in an hour"),
    (
        "POOLS",
        f"a short job after {span(SHORT.overrun_seconds or 0)}, a medium one after"
        f" {span(MEDIUM.overrun_seconds or 0)}",
    ),
    ("POOLS", f"result has at most {mb(bounds.RESULT_BYTES_MAX)}"),
    (
        "POOLS",
        f"(an hour, or {uploads.BUCKET_ADDRESS_SECONDS // MINUTE}"
        f" minutes where storage is a bucket)",
    ),
    (
        "OPERATING",
        f"a result of over {mb(bounds.RESULT_BYTES_MAX)}; of progress"
        f" {run_note.PROGRESS_BYTES_MAX >> 10} KB are kept",
    ),
    (
        "OPERATING",
        f"an event at most every {events.APART_SECONDS:g} s | one stream, after its first"
        f" {events.AT_ONCE} |",
    ),
    ("OPERATING", f"{session_table.TENANT_SESSIONS_MAX} sessions of its own workers"),
    ("OPERATING", f"{told(own_slots.TENANT_SLOTS_MAX)} slots of its own workers, all together"),
    ("OPERATING", f"| one worker | {told(bounds.SLOTS_MAX)} slots in all pools together"),
    ("OPERATING", f"A stall above {stalls.LOG_SECONDS * 1000:g} ms is a line in the log"),
    ("OPERATING", STOPS),
    ("OPERATING", f"one of {WORDS[spares.SPARES]} spare interpreters"),
    (
        "OPERATING",
        f"{WORDS[suspects.SUSPECTS_MAX]} such jobs at a time, and one that has waited for"
        f" {span(start_failures.HAND_BACK_SECONDS)} goes back",
    ),
    (
        "OPERATING",
        f"After {span(pings.QUIET_LOOKS * fleet.LOOK_SECONDS)} without an answer its worker asks",
    ),
    (
        "OPERATING",
        f"after {span(pings.DEAF_LOOKS * fleet.LOOK_SECONDS)} in which it neither answered",
    ),
    (
        "OPERATING",
        f"stopped by a signal for {span(isolated.STOPPED_LOOKS_MAX * isolated.LOOK_SECONDS)}.",
    ),
    (
        "OPERATING",
        f"goes back after {span(start_failures.HAND_BACK_SECONDS)}; when a worker can run nothing"
        f" for {span(start_failures.HOPELESS_SECONDS)} it hands back",
    ),
    ("OPERATING", f"A worker with {mb(reporting.HELD_BYTES_MAX)} of results still to report"),
    (
        "OPERATING",
        f"wait for {WORDS[int(result_patience.PATIENCE_PER_RUN)]} times as long as their run"
        f" took ({span(result_patience.PATIENCE_SECONDS_MIN)} at least, an hour at most)",
    ),
    (
        "OPERATING",
        f"for {span(unacknowledged_results.OVER_SECONDS)}"
        f" ({span(unacknowledged_results.FULL_SECONDS)} when the worker is full)",
    ),
    (
        "decisions/0013",
        f"all of a batch of up to {run_times.LARGE_BATCH}, one in"
        f" {WORDS[run_times.SAMPLE_STEP]} of a larger one",
    ),
    (
        "EVENTS",
        f"{conversation.SUBSCRIPTIONS_MAX} subscriptions, messages of up to"
        f" {socket_protocol.MESSAGE_BYTES_MAX >> 10} KB",
    ),
    ("EVENTS", f"some {told(event_tails.EVENTS_PER_SECOND)} events a second"),
    ("EVENTS", f"within {WORDS[int(socket.AUTHORIZE_SECONDS)]} seconds"),
    (
        "decisions/0053",
        f"up to {event_tails.KEPT_OF_TENANT} events a tenant, {told(event_tails.KEPT_MAX)} in all",
    ),
]


@pytest.mark.parametrize(("page", "sentence"), SENTENCES)
def test_a_number_on_a_page_is_that_of_the_code(page: str, sentence: str) -> None:
    (path,) = (ROOT / "docs").glob(f"{page}*.md")
    text = re.sub(r"\s+", " ", path.read_text("utf-8"))
    assert sentence in text


def test_hours_and_days_told_in_words_are_what_they_say() -> None:
    assert retry.RETRY_AFTER_MS_MAX == 24 * HOUR * 1000
    assert CIRCUIT.retry_after_max_us == HOUR * SECOND_US == QUARANTINE.window_us
    assert CIRCUIT.window_us == MINUTE * SECOND_US
    assert result_patience.PATIENCE_SECONDS_MAX == uploads.ADDRESS_SECONDS == HOUR
    assert fleet.LOOK_SECONDS == 1.0, "pinged every second"


def test_the_drawing_of_a_jobs_life_shows_every_state_and_the_way_back() -> None:
    page = (ROOT / "docs/LIFECYCLE.md").read_text("utf-8")
    drawing = page.split("```")[1]
    assert [state.label for state in State if state.label not in drawing] == []
    assert "replay" in drawing
