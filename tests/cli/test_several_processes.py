"""`--processes`: of `fairway up`, where PostgreSQL has no room for them, and their parts."""

from __future__ import annotations

import json
import os
import pty
import socket
from pathlib import Path

from tests.cli.program import fairway
from tests.cli.test_up import APP, Started

from fairway.cli.processes.process_part import of_one_process
from fairway.runtime.settings import Settings

MB = 1 << 20


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def test_two_processes_of_up_are_one_platform_and_end_together(
    tmp_path: Path, database_url: str
) -> None:
    (tmp_path / "shop.py").write_text(APP.format(name="pack"))
    words = ("shop:app", "--processes", "2", "--pool", "short=2")
    terminal, theirs = pty.openpty()
    given = {"nohup_at": os.ttyname(theirs), "FAIRWAY_DATABASE_URL": database_url}
    started = Started(tmp_path, free_port(), *words, **given)
    started.says('"worker ready"')
    assert started.said.count("Fairway is up") == 1, "one speaks for all"
    for _ in range(6):
        ran = fairway(tmp_path, "jobs", "submit", "pack", "--wait", "--json")
        assert json.loads(ran.out.splitlines()[-1])["state"] == "succeeded", ran
    servers = json.loads(fairway(tmp_path, "servers", "--json").out)["items"]
    assert sorted(one["name"].split("-")[1][0] for one in servers) == ["1", "2"]
    owned = {one["state"]: one["shards"] for one in servers}
    assert owned == {"live": 64, "standby": 0}
    started.hang_up()  # restarts them one by one: `nohup` is not to end, and does not
    started.says('"event": "servers restarted"')
    assert started.said.count("Fairway is up") == 1, "with no further sign-in code"
    assert started.said.count('"event": "server ready"') == 2
    assert started.ctrl_c() == 0, started.said
    os.close(terminal)
    os.close(theirs)
    lines = [json.loads(line) for line in started.said.splitlines() if line.startswith("{")]
    assert not [one for one in lines if one["level"] == "error"], started.said


def test_more_processes_than_postgresql_has_connections_for_are_refused_in_a_sentence(
    tmp_path: Path, database_url: str
) -> None:
    words = ("server", "--processes", "64", "--port", str(free_port()))
    ended = fairway(tmp_path, *words, FAIRWAY_DATABASE_URL=database_url)
    assert ended.status == 1
    sentence = next(line for line in ended.err.splitlines() if "connections" in line)
    assert "one server with 64 processes needs 709; raise max_connections to 1418" in sentence
    assert "run fewer processes (FAIRWAY_SERVER_PROCESSES)" in sentence
    assert "Traceback" not in ended.err


def test_memory_is_that_of_a_server_however_many_processes_it_has() -> None:
    alone = Settings()
    assert of_one_process(alone) == alone
    part = of_one_process(Settings(server_processes=4))
    assert (part.body_room_bytes_max, part.unread_bytes_max) == (128 * MB, 64 * MB)
    assert (part.window_bytes, part.window_jobs, part.connections_max) == (16 * MB, 37_500, 5000)
    small = of_one_process(Settings(server_processes=64, unread_bytes_max=8 * MB))
    assert small.body_room_bytes_max == 4 * small.body_bytes_max
    assert small.unread_bytes_max == 8 * MB, "never more than was said"
