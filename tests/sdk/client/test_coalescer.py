"""Jobs handed in at the same moment travel together, and yet each caller has its own answer.

`held` keeps the first call under way, so that whatever comes meanwhile gathers.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from tests.sdk.tiny_server import API_KEY, Reply, TinyServer, problem

from fairway import App, Handle, Job, Unreachable
from fairway.core.errors import Forbidden, InvalidRequest, LimitReached
from fairway.sdk.client import gathering
from fairway.sdk.handler.tracing import attach, detach

Say = Job[[str], None]


def say_of(app: App) -> Say:
    @app.job
    def say(text: str) -> None: ...

    return say


@pytest.fixture
async def say(server: TinyServer) -> AsyncIterator[Say]:
    app = App("scoring", url=server.url, api_key=API_KEY, patience="20s")
    yield say_of(app)
    await app.aclose()


@pytest.fixture
def held(server: TinyServer, say: Say) -> Iterator[threading.Thread]:
    """A call that is under way until `let_go`."""
    server.moods.append("hold")
    first = threading.Thread(target=say.enqueue, args=("first",))
    first.start()
    until(lambda: len(server.requests) == 1)
    yield first
    server.let_go()
    first.join(10)


def until(holds: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < ends_at
        time.sleep(0.005)


async def gathered(say: Say, texts: list[str]) -> list[asyncio.Task[Handle[None]]]:
    """So many tasks that have handed in a job and wait."""
    tasks = [asyncio.create_task(say.aenqueue(text)) for text in texts]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


def said(server: TinyServer, handle: Handle[None]) -> str:
    return str(server.jobs[handle.id]["payload"]["text"])


FEW = [f"t{n}" for n in range(gathering.FURTHER_JOBS - 1)]  # they wait while one is under way


async def test_a_lone_job_goes_at_once_as_it_always_did(say: Say, server: TinyServer) -> None:
    handle = await say.aenqueue("alone")
    assert server.paths() == ["POST /v1/jobs"]
    assert said(server, handle) == "alone"


async def test_tasks_that_wait_at_the_same_moment_share_a_call(
    say: Say, server: TinyServer, held: threading.Thread
) -> None:
    tasks = await gathered(say, FEW)
    server.let_go()
    handles = await asyncio.gather(*tasks)
    assert [said(server, handle) for handle in handles] == FEW
    assert server.paths() == ["POST /v1/jobs", "POST /v1/jobs/batch"]
    assert "idempotency_keys" not in server.requests[1].json, "one key for all costs less"


async def test_those_with_keys_of_their_own_keep_them(
    say: Say, server: TinyServer, held: threading.Thread
) -> None:
    mine = asyncio.create_task(say.options(idempotency_key="mine").aenqueue("mine"))
    tasks = [mine, *(await gathered(say, FEW[1:]))]
    server.let_go()
    await asyncio.gather(*tasks)
    keys = server.requests[1].json["idempotency_keys"]
    assert (keys[0], len({*keys})) == ("mine", len(FEW))


async def test_threads_and_loops_share_it_with_them(
    say: Say, server: TinyServer, held: threading.Thread
) -> None:
    def another_loop(text: str) -> Handle[None]:
        return asyncio.run(say.aenqueue(text))

    line = cast("App", say.app).client._coalescer._line
    assert line is not None
    with ThreadPoolExecutor(8) as threads:
        by_thread = [threads.submit(say.enqueue, text) for text in FEW[:4]]
        by_loop = [threads.submit(another_loop, text) for text in FEW[4:8]]
        tasks = await gathered(say, FEW[8:])
        await asyncio.to_thread(until, lambda: len(line._waiting) == len(FEW))
        server.let_go()
        handles = await asyncio.gather(*tasks)
        handles = [future.result(20) for future in (*by_thread, *by_loop)] + handles
    assert [said(server, handle) for handle in handles] == FEW
    assert len(server.requests) == 2


async def test_many_need_not_wait_for_a_call_that_is_slow(
    say: Say, server: TinyServer, held: threading.Thread
) -> None:
    texts = [f"t{n}" for n in range(gathering.FURTHER_JOBS)]
    handles = await asyncio.gather(*await gathered(say, texts))
    assert [said(server, handle) for handle in handles] == texts
    assert held.is_alive()


async def test_a_refused_job_refuses_only_its_own_caller(
    say: Say, server: TinyServer, held: threading.Thread
) -> None:
    server.refuse = "t3"
    tasks = await gathered(say, FEW)
    server.let_go()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers[3], InvalidRequest)
    assert "not this one" in answers[3].message
    others = [answer for answer in answers if isinstance(answer, Handle)]
    assert [said(server, one) for one in others] == [text for text in FEW if text != "t3"]


@pytest.mark.parametrize("status", [422, 413, 400, 429])
async def test_a_call_that_is_refused_whole_goes_again_in_smaller_ones(
    say: Say, server: TinyServer, held: threading.Thread, status: int
) -> None:
    server.moods.extend([Reply(status, problem("NOT_THESE", status))] * 3)
    tasks = await gathered(say, FEW)
    server.let_go()
    handles = await asyncio.gather(*tasks)
    assert [said(server, handle) for handle in handles] == FEW
    sizes = [len(request.json.get("jobs", [0])) for request in server.requests[1:]]
    assert sizes[:4] == [24, 12, 6, 3]


async def test_a_limit_that_lets_nobody_in_is_told_to_everybody(
    say: Say, server: TinyServer, held: threading.Thread
) -> None:
    full = Reply(429, problem("QUEUE_DEPTH_EXCEEDED", 429, "full"), {"Retry-After": "60"})
    server.moods.extend([full] * 100)
    tasks = await gathered(say, FEW)
    server.let_go()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(answer, LimitReached) for answer in answers)
    assert len({id(answer) for answer in answers}) == len(FEW), "each raises its own"


async def test_a_wrong_key_is_told_to_all_at_once(
    say: Say, server: TinyServer, held: threading.Thread
) -> None:
    server.moods.append(Reply(403, problem("FORBIDDEN", 403)))
    tasks = await gathered(say, FEW)
    server.let_go()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(answer, Forbidden) for answer in answers)
    assert len(server.requests) == 1 + 1


@pytest.mark.parametrize("mood", ["drop", Reply(503, problem("OVERLOADED", 503))])
async def test_after_a_lost_reply_or_not_now_they_come_again_and_are_taken_once(
    say: Say, server: TinyServer, held: threading.Thread, mood: Reply | str
) -> None:
    server.moods.extend([mood, mood])
    tasks = await gathered(say, FEW)
    server.let_go()
    handles = await asyncio.gather(*tasks)
    assert [said(server, handle) for handle in handles] == FEW
    assert len(server.jobs) == len(FEW) + 1
    assert len(server.requests) == 4


async def test_a_call_that_may_have_been_heard_is_not_split(
    say: Say, server: TinyServer, held: threading.Thread
) -> None:
    """A limit refuses it, and its first try was taken: in parts they would be taken again."""
    full = Reply(429, problem("RATE_LIMITED", 429, "full"), {"Retry-After": "0"})
    server.moods.extend(["drop", full, full])
    tasks = await gathered(say, FEW)
    server.let_go()
    handles = await asyncio.gather(*tasks)
    assert [said(server, handle) for handle in handles] == FEW
    assert len(server.jobs) == len(FEW) + 1
    assert len({one.headers["idempotency-key"] for one in server.requests[1:]}) == 1


async def test_a_job_that_is_not_taken_now_comes_again_without_the_others(
    say: Say, server: TinyServer, held: threading.Thread
) -> None:
    away = {"status": 503, "problem": problem("UNAVAILABLE", 503)}
    items = [away, *({"status": 202, "id": f"id-{n}"} for n in range(1, len(FEW)))]
    server.moods.append(Reply(200, {"accepted": len(FEW) - 1, "items": items}))
    tasks = await gathered(say, FEW)
    server.let_go()
    first, *others = await asyncio.gather(*tasks)
    assert said(server, first) == "t0"
    assert [handle.id for handle in others] == [f"id-{n}" for n in range(1, len(FEW))]


async def test_who_leaves_before_the_call_is_not_sent_and_disturbs_nobody(
    say: Say, server: TinyServer, held: threading.Thread
) -> None:
    tasks = await gathered(say, FEW)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.sleep(0)
    server.let_go()
    handles = await asyncio.gather(*tasks[1::2])
    assert [said(server, handle) for handle in handles] == FEW[1::2]
    assert len(server.jobs) == 1 + len(handles)


async def test_who_leaves_during_the_call_disturbs_nobody(say: Say, server: TinyServer) -> None:
    server.moods.extend(["hold", "hold"])
    tasks = await gathered(say, FEW)
    await asyncio.to_thread(until, lambda: bool(server.jobs))  # all of them, or the first
    for task in tasks[::2]:
        task.cancel()
    await asyncio.sleep(0)
    server.let_go()
    handles = await asyncio.gather(*tasks[1::2])
    assert [said(server, handle) for handle in handles] == FEW[1::2]
    assert (await say.aenqueue("next")).id in server.jobs


async def test_a_loop_that_ends_disturbs_nobody(
    say: Say, server: TinyServer, held: threading.Thread
) -> None:
    async def left() -> None:
        await gathered(say, FEW[:5])  # asyncio.run cancels them

    await asyncio.to_thread(asyncio.run, left())
    tasks = await gathered(say, FEW[5:])
    server.let_go()
    handles = await asyncio.gather(*tasks)
    assert [said(server, handle) for handle in handles] == FEW[5:]


@pytest.mark.parametrize("by_thread", [True, False])
async def test_each_waits_as_long_as_its_patience(server: TinyServer, by_thread: bool) -> None:
    """Also one that travels, behind a call that hangs, with another whose patience is longer."""
    say = say_of(App("x", url=server.url, api_key=API_KEY, patience="1.5s"))
    server.moods.extend(["hold"] * 10)

    async def wait(after_seconds: float) -> float:
        await asyncio.sleep(after_seconds)
        begun = time.monotonic()
        with pytest.raises(Unreachable, match="is the server running"):
            await (asyncio.to_thread(say.enqueue, "a") if by_thread else say.aenqueue("a"))
        return time.monotonic() - begun

    took = await asyncio.gather(wait(0), wait(0.1), wait(1.4))
    assert all(1.4 <= seconds < 10 for seconds in took), took
    await say.app.aclose()


async def test_a_large_job_travels_alone(
    say: Say, server: TinyServer, held: threading.Thread
) -> None:
    handle = await say.aenqueue("x" * gathering.JOB_BYTES_MAX)
    assert server.paths() == ["POST /v1/jobs"] * 2
    assert len(said(server, handle)) == gathering.JOB_BYTES_MAX


async def test_connections_are_few_and_kept(say: Say, server: TinyServer) -> None:
    for _ in range(3):
        await asyncio.gather(*await gathered(say, [f"t{n}" for n in range(200)]))
    assert len(server.jobs) == 600
    assert server.connections <= gathering.CALLS_MAX


async def test_a_name_with_a_line_end_begins_no_header(server: TinyServer) -> None:
    say = say_of(App("ü\r\nX-Evil: 1", url=server.url, api_key=API_KEY))
    await say.aenqueue("a")
    assert "x-evil" not in server.requests[0].headers
    await say.app.aclose()


async def test_what_the_server_says_beside_http_is_told(server: TinyServer) -> None:
    async def not_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9\r\n\r\n")

    other = await asyncio.start_server(not_http, "127.0.0.1", 0)
    port = other.sockets[0].getsockname()[1]
    say = say_of(App("x", url=f"http://127.0.0.1:{port}", patience="300ms"))
    with pytest.raises(Unreachable, match="not HTTP"):
        await say.aenqueue("a")
    other.close()
    await say.app.aclose()


# -- processes ----------------------------------------------------------------------------------

PROGRAM = """
import asyncio, atexit, os, sys, threading, time
from fairway import App
app = App("x", url=sys.argv[1], api_key=sys.argv[2])

