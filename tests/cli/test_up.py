"""`fairway up` with an app that is not there or does not load: it ends, and says why."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
import weakref
from pathlib import Path

import pytest
from tests.cli.program import fairway

from fairway.cli.processes import app_check
from fairway.cli.processes.companions import Sources


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["typo:app"], "there is no module 'typo' (looked from {folder})."),
        (["typo.py:app"], "there is no file typo.py (looked from {folder})."),
        (["json.typo:app"], "there is no module 'json.typo' (looked from {folder})."),
        (["this:app"], "this has no 'app'; it has c, d, i, s."),
        (["--beside", "json.typo"], "there is no module 'json.typo' (looked from {folder})."),
        (["typo"], "'typo' is not of the form 'module:name' or 'file.py:name'."),
        (
            ["--pool", "short=many", "sample:app"],
            "--pool short=many: slots must be a number, as in short=8.",
        ),
        (
            ["--processes", "999"],
            "The settings are not right:\n  FAIRWAY_SERVER_PROCESSES (--processes) goes from 0 to"
            " 64.",
        ),
        (
            ["--beside", "json.tool", "sample:app"],
            "--beside sample:app: this is an app; name apps before --beside.",
        ),
        (
            ["this:c", "this:d", "--autoscale"],
            "--autoscale is for one app, and these are 2: workers of a pool stand for each other,"
            " so one app could be left waiting. Put their jobs into one app.",
        ),
    ],
)
def test_a_slip_is_said_before_anything_is_started(
    tmp_path: Path, words: list[str], sentence: str
) -> None:
    ended = fairway(tmp_path, "up", *words)
    assert ended.status == 1
    assert ended.err == f"fairway: {sentence.format(folder=tmp_path)}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "import a_library_that_is_not_there as app\n",
            "No module named 'a_library_that_is_not_th",
        ),
        ("import a_library_that_is_not_there\n", "No module named 'a_library_that_is_not_there'"),
        ("from fairway import App\napp = App('s', ulr='http://x')\n", "argument 'ulr'"),
        ("app = (\n", "SyntaxError: '(' was never closed"),
        ("def app(): ...\n", "broken:app is a function, not a fairway.App"),
    ],
)
def test_an_app_that_cannot_be_loaded_is_told_once_before_anything_is_started(
    tmp_path: Path, text: str, words: str
) -> None:
    """It was told twice, below a platform that had been made for it and said to be up."""
    (tmp_path / "broken.py").write_text(text)
    ended = fairway(tmp_path, "up", "broken:app", "--port", "1")
    assert ended.status == 1
    assert ended.err.count(words) == 1, ended.err
    last = ended.err.splitlines()[-1]
    assert last == "fairway: broken:app cannot be loaded; see the words above."
    assert {one.name for one in tmp_path.iterdir()} <= {"broken.py", "__pycache__"}


def test_an_app_that_only_its_worker_can_judge_is_told_once_by_that(
    tmp_path: Path, database_url: str
) -> None:
    """It may want something of a platform that was not there yet; its schedules are no other's."""
    (tmp_path / "broken.py").write_text("raise OSError('the platform does not answer me')\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    ended = fairway(tmp_path, "up", "broken:app", "--port", port, FAIRWAY_DATABASE_URL=database_url)
    assert ended.status == 1
    assert "Fairway is up" in ended.err + ended.out
    assert ended.err.count("OSError: the platform does not answer me") == 1, ended.err
    assert "schedules were not synced" not in ended.err
    assert "starting it again" not in ended.err
    last = ended.err.splitlines()[-1]
    assert last == "fairway: broken:app cannot be loaded; see the words above."


def test_an_app_that_takes_long_to_load_is_left_to_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app_check, "CHECK_SECONDS", 0.5)
    text = "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\n"
    (tmp_path / "slow.py").write_text(f"{text}time.sleep(60)\nnothing\n")
    began = time.monotonic()
    app_check.check_apps(["slow:app"], os.environ)
    assert time.monotonic() - began < 30
    if (pid := tmp_path / "pid").exists():
        assert not Path("/proc", pid.read_text()).exists(), "nothing is left of it"


