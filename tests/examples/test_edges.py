"""The example services at their edge: bodies within a limit, no input that answers with a stack.

No platform is there: whatever gets past the edge would show as 503.
"""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
import uvicorn
from examples.judge.jobs import app as judge_app
from examples.judge.service import Service as JudgeService
from examples.judge.settings import Settings as JudgeSettings
from examples.scoring.service import Service as ScoringService
from examples.scoring.settings import load
from starlette.applications import Starlette
from tests.sdk.tiny_server import API_KEY, Reply, TinyServer, problem

from fairway.sdk.http.settings import ClientSettings

LONG_DIGITS = base64.urlsafe_b64encode(b"9" * 30 + b":abc").decode().rstrip("=")


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_level="error", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture
def scoring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("FAIRWAY_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("FAIRWAY_API_KEY", "fw_none")
    with served(ScoringService(load({"SCORING_DATA": str(tmp_path)})).build()) as url:
        yield url


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("FAIRWAY_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("FAIRWAY_API_KEY", "fw_none")
    with served(JudgeService(JudgeSettings(str(tmp_path / "store"), 0)).build()) as url:
        yield url


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[TinyServer]:
    """A platform that misbehaves on demand, for the judge alone."""
    server = TinyServer()
    server.start()
    settings = ClientSettings(url=server.url, api_key=API_KEY)
    monkeypatch.setitem(judge_app.__dict__, "settings", settings)
    monkeypatch.delitem(judge_app.__dict__, "client", raising=False)
    monkeypatch.setattr(judge_app, "_patience_seconds", 0.2)
    yield server
    judge_app.__dict__.pop("client", None)
    server.stop()


def is_problem(reply: httpx2.Response, status: int) -> None:
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"


def test_what_scoring_cannot_use_is_told_so(scoring: str) -> None:
    with httpx2.Client(base_url=scoring, trust_env=False, timeout=20) as http:
        deep = b'{"candidate":"A","payload":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
        is_problem(http.post("/applications", content=deep), 422)
        good = {"candidate": "A", "payload": 1}
        long_key = {"idempotency-key": "k" * 300}
        is_problem(http.post("/applications", json=good, headers=long_key), 400)
        is_problem(http.get("/applications/%00"), 404)
        is_problem(http.get(f"/leaderboard?cursor={LONG_DIGITS}"), 422)
        is_problem(http.get("/leaderboard?limit=" + "9" * 5000), 422)
        is_problem(http.get("/leaderboard?limit=٣"), 422)


def test_what_the_judge_cannot_use_is_told_so(judge: str) -> None:
    with httpx2.Client(base_url=judge, trust_env=False, timeout=20) as http:
        is_problem(http.get("/submissions/%00"), 404)
        is_problem(http.get("/submissions/%00/events"), 404)
        is_problem(http.post("/submissions", content=b"[" * 50_000), 422)


def test_a_verdict_is_waited_for_while_the_platform_does_not_answer(
    tiny: TinyServer, tmp_path: Path
) -> None:
    """The stream goes on, and nobody is asked more often than once a second."""
    job = tiny._accept({"type": "judge.python", "pool": "python"})
    away = [Reply(503, problem("UNAVAILABLE", 503)) for _ in range(100)]
    with (
        served(JudgeService(JudgeSettings(str(tmp_path / "store"), 0)).build()) as url,
        httpx2.Client(base_url=url, trust_env=False, timeout=20) as http,
        http.stream("GET", f"/submissions/{job}/events") as stream,
    ):
        seen = (line[5:] for line in stream.iter_lines() if line.startswith("data:"))
        assert json.loads(next(seen))["status"] == "queued"
        tiny.moods.extend(away)
        asked, began = len(tiny.requests), time.monotonic()
        while len(tiny.moods) > len(away) - 2:
            assert time.monotonic() - began < 20
            time.sleep(0.05)
        time.sleep(1)
        seconds = time.monotonic() - began
        assert len(tiny.requests) - asked < 20 * seconds  # tries within its patience are many
        tiny.finish(job, result={"verdict": "accepted"})
        tiny.moods.clear()
        view = json.loads(next(seen))
    assert (view["status"], view["verdict"]) == ("judged", "accepted")


@pytest.mark.parametrize(
    ("fixture", "path"), [("scoring", "applications"), ("judge", "submissions")]
)
@pytest.mark.parametrize("declared", [True, False])
def test_a_body_is_refused_before_it_is_read_whole(
    request: pytest.FixtureRequest, fixture: str, path: str, declared: bool
) -> None:
    at = urlsplit(request.getfixturevalue(fixture))
    size, part = 100 << 20, b"x" * (1 << 20)
    length = f"content-length: {size}" if declared else "transfer-encoding: chunked"
    sent, reply = 0, b""
    with socket.create_connection((at.hostname or "", at.port or 0), timeout=20) as connection:
        connection.sendall(f"POST /{path} HTTP/1.1\r\nhost: x\r\n{length}\r\n\r\n".encode())
        deadline = time.monotonic() + 20
        try:
            while sent < size and time.monotonic() < deadline:
                connection.sendall(part if declared else b"100000\r\n" + part + b"\r\n")
                sent += len(part)
            reply = connection.recv(1 << 16)
        except ConnectionError:
            pass  # closed while we spoke: it has heard enough
    assert sent < size // 2
    assert not reply or b" 413 " in reply
