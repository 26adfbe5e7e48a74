"""A run that fails leaves a line in the worker's log, and very many leave a few."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from msgspec import Raw
from structlog.testing import capture_logs
from tests.worker.platform import ended

from fairway.core.ids import Epoch
from fairway.wire.exchange import NULL, Lease, Report
from fairway.worker.exchange.failure_log import LINES_PER_SECOND, FailureLines
from fairway.worker.exchange.journaled_ledger import JournaledLedger

STACK = 'Traceback:\n  File "lib.py", line 3, in call\n  File "shop.py", line 12, in order\nbad'


def lease(job: str = "j1") -> Lease:
    return Lease(
        job=job, epoch=Epoch(1), token="t", type="order.pay", pool="short", tenant="acme",
        attempt=2, delivery=2, payload=Raw(b"{}"),
    )  # fmt: skip


def failed(**error: str) -> Report:
    return ended("j1", "failed", failure="app_error", error=Raw(msgspec.json.encode(error)))


def test_a_failure_is_told_with_what_and_where() -> None:
    books = JournaledLedger(None, "0" * 32, [], {"short"})
    books.ledger.received([lease(), lease("j2")])
    with capture_logs() as lines:
        books.ledger.ended(failed(type="ValueError", message="no card", stack=STACK))
        books.ledger.ended(ended("j2"))
    assert lines == [
        {
            "event": "run failed", "log_level": "warning", "job": "j1", "type": "order.pay",
            "attempt": 2, "failure": "app_error", "error": "ValueError: no card",
            "where": "shop.py:12",
            "exception": "    Traceback:\n      File \"lib.py\", line 3, in call\n"
            "      File \"shop.py\", line 12, in order\n    bad",
        }
    ]  # fmt: skip


@pytest.mark.parametrize("error", [NULL, Raw(b"[1]"), Raw(b'"text"'), Raw(b'{"type": 5}')])
def test_an_error_that_is_none_of_ours_is_no_trouble(error: Raw) -> None:
    with capture_logs() as lines:
        FailureLines().tell(lease(), ended("j1", "failed", failure="timeout", error=error))
    assert [line["error"] for line in lines] == [""]


def test_what_an_error_says_looks_like_no_line_of_ours() -> None:
    with capture_logs() as lines:
        FailureLines().tell(lease(), failed(type="E", stack="a\r\n2026 [info] all is well\x1b[2J"))
    assert lines[0]["exception"] == "    a\\r\n    2026 [info] all is well\\x1b[2J"


def test_very_many_are_counted() -> None:
    now = 100.0
    calls: list[Callable[[], None]] = []
    told = FailureLines(lambda: now, calls.append)
    with capture_logs() as lines:
        for _ in range(1000):
            told.tell(lease(), failed(type="E"))
        now += 1.0
        calls.pop()()
        told.tell(lease(), failed(type="E"))
    assert len(lines) == LINES_PER_SECOND + 2
    assert lines[-2]["event"] == f"… {1000 - LINES_PER_SECOND} failed runs not shown"
    assert calls == [], "it was said once"