def test_a_pool_that_is_not_there_ends_it(tmp_path: Path, database_url: str) -> None:
    """Its worker was refused and started again for ever, while all was said to be up."""
    (tmp_path / "shop.py").write_text(APP.format(name="first"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    words = ("up", "shop:app", "--reload", "--pool", "short", "shrot=2", "--port", port)
    ended = fairway(tmp_path, *words, FAIRWAY_DATABASE_URL=database_url)
    assert ended.status == 1
    last = ended.err.splitlines()[-1]
    assert last == (
        "fairway: --pool shrot: there is no pool 'shrot'; there are short, medium, long."
    )
    assert "program ended" not in ended.err


class Started:
    """`fairway up` in a session of its own, as from a terminal: Ctrl-C reaches all of it.

    With `nohup_at`, really at that terminal, after `nohup`.
    """

    def __init__(
        self, folder: Path, port: int, *words: str, nohup_at: str = "", **environment: str
    ) -> None:
        def begin() -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if nohup_at:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
                os.close(os.open(nohup_at, os.O_RDWR))  # the session's, from now on

        self._log = folder / "up.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fairway", "up", *words, "--port", str(port)],
                cwd=folder,
                env={"PATH": "/usr/bin:/bin", **environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=begin,
            )
        weakref.finalize(self, _end, self._process)  # where a test failed before its Ctrl-C

    @property
    def said(self) -> str:
        return self._log.read_text()

    def says(self, words: str) -> None:
        ends_at = time.monotonic() + 120
        while words not in self.said:
            assert self._process.poll() is None, self.said
            assert time.monotonic() < ends_at, self.said
            time.sleep(0.02)

    def hang_up(self) -> None:
        """Tell the program alone, as `kill -HUP` does."""
        self._process.send_signal(signal.SIGHUP)

    def ctrl_c(self) -> int:
        os.killpg(self._process.pid, signal.SIGINT)
        return self._process.wait(120)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)


APP = """
from fairway import App

app = App("shop")

@app.job
def {name}() -> None: ...
"""


def test_an_app_that_is_edited_is_started_again(tmp_path: Path, database_url: str) -> None:
    """Also over a version that cannot be loaded; with the slots that were said."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    app = tmp_path / "shop.py"
    app.write_text(APP.format(name="first"))
    words = ("shop:app", "--reload", "--pool", "short=2")
    started = Started(tmp_path, port, *words, FAIRWAY_DATABASE_URL=database_url)
    started.says('"types": ["first"], "event": "worker ready"')
    app.write_text("import a_library_that_is_not_there\n")
    started.says("waiting for its sources to change")
    app.write_text(APP.format(name="second"))
    started.says('"types": ["second"], "event": "worker ready"')
    (worker,) = json.loads(fairway(tmp_path, "worker", "ls", "--json").out)["workers"]
    assert worker["slots"] == {"short": 2}
    assert started.ctrl_c() == 0, started.said


def test_sources_are_python_files_and_nothing_that_tools_leave(tmp_path: Path) -> None:
    for name in ("app.py", "inside/part.py", ".git/x.py", "venv/y.py", "__pycache__/z.py", "a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = {str(Path(name).relative_to(tmp_path)) for name in Sources(tmp_path).look()}
    assert found == {"app.py", "inside/part.py"}


def test_ctrl_c_while_the_database_is_made_leaves_a_folder_that_can_be_used(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    first = Started(tmp_path, port)
    first.says("Making a new PostgreSQL")
    time.sleep(0.5)  # into the midst of it
    assert first.ctrl_c() == 0, first.said
    assert "Fairway is up" not in first.said
    assert first.said.splitlines()[-1] == "  Stopped."
    assert not {"FATAL", "Traceback"} & set(re.findall(r"\w+", first.said))
    second = Started(tmp_path, port)
    second.says("Fairway is up")
    assert second.ctrl_c() == 0, second.said
    assert mode_of(tmp_path / ".fairway") & 0o067 == 0, "open to others than PostgreSQL's account"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_keys_are_shown_when_they_are_made_and_never_again(
    tmp_path: Path, database_url: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    data = tmp_path / ".fairway"
    first = Started(tmp_path, port, FAIRWAY_DATABASE_URL=database_url)
    first.says("Ctrl-C drains and stops.")
    assert first.ctrl_c() == 0, first.said
    keys = json.loads((data / "client.json").read_text())
    assert first.said.count(keys["api_key"]) == first.said.count(keys["operator_key"]) == 1
    assert keys["worker_key"] not in first.said
    assert (mode_of(data), mode_of(data / "client.json")) == (0o700, 0o600)
    data.chmod(0o755)  # as folders were that older versions made
    second = Started(tmp_path, port, FAIRWAY_DATABASE_URL=database_url)
    second.says("Ctrl-C drains and stops.")
    assert second.ctrl_c() == 0, second.said
    for name in ("api_key", "operator_key", "worker_key"):
        assert keys[name] not in second.said
    assert str(data / "client.json") in second.said, "where they are kept"
    assert json.loads((data / "client.json").read_text()) == keys
    assert mode_of(data) == 0o700
