"""Flows under test: who waits starts when, and with what, it would on a server."""

from __future__ import annotations

import pytest

from fairway import (
    CTX,
    App,
    Conflict,
    Ctx,
    Debounce,
    Fail,
    InvalidRequest,
    JobEnded,
    NotFound,
    Retry,
    StillRunning,
    Unique,
    chain,
    group,
    testing,
)
from fairway.core.flows import FLOWS_OF_A_JOB_MAX
from fairway.sdk.testing.flows import HANDED_ON_BYTES_MAX

app = App("flows", url="http://127.0.0.1:9", patience=0)  # nothing listens there
other = App("others", url="http://127.0.0.1:9", patience=0)
ran: list[str] = []
broken = {"is": False}


@pytest.fixture(autouse=True)
def _mended() -> None:
    ran.clear()
    broken["is"] = False


@app.job
def fetch(url: str) -> dict[str, str]:
    ran.append(url)
    return {"page": url}


@other.job
async def parse(page: dict[str, str], note: str = "") -> str:
    if broken["is"]:
        raise Fail("cannot be read")
    return f"{page['page']}{note}"


@app.job
def store(text: str, *, table: str) -> str:
    return f"{text} in {table}"


@app.job(retry=Retry(2, backoff=("1h",), jitter=0))
def moody(n: int, ctx: Ctx = CTX) -> int:
    if ctx.attempt == 1:
        raise ConnectionError("not yet")
    return n


@app.job
def last(note: str) -> str:
    ran.append(note)
    return note


@app.job
def large() -> dict[str, str]:
    return {"page": "x" * HANDED_ON_BYTES_MAX}


@app.job(unique=Unique(by="n", on_conflict="replace"))
def only(n: int, change: int) -> None: ...


@app.job(debounce=Debounce("10s"))
def settled(n: int) -> None: ...


def test_a_chain_hands_results_on() -> None:
    for mode in (testing.inline, testing.manual):
        with mode():
            handle = chain(fetch.s("u"), parse.s(note="!"), store.s(table="pages")).enqueue()
            testing.drain()
            assert handle.result() == "u! in pages"
            assert [one.result() for one in handle.jobs[:2]] == [{"page": "u"}, "u!"]
            status = handle.status()
            assert (status.kind, status.state, status.total, status.succeeded) == (
                "chain", "succeeded", 3, 3
            )  # fmt: skip
            assert status.finished_at is not None
            testing.assert_enqueued(store, {"text": "u!", "table": "pages"})


def test_what_waits_for_others_has_no_time_and_does_not_run() -> None:
    with testing.manual():
        handle = chain(fetch.s("u"), parse.s()).enqueue()
        waiting = handle.jobs[1].status()
        assert (waiting.state, waiting.execute_at) == ("scheduled", None)
        with pytest.raises(StillRunning, match="waits for other jobs"):
            handle.result(timeout="1s")
        with pytest.raises(Conflict, match="waits for other jobs"):
            handle.jobs[1].reschedule(delay="1h")
        assert handle.status().state == "running"


def test_a_callback_starts_once_when_all_have_succeeded_by_the_tests_clock() -> None:
    with testing.manual():
        handle = group([moody.s(n) for n in range(3)], then=last.s("done")).enqueue()
        assert testing.drain() == {"failed": 3}
        assert (handle.status().succeeded, ran) == (0, [])
        testing.clock.advance("1h")
        assert testing.drain() == {"succeeded": 4}
        assert (handle.result(), ran) == ("done", ["done"])
        assert handle.status().callback == testing.assert_enqueued(last).id


def test_who_needs_a_success_waits_for_a_replay_of_what_is_dead() -> None:
    for mode in (testing.inline, testing.manual):
        ran.clear()
        with mode():
            broken["is"] = True
            jobs = [fetch.s("u"), parse.s({"page": "p"})]
            handle = group(jobs, then=last.s("done")).enqueue()
            testing.drain()
            status = handle.status()
            assert (status.state, status.failed_job) == ("failed", handle.jobs[1].id)
            assert (status.error["message"], ran) == ("cannot be read", ["u"])
            broken["is"] = False
            assert (handle.replay(), handle.replay()) == (1, 0)
            testing.drain()
            assert (handle.status().state, ran) == ("succeeded", ["u", "done"])


def test_by_choice_a_callback_starts_whatever_became_of_the_rest() -> None:
    broken["is"] = True
    with testing.manual():
        jobs = [parse.s({"page": "p"}), fetch.s("a"), fetch.s("b")]
        handle = group(jobs, then=last.s("done"), on_all="ended").enqueue()
        handle.jobs[2].cancel()
        testing.drain()
        assert ran == ["a", "done"]
        assert handle.status().state == "failed"