@app.job()
def say(text: str) -> None: ...
"""


def run_program(
    text: str, server: TinyServer, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + text, server.url, API_KEY],
        timeout=60, env={**os.environ, **environment}, check=False, capture_output=True, text=True,
    )  # fmt: skip


FORKING = """
threads = [threading.Thread(target=say.enqueue, args=("parent",), daemon=True) for _ in range(8)]
say.enqueue("parent")
line = app.client._coalescer._line
for thread in threads: thread.start()
while sum(map(len, line._calls.values())) + len(line._waiting) < 8: time.sleep(0.01)
child = os.fork()
say.enqueue("child" if not child else "parent")
asyncio.run(say.aenqueue("child" if not child else "parent"))
if child:
    for thread in threads: thread.join()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_while_jobs_are_under_way_sends_none_twice(server: TinyServer) -> None:
    server.moods.extend(["", "hold", "hold"])
    let_go = threading.Timer(3, server.let_go)
    let_go.start()
    done = run_program(FORKING, server)
    let_go.join()
    assert (done.returncode, done.stderr) == (0, "")
    texts = sorted(job["payload"]["text"] for job in server.jobs.values())
    assert texts == ["child"] * 2 + ["parent"] * 11


EXITS = {
    "a call that hangs": "threading.Thread(target=say.enqueue, args=('a',), daemon=True).start()",
    "a task that is left": """
async def leave():
    asyncio.create_task(say.aenqueue("a"))
    await asyncio.sleep(0.2)
asyncio.run(leave())
""",
    "the end of the program": """
def late():
    try: say.enqueue("too late")
    except Exception as error: print(type(error).__name__)
atexit.register(late)
app.client; say.enqueue("a")
""",
}


