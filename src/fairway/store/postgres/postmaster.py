"""What an earlier PostgreSQL left in its data folder: a live postmaster, orphans, a stale file.

The postmaster's working folder is its data folder, and so is that of every process it forks:
that, with a command line of PostgreSQL, is how we know our own. A number in `postmaster.pid`
proves nothing, for numbers are reused. This file ends no process that it cannot prove ours, and
removes the files of a dead postmaster only when no process of the folder lives.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from fairway.core.errors import Unavailable
from fairway.store.postgres.processes import Process, hold

Report = Callable[[str], None]

ORPHAN_GRACE_SECONDS = 3.0  # backends notice a dead postmaster at once, unless they are computing


class PidFile(NamedTuple):
    """`postmaster.pid`, the lines that matter to us."""

    pid: int  # negative while a single-user PostgreSQL works on the folder
    port: int
    socket_dir: str
    status: str  # starting, ready, stopping; empty while the file is being written


def read_pid_file(data_folder: Path) -> PidFile | None:
    """The pid file, or None when there is none; missing lines read as empty."""
    try:
        text = (data_folder / "postmaster.pid").read_text(errors="replace")
    except FileNotFoundError:
        return None
    lines = [line.strip() for line in text.splitlines()] + [""] * 8
    return PidFile(_number(lines[0]), _number(lines[3]), lines[4], lines[7])


def is_ready(data_folder: Path, pid: int) -> bool:
    """Whether this very postmaster says that it takes connections."""
    record = read_pid_file(data_folder)
    return record is not None and record.pid == pid and record.status == "ready"


def mark_of(data_folder: Path) -> str:
    """The name of this folder's PostgreSQL in the list of processes (its `cluster_name`)."""
    facts = data_folder.stat()
    return f"fairway-{facts.st_dev:x}-{facts.st_ino:x}"


async def find_running(data_folder: Path, report: Report) -> Process | None:
    """The live postmaster of the folder; or None, after all that a dead one left is gone."""
    record = read_pid_file(data_folder)
    running = _held(data_folder, abs(record.pid)) if record else None
    if record and running and record.pid < 0:
        raise Unavailable(f"A single-user PostgreSQL (pid {running.pid}) uses {data_folder}.")
    if running:
        return running
    await _end_orphans(data_folder, report)
    if record:
        report(
            f"The last PostgreSQL (pid {record.pid}) did not stop cleanly; removing its pid file"
        )
        _remove_leftovers(data_folder, record)
    return None


def _held(data_folder: Path, pid: int) -> Process | None:
    process = hold(pid) if _is_postgres_of(data_folder, pid) else None
    if process is None or _is_postgres_of(data_folder, pid):  # asked again: now it is held
        return process
    process.release()
    return None


async def _end_orphans(data_folder: Path, report: Report) -> None:
    """Wait for backends without a postmaster, then end them: they still hold its memory."""
    for pid in _processes_of(data_folder):
        orphan = _held(data_folder, pid)
        if orphan is None:
            continue
        report(f"Waiting for pid {pid}, a process of the last PostgreSQL, to end")
        while not await orphan.ended(within_seconds=ORPHAN_GRACE_SECONDS):
            report(f"Ending pid {pid}, which outlived its PostgreSQL")
            orphan.send(signal.SIGQUIT)
        orphan.release()


def _remove_leftovers(data_folder: Path, record: PidFile) -> None:
    """The socket has a lock file with the same number: a decoy would hold that one too."""
    (data_folder / "postmaster.pid").unlink(missing_ok=True)
    if record.socket_dir:
        socket = Path(record.socket_dir, f".s.PGSQL.{record.port}")
        socket.unlink(missing_ok=True)
        Path(f"{socket}.lock").unlink(missing_ok=True)


def _processes_of(data_folder: Path) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and _is_postgres_of(data_folder, int(entry.name)):
            yield int(entry.name)


def _is_postgres_of(data_folder: Path, pid: int) -> bool:
    command = _command_of(pid)
    program = command.split("\0")[0]
    if not program.startswith("postgres:") and os.path.basename(program) != "postgres":
        return False  # an operator's shell may well stand in the folder
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", data_folder)
    except PermissionError:
        # Root in a container may lack the right to look at another account's working folder.
        return str(data_folder) in command.split("\0") or f"{mark_of(data_folder)}:" in command
    except OSError:
        return False  # it ended while we looked


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _number(text: str) -> int:
    return int(text) if text.lstrip("-").isdecimal() else 0
