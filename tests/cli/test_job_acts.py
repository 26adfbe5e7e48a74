"""`fairway jobs submit`, `watch`, `tail`, `move`, and every form of an answer."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path

import pytest
from asyncpg import CheckViolationError
from tests.api.house import House
from tests.cli.program import Run, said, sentence
from tests.postgres import connected, in_thread

from fairway.cli.main import _unexpected

PROGRAM = Path(sys.executable).parent / "fairway"


def test_a_job_is_handed_in_moved_and_watched_to_its_end(run: Run) -> None:
    words = ["jobs", "submit", "cli.mail", "to=ada", "count=3", "late=true", "--delay", "1h"]
    id_ = run(*words, "--idempotency-key", "once").out.strip()
    assert run(*words, "--idempotency-key", "once").out.strip() == id_
    job = said(run("jobs", "show", id_, "--json"))
    assert job["payload"] == {"to": "ada", "count": 3, "late": True}
    assert job["state"] == "scheduled"
    assert ", in 2 h." in run("jobs", "move", id_, "--delay", "2h1m").out
    assert said(run("jobs", "show", id_, "--json"))["execute_at"] > job["execute_at"]
    assert "Say when" in sentence(run("jobs", "move", id_))
    assert run("jobs", "cancel", id_).out == "cancelled\n"
    watched = run("jobs", "watch", id_)
    assert (watched.status, watched.err) == (1, ""), "it did not succeed"
    assert watched.out.split()[1:] == [id_, "cancelled", "cli.mail"]


def test_arguments_that_are_none_are_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text('{"a": 1}')
    id_ = run("jobs", "submit", "cli.file", "--payload", "@all.json").out.strip()
    assert said(run("jobs", "show", id_, "--json"))["payload"] == {"a": 1}
    wrong = [
        (["a"], "name=value, or all of them as --payload '{…}'"),
        (["--payload", "{"], "--payload is no JSON"),
        (["a=1", "--payload", "{}"], "not both"),
        (["--delay", "soon"], "--delay: 'soon'"),
    ]
    for words, part in wrong:
        assert part in sentence(run("jobs", "submit", "cli.file", *words))


def test_the_same_answer_in_every_form(run: Run, job: str) -> None:
    words = ["jobs", "ls", "--since", "1h", "--type", "cli.work", "--limit", "1"]
    assert said(run(*words, "-o", "json"))["jobs"][0]["id"] == job
    (line,) = run(*words, "-o", "jsonl").out.splitlines()
    assert json.loads(line)["id"] == job
    (row,) = csv.DictReader(io.StringIO(run(*words, "--output", "csv").out))
    assert (row["id"], row["state"], json.loads(row["failures"])) == (job, "queued", {})
    assert "--since soon" in sentence(run("jobs", "ls", "--since", "soon"))


@pytest.fixture
def access(house: House, acme: tuple[str, str]) -> Mapping[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "FAIRWAY_URL": house.url,
        "FAIRWAY_API_KEY": acme[1],
        "TERM": "xterm",
    }


def test_a_narrow_screen_cuts_no_id(access: Mapping[str, str], job: str, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 64, 0, 0))
    words = [str(PROGRAM), "jobs", "ls", "--limit", "1"]
    asking = subprocess.Popen(words, cwd=tmp_path, env=access, stdout=theirs, stderr=theirs)
    os.close(theirs)
    out = b""
    try:
        while part := os.read(ours, 4096):
            out += part
    except OSError:  # Linux says so when the last writer has gone
        pass
    assert asking.wait(60) == 0
    heading, row, note, more = out.decode().replace("\r", "").splitlines()
    assert heading.startswith("\x1b[1mid")
    assert row.split()[:3] == [job, "cli.work", "queued"]
    assert len(row) <= 64
    assert "no room for: pool, attempts, ran, due" in note
    assert "the newest 1; --limit shows more" in more


def test_jobs_that_come_are_seen_until_ctrl_c(
    access: Mapping[str, str], run: Run, job: str, tmp_path: Path
) -> None:
    tailing = subprocess.Popen(
        [PROGRAM, "jobs", "tail", "--type", "cli.work", "-o", "jsonl"],
        cwd=tmp_path,
        env=dict(access) | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert tailing.stdout is not None
    while json.loads(tailing.stdout.readline())["id"] != job:  # of tests before
        pass
    fresh = run("jobs", "submit", "cli.work").out.strip()
    assert json.loads(tailing.stdout.readline())["id"] == fresh
    tailing.send_signal(signal.SIGINT)
    assert tailing.communicate(timeout=30)[1] == ""
    assert tailing.returncode == 130


def test_who_reads_no_further_is_no_error(access: Mapping[str, str], tmp_path: Path) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", f"{{ {PROGRAM} jobs ls; echo $? >&2; }} | true"],
        cwd=tmp_path,
        env=access,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == "141\n"


def test_no_report_quotes_a_row_of_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    """It may be of any table, with secrets in it, and reports are sent to others."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ValueError, match="secret of row") as raised:
        in_thread(_violate(database_url))
    words = _unexpected(raised.value)
    (kept,) = tmp_path.iterdir()
    stack = kept.read_text()
    assert "CheckViolationError" in stack
    assert "while it was made" in stack
    assert "DETAIL: [redacted]" in stack
    assert "secret of row" not in words + stack


async def _violate(dsn: str) -> None:
    async with connected(dsn) as connection:
        await connection.execute("CREATE TEMP TABLE cluster (seats int CHECK (seats > 0), s text)")
        try:
            row = (0, "of two lines\n\n" + " ".join(("secret", "of", "row")))
            await connection.execute("INSERT INTO cluster VALUES ($1, $2)", *row)
        except CheckViolationError as error:
            raise ValueError(f"while it was made: {error}") from error


def test_what_nobody_thought_of_is_a_sentence_with_the_stack_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    try:
        raise KeyError("strange")
    except KeyError as error:
        words = _unexpected(error)
    assert words.startswith("fairway: KeyError: 'strange'.")
    (kept,) = tmp_path.iterdir()
    assert str(kept) in words
    assert "raise KeyError" in kept.read_text()
