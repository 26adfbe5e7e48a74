"""What handlers log stands in the worker's log, with whose it is, and fills no disk."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from fairway.runtime.log_options import LogOptions
from fairway.sdk.handler.context import Ctx, RunFacts
from fairway.worker.job_log import (
    LINE_CHARACTERS,
    LINES_PER_SECOND,
    LINES_PER_SECOND_OF_A_TENANT,
    JobLines,
)


class Log:
    """The worker's log, and a clock."""

    def __init__(self, *, is_json: bool = True, level: int = logging.INFO) -> None:
        self.text: list[str] = []
        self.now = 100.0
        options = LogOptions(level, is_json)
        self.lines = JobLines(options, self.text.append, seconds=lambda: self.now)

    def say(self, line: str, level: int = logging.INFO, tenant: str = "acme") -> None:
        self.lines.tell(Ctx(RunFacts("j1", "order.pay", tenant)), level, line)

    @property
    def events(self) -> list[str]:
        return [json.loads(text)["event"] for text in self.text]


@pytest.fixture(autouse=True)
def nobody_else_listens() -> Iterator[None]:
    """As in a worker: the handlers that pytest adds would claim every line."""
    logger = logging.getLogger("fairway.job")
    logger.propagate = False
    yield
    logger.propagate = True


def test_a_line_says_whose_it_is() -> None:
    log = Log()
    log.say("paid 3 of 5")
    (line,) = map(json.loads, log.text)
    assert line.pop("timestamp")
    assert line == {
        "event": "paid 3 of 5", "job": "j1", "type": "order.pay", "tenant": "acme", "level": "info"
    }  # fmt: skip


def test_details_are_not_for_the_workers_log() -> None:
    log = Log()
    log.say("row 17", logging.DEBUG)
    assert log.text == []
    wordy = Log(level=logging.DEBUG)
    wordy.say("row 17", logging.DEBUG)
    assert wordy.events == ["row 17"]


def test_a_loud_tenant_is_cut_short_and_the_others_are_heard() -> None:
    log = Log()
    for _ in range(1000):
        log.say("again")
    log.say("mine", tenant="small")
    log.now += 1
    log.lines.tell_dropped()
    log.say("later")
    rest = 1000 - LINES_PER_SECOND_OF_A_TENANT
    told = ["again"] * LINES_PER_SECOND_OF_A_TENANT
    assert log.events == [*told, "mine", f"… {rest} lines of jobs dropped", "later"]


def test_many_tenants_together_have_an_end_too() -> None:
    log = Log()
    for number in range(1000):
        log.say("hello", tenant=f"t{number}")
    assert len(log.text) == LINES_PER_SECOND


def test_a_long_line_is_cut() -> None:
    log = Log()
    log.say("x" * 100_000)
    assert log.events == ["x" * LINE_CHARACTERS + "…"]


def test_on_a_terminal_a_line_stays_one() -> None:
    log = Log(is_json=False)
    log.say("done\n2026 [error] the server burns\x1b[2J")
    (text,) = log.text
    assert text.isprintable()
    assert "job=j1 type=order.pay tenant=acme" in text


def test_an_app_with_logging_of_its_own_has_the_lines_there_only() -> None:
    log, handler = Log(), logging.NullHandler()
    logger = logging.getLogger("fairway.job")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        log.say("claimed")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    log.say("ours")
    assert log.events == ["ours"]