def test_a_callback_that_was_started_is_not_started_by_a_replay() -> None:
    broken["is"] = True
    with testing.manual():
        handle = group([parse.s({"page": "p"})], then=moody.s(1), on_all="ended").enqueue()
        assert testing.drain() == {"failed": 2}
        broken["is"] = False
        assert handle.replay() == 1
        assert testing.drain() == {"succeeded": 1}
        assert handle.last is not None
        assert handle.last.status().state == "scheduled"  # for its retry


def test_what_will_never_be_is_not_waited_for() -> None:
    with testing.manual():
        handle = chain(fetch.s("u"), parse.s(), store.s(table="t")).enqueue()
        after = last.options(after=[handle.jobs[2]]).enqueue("after")
        handle.jobs[0].cancel()
        assert testing.drain() == {}
        states = [one.status().state for one in (*handle.jobs, after)]
        assert states == ["cancelled"] * 4
        assert after.status().error["type"] == "FlowIncomplete"
        with pytest.raises(JobEnded):
            handle.result()


def test_a_result_too_large_to_hand_on_is_told() -> None:
    with testing.inline():
        handle = chain(large.s(), parse.s()).enqueue()
        status = handle.status()
        assert (status.state, status.cancelled) == ("cancelled", 1)
        assert "too large" in status.error["message"]


def test_a_flow_is_cancelled_as_a_whole() -> None:
    for mode in (testing.inline, testing.manual):
        with mode():
            first = fetch.options(delay="1h").enqueue("u") if mode is testing.manual else None
            after = [] if first is None else [first]
            jobs = [fetch.s("a"), fetch.s("b")]
            handle = group(jobs, then=last.s("no"), on_all="ended", after=after).enqueue()
            assert handle.cancel().cancelled == (2 if after else 0)
            testing.drain(with_scheduled=True)
    assert ran == ["a", "b", "no", "u"]


def test_jobs_wait_for_any_others() -> None:
    with testing.manual():
        first, second = fetch.enqueue("a"), fetch.options(delay="1h").enqueue("b")
        waiting = last.options(after=[first, second]).enqueue("both")
        pair = last.options(after=[first]).enqueue_many([("one",), ("two",)])
        testing.drain()
        assert (ran, waiting.status().state) == (["a", "one", "two"], "scheduled")
        testing.drain(with_scheduled=True)
        assert ran[3:] == ["b", "both"]
        assert {one.status().state for one in pair} == {"succeeded"}
        at_once = chain(fetch.s("c"), parse.s(), after=[first, second]).enqueue()
        testing.drain(with_scheduled=True)
        assert at_once.result() == "c"
    with testing.inline():
        first = fetch.enqueue("a")
        assert last.options(after=[first]).enqueue("at once").result() == "at once"


def test_a_long_chain_runs_inline() -> None:
    with testing.inline():
        handle = chain(last.s("x"), *[last.s()] * 99).enqueue()
        assert (handle.result(), len(ran)) == ("x", 100)


def test_what_a_server_refuses_is_refused() -> None:
    with testing.manual():
        job = fetch.enqueue("u")
        job.cancel()
        with pytest.raises(Conflict, match="will never succeed"):
            last.options(after=[job]).enqueue("n")
        assert last.options(after=[job], on_all="ended").enqueue("n").status().state == "queued"
        with pytest.raises(InvalidRequest, match="at most 100 jobs"):
            chain(last.s("x"), *[last.s()] * 100).enqueue()
        with pytest.raises(InvalidRequest, match="At most 100 jobs of a group wait"):
            last.options(after=[fetch.enqueue("v")]).enqueue_many([("n",)] * 101)
        with pytest.raises(InvalidRequest, match="no times of their own"):
            group([fetch.options(delay="1h").s("u")]).enqueue()
        for wrong in (only.s(1, 2), settled.s(1)):
            with pytest.raises(InvalidRequest, match="cannot be unique"):
                group([wrong]).enqueue()
        busy = fetch.enqueue("w")
        for _ in range(FLOWS_OF_A_JOB_MAX):
            last.options(after=[busy]).enqueue("n")
        with pytest.raises(Conflict, match="by 20 flows already"):
            last.options(after=[busy]).enqueue("n")
        handle = group([fetch.s("u")]).enqueue()
    with testing.manual(), pytest.raises(NotFound):
        last.options(after=handle.jobs).enqueue("n")  # of another mode


def test_one_that_others_wait_for_is_not_replaced() -> None:
    with testing.manual():
        handle = only.enqueue(1, change=1)
        last.options(after=[handle]).enqueue("n")
        with pytest.raises(Conflict, match="other jobs of a flow count on it"):
            only.enqueue(1, change=2)
        handle.cancel()
        only.enqueue(1, change=3)
