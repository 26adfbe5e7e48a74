"""`fairway top` against a real server: one screen, both kinds of keys, a live one that q ends."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from tests.api.house import NO_TLS, House
from tests.cli.program import Run, said, sentence


@pytest.fixture(scope="module", autouse=True)
def overview(house: House) -> None:
    """A server that has only just begun has none yet."""
    headers = {"authorization": f"Bearer {house.operator_key}"}
    ends_at = time.monotonic() + 60
    with httpx2.Client(base_url=house.url, headers=headers, verify=NO_TLS) as client:
        while client.get("/v1/overview").status_code != 200:
            assert time.monotonic() < ends_at
            time.sleep(0.1)


def test_one_screen_of_the_platform(run: Run, job: str) -> None:
    ended = run("top", "--once", COLUMNS="80")
    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert "Fairway" in lines[0]
    assert any(line.startswith("short") for line in lines)
    assert any("shards" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_one_screen_of_a_tenant(run: Run, acme: tuple[str, str]) -> None:
    ended = run("top", "--once", FAIRWAY_OPERATOR_KEY="", COLUMNS="80")
    assert (ended.status, ended.err) == (0, "")
    assert f"{acme[0]} at http" in ended.out
    assert "shards" not in ended.out


def test_programs_get_what_the_server_said(run: Run) -> None:
    overview = said(run("top", "--json"))
    assert overview["health"]["status"] in ("ok", "warning", "critical")
    assert "alarms" in overview


def test_a_server_that_is_away_is_a_sentence(run: Run) -> None:
    assert "No server answers" in sentence(run("top", "--once", "--url", "http://127.0.0.1:1"))


def test_it_stays_until_q(house: House, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "FAIRWAY_URL": house.url}
    program = subprocess.Popen(
        [Path(sys.executable).parent / "fairway", "top"],
        cwd=tmp_path,
        env=environment | {"FAIRWAY_OPERATOR_KEY": house.operator_key},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    try:
        _read_until(ours, b"short")
        os.write(ours, b"q")
        assert program.wait(60) == 0
    finally:
        program.kill()
        program.wait()
        os.close(ours)
        os.close(theirs)


def _read_until(line: int, wanted: bytes) -> None:
    seen, ends_at = b"", time.monotonic() + 60
    while wanted not in seen:
        assert time.monotonic() < ends_at, seen
        if select.select([line], [], [], 1)[0]:
            seen += os.read(line, 65536)