@pytest.mark.parametrize("how", EXITS)
def test_a_program_ends_in_time_and_in_silence(server: TinyServer, how: str) -> None:
    server.moods.extend(["" if how == "the end of the program" else "hold"])
    begun = time.monotonic()
    done = run_program(EXITS[how] + "\ntime.sleep(0.5)\n", server)
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - begun < 12
    assert done.stdout in ("", "Unreachable\n")


# -- ways to the server -----------------------------------------------------------------------


async def test_a_proxy_is_gone_through(server: TinyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url)
    monkeypatch.setenv("NO_PROXY", "localhost")
    say = say_of(App("x", url="http://far.example", api_key=API_KEY))
    seen: list[str] = []
    monkeypatch.setattr(server, "_work", _noting(seen, server._work))
    await say.aenqueue("a")
    assert seen == ["http://far.example/v1/jobs"]
    await say.app.aclose()


def _noting(
    seen: list[str], work: Callable[[Any], Awaitable[Any]]
) -> Callable[[Any], Awaitable[Any]]:
    async def noting(request: Any) -> Any:
        seen.append(request.path)
        request.path = request.path.removeprefix("http://far.example")
        return await work(request)

    return noting


@pytest.fixture
def behind_tls(tmp_path: Path) -> Iterator[tuple[TinyServer, str]]:
    """A server, and the file with the certificate that it shows."""
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server = TinyServer(tls=tls)
    server.start()
    yield server, certificate
    server.stop()


