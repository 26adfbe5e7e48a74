"""What a handler knows while it runs, and how it speaks."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from fairway import CTX, CheckpointFailed, Ctx
from fairway.sdk.handler.context import RunFacts, enter, leave
from fairway.wire.bounds import PROGRESS_BYTES_MAX


class Heard:
    def __init__(self) -> None:
        self.progressed: list[dict[str, Any]] = []
        self.logged: list[tuple[str, int, str]] = []
        self.saved: list[tuple[int, int, bytes]] = []
        self.saving: Future[None] = Future()

    def progress(self, job_id: str, progress: bytes) -> None:
        self.progressed.append(msgspec.json.decode(progress))

    def log(self, ctx: Ctx, level: int, line: str, logger: str = "") -> None:
        self.logged.append((ctx.job_id, level, line))

    def checkpoint(self, job_id: str, epoch: int, number: int, state: bytes) -> Future[None]:
        self.saved.append((epoch, number, state))
        return self.saving


FACTS = RunFacts("j1", "score", "acme", attempt=2, delivery=3, timeout_seconds=60)


def test_facts() -> None:
    ctx = Ctx(FACTS)
    assert (ctx.job_id, ctx.type, ctx.tenant) == ("j1", "score", "acme")
    assert (ctx.attempt, ctx.delivery, ctx.first_attempt) == (2, 3, False)


def test_time_left_and_deadline() -> None:
    ctx = Ctx(FACTS)
    left = ctx.time_left()
    assert left is not None
    assert 59 < left <= 60
    assert ctx.deadline is not None
    assert ctx.deadline.tzinfo is not None
    assert Ctx(replace(FACTS, timeout_seconds=0)).time_left() == 0
    assert Ctx(replace(FACTS, timeout_seconds=None)).deadline is None


def test_progress_reaches_the_sink() -> None:
    heard = Heard()
    Ctx(FACTS, heard).progress(3, 10, "pages")
    assert heard.progressed == [{"done": 3, "total": 10, "text": "pages"}]


def test_a_progress_of_any_size_is_small_on_its_way() -> None:
    heard = Heard()
    Ctx(FACTS, heard).progress(3, 10, "\x00" * (20 << 20))
    (said,) = heard.progressed
    assert (said["done"], said["total"]) == (3, 10)
    assert 0 < len(msgspec.json.encode(said)) <= PROGRESS_BYTES_MAX
    with pytest.raises(ValueError, match="at most"):
        Ctx(FACTS, heard).progress({"n": "x" * (1 << 20)})  # type: ignore[arg-type]  # no checker there


def test_track_says_first_and_last_but_not_each() -> None:
    heard = Heard()
    assert list(Ctx(FACTS, heard).track(range(1000))) == list(range(1000))
    assert [said["done"] for said in heard.progressed] == [0, 1000]
    assert heard.progressed[0]["total"] == 1000


def test_track_goes_on_from_where_the_last_run_stopped() -> None:
    heard = Heard()
    assert list(Ctx(FACTS, heard).track(range(18, 60), start=18)) == list(range(18, 60))
    first, last = heard.progressed[0], heard.progressed[-1]
    assert (first["done"], first["total"]) == (18, 60)
    assert (last["done"], last["total"]) == (60, 60)


def test_track_counts_what_has_no_length() -> None:
    heard = Heard()
    assert list(Ctx(FACTS, heard).track(iter("abc"))) == ["a", "b", "c"]
    assert heard.progressed[-1] == {"done": 3, "total": None, "text": ""}
    assert list(Ctx(FACTS, heard).track(iter(""))) == []
    assert heard.progressed[-1]["done"] == 0


def test_log_goes_to_the_job_and_to_logging(caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard()
    with caplog.at_level(logging.INFO, "fairway.job.score"):
        Ctx(FACTS, heard).log.info("read %d pages", 3)
    assert heard.logged == [("j1", logging.INFO, "read 3 pages")]
    record = caplog.records[0]
    assert (record.getMessage(), record.name) == ("read 3 pages", "fairway.job.score")
    assert record.__dict__["job_id"] == "j1"
    assert record.filename == "test_context.py"


def test_log_keeps_lines_that_logging_would_drop() -> None:
    heard = Heard()
    Ctx(FACTS, heard).log.debug("detail")
    assert heard.logged == [("j1", logging.DEBUG, "detail")]


def test_no_way_to_write_a_line_fails_a_job(caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard()
    with caplog.at_level(logging.INFO, "fairway.job.score"):
        Ctx(FACTS, heard).log("read %d pages", 3)
        Ctx(FACTS, heard).log.warning("late by 100%", by="2s", customer=7)
    assert heard.logged == [
        ("j1", logging.INFO, "read 3 pages"),
        ("j1", logging.WARNING, "late by 100% by='2s' customer=7"),
    ]
    assert [record.getMessage() for record in caplog.records] == [line for *_, line in heard.logged]
    assert {record.filename for record in caplog.records} == {"test_context.py"}


def test_a_word_of_a_line_may_have_any_name_and_value() -> None:
    class Unspeakable:
        def __repr__(self) -> str:
            raise ValueError

    heard = Heard()
    Ctx(FACTS, heard).log("entered", level=3)
    Ctx(FACTS, heard).log.info("seen", level="deep", what=Unspeakable())
    assert [line for *_, line in heard.logged] == [
        "entered level=3",
        "seen level='deep' what=<Unspeakable>",
    ]


def test_cancelled_is_seen_from_other_threads() -> None:
    ctx = Ctx(FACTS)
    seen: list[bool] = []
    ctx.ask_to_stop()
    thread = threading.Thread(target=lambda: seen.append(ctx.cancelled()))
    thread.start()
    thread.join()
    assert seen == [True]


async def test_current_follows_tasks_and_threads() -> None:
    ctx = Ctx(FACTS)
    entered = enter(ctx)
    assert Ctx.current() is ctx
    assert await asyncio.to_thread(Ctx.current) is ctx
    assert CTX.job_id == "j1"
    leave(entered)
    with pytest.raises(RuntimeError, match="no job is running here"):
        Ctx.current()
    with pytest.raises(RuntimeError, match="no job is running here"):
        CTX.progress(1)


# -- checkpoints -------------------------------------------------------------------------------


def test_a_checkpoint_carries_its_run_and_its_number() -> None:
    heard = Heard()
    heard.saving.set_result(None)
    ctx = Ctx(replace(FACTS, epoch=7), heard)
    assert ctx.load_checkpoint() is None
    ctx.checkpoint({"rows": 1})
    ctx.checkpoint({"rows": 2})
    assert heard.saved == [(7, 1, b'{"rows":1}'), (7, 2, b'{"rows":2}')]
    assert ctx.load_checkpoint() == {"rows": 2}


class Place(msgspec.Struct):
    rows: int


def test_a_checkpoint_comes_back_as_the_type_that_is_asked_for() -> None:
    ctx = Ctx(replace(FACTS, checkpoint=b'{"rows":2}'))
    assert ctx.load_checkpoint(Place) == Place(2)
    assert ctx.load_checkpoint() == {"rows": 2}


def test_in_a_thread_the_call_returns_when_the_state_is_safe() -> None:
    heard = Heard()
    returned = threading.Event()

    def handler() -> None:
        Ctx(FACTS, heard).checkpoint(1)
        returned.set()

    thread = threading.Thread(target=handler)
    thread.start()
    assert not returned.wait(0.05)
    heard.saving.set_result(None)
    assert returned.wait(5)
    thread.join()


async def test_a_coroutine_goes_on_and_hears_of_a_failure_where_it_awaits() -> None:
    heard = Heard()
    saving = Ctx(FACTS, heard).checkpoint(1)
    assert not saving.is_safe
    heard.saving.set_exception(CheckpointFailed("no bucket"))
    with pytest.raises(CheckpointFailed, match="no bucket"):
        await saving


def test_a_log_line_that_does_not_fit_fails_no_job() -> None:
    heard = Heard()
    log = Ctx(FACTS, heard).log
    log.info("%d pages", "three")
    log.info("%(pages)d pages", {"pages": 3})
    assert [line for _, _, line in heard.logged] == ["%d pages ('three',)", "3 pages"]


def test_a_log_line_names_the_error_it_is_about() -> None:
    heard = Heard()
    try:
        raise ValueError("no card")
    except ValueError:
        Ctx(FACTS, heard).log.exception("payment failed")
    assert [line for _, _, line in heard.logged] == ["payment failed (ValueError: no card)"]
