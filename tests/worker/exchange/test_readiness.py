"""When a worker says that it is of use, what it says until then, and when it asks again."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from fairway.core.errors import Unavailable
from fairway.wire.exchange import ExchangeReply
from fairway.worker.exchange import readiness
from fairway.worker.exchange.readiness import Readiness

TYPES, LIMITS = ["a", "b"], {"memory": "watched"}
SERVER = "http://10.0.0.2:8700"


async def test_it_is_ready_once_and_says_so_once() -> None:
    one = Readiness("w", lambda: None, lambda: None)
    with capture_logs() as lines:
        one.failed(Unavailable("nobody listens there"), 0.5, SERVER)
        assert not one.is_ready
        for _ in range(2):
            one.greeted(ExchangeReply(), TYPES, LIMITS)
        one.failed(Unavailable("nobody listens there"), 0.5, SERVER)
    assert one.is_ready
    assert [line["event"] for line in lines] == [
        "worker is not ready", "worker ready", "limits are held by", "exchange failed",
    ]  # fmt: skip
    assert (lines[0]["server"], lines[0]["retry_in_seconds"]) == (SERVER, 0.5)
    assert lines[1]["types"] == TYPES


async def test_what_goes_on_failing_is_not_said_with_every_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Readiness("w", lambda: None, lambda: None)
    with capture_logs() as lines:
        for error in ("nobody listens there", "nobody listens there", "no such name"):
            one.failed(Unavailable(error), 0.5, SERVER)
    assert [line["error"] for line in lines] == ["nobody listens there", "no such name"]
    monkeypatch.setattr(readiness, "SAY_AGAIN_SECONDS", 0.0)
    with capture_logs() as lines:
        for error in ("away", "away"):
            one.failed(Unavailable(error), 0.5, SERVER)
    assert [line["error"] for line in lines] == ["away", "away"]


async def test_that_owners_change_is_no_warning_unless_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Servers that are restarted one by one hand their shards over, and a worker goes along."""
    one, elsewhere = Readiness("w", lambda: None, lambda: None), Unavailable(code="NOT_OWNER")
    one.greeted(ExchangeReply(), TYPES, LIMITS)
    with capture_logs() as lines:
        one.failed(elsewhere, 0.5, SERVER)
        one.failed(Unavailable("nobody listens there"), 0.5, SERVER)
        monkeypatch.setattr(readiness, "CHANGE_SECONDS", 0.0)
        one.failed(elsewhere, 0.5, SERVER)
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("info", "jobs go to another server, asking again"),
        ("warning", "exchange failed"),
        ("warning", "exchange failed"),
    ]


async def test_refused_types_are_told_once_and_asked_for_until_they_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "GREET_AGAIN_SECONDS", 0.01)
    asked = asyncio.Event()
    one = Readiness("w", asked.set, lambda: None)
    with capture_logs() as lines:
        for refused in (["b"], ["b"], []):
            one.greeted(ExchangeReply(refused_types=refused), TYPES, LIMITS)
            if refused:
                async with asyncio.timeout(30):
                    await asked.wait()
                asked.clear()
    told = [line for line in lines if "refused" in line["event"]]
    assert [(line["log_level"], line["types"]) for line in told] == [
        ("error", ["b"]), ("info", ["b"]),
    ]  # fmt: skip
    assert next(line for line in lines if line["event"] == "worker ready")["types"] == ["a"]
    await asyncio.sleep(0.03)
    assert not asked.is_set(), "there is nothing more to ask for"


async def test_why_a_type_is_refused_is_told_with_its_name() -> None:
    one = Readiness("w", lambda: None, lambda: None)
    with capture_logs() as lines:
        reply = ExchangeReply(refused_types=["b"], refused_why={"b": "It is for the pool 'x'."})
        for _ in range(2):
            one.greeted(reply, TYPES, LIMITS)
    [told] = [line for line in lines if line["log_level"] == "error"]
    assert (told["type"], told["why"]) == ("b", "It is for the pool 'x'.")
    assert lines[0]["types"] == ["a"]