async def test_tls(behind_tls: tuple[TinyServer, str], monkeypatch: pytest.MonkeyPatch) -> None:
    server, certificate = behind_tls
    distrusts = say_of(App("x", url=server.url, api_key=API_KEY, patience="2s"))
    with pytest.raises(Unreachable, match=r"(?i)certificate.verify"):
        await distrusts.aenqueue("a")
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    trusts = say_of(App("x", url=server.url, api_key=API_KEY))
    handles = await asyncio.gather(*await gathered(trusts, FEW))
    assert [said(server, handle) for handle in handles] == FEW
    await trusts.app.aclose()


async def test_a_job_belongs_to_the_trace_it_was_handed_in_from(
    server: TinyServer, say: Say, held: threading.Thread
) -> None:
    """Each its own, whichever call it travels in; and those of a batch."""
    traces = [f"00-{number:032x}-{number:016x}-01" for number in (1, 2)]

    async def within(trace: str, text: str) -> None:
        attached = attach(trace)
        await say.aenqueue(text)
        detach(attached)

    together = asyncio.gather(*(within(trace, trace) for trace in traces), say.aenqueue("none"))
    await asyncio.sleep(0)
    server.let_go()
    await together
    held.join()
    sent = [one for one in server.requests if "traceparents" in one.json]
    found = {
        job["payload"]["text"]: trace
        for one in sent
        for job, trace in zip(one.json["jobs"], one.json["traceparents"], strict=True)
    }
    alone = {
        one.json["payload"]["text"]: one.headers.get("traceparent", "")
        for one in server.requests
        if "payload" in one.json
    }
    assert {**alone, **found} == {
        "first": "",
        "none": "",
        traces[0]: traces[0],
        traces[1]: traces[1],
    }
    await asyncio.to_thread(_in_a_trace, say, traces[0])
    assert server.requests[-1].json["traceparents"] == [traces[0]] * 2


def _in_a_trace(say: Say, trace: str) -> None:
    attached = attach(trace)
    say.enqueue_many([("a",), ("b",)])
    detach(attached)
