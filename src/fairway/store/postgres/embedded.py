"""The embedded PostgreSQL: one life, from the first start to the last stop.

    start   lock the folder → make the cluster once → adopt the postmaster that a killed Fairway
            left, or clear up after a dead one → launch → wait until it answers
    stop    fast shutdown, and an immediate one if that takes too long or is not waited for

It waits without a limit while PostgreSQL lives, since a recovery takes what it takes, and fails at
once when it ends. It listens on a Unix socket only, and never trades durability for speed.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import asyncpg

from fairway.core.errors import Unavailable
from fairway.store.postgres.binaries import CACHE_DIR, Binaries, usable_binaries
from fairway.store.postgres.data_folder import (
    DataFolder,
    check_version,
    claim,
    socket_dir,
    take_lock,
)
from fairway.store.postgres.initdb import ROLE, create_cluster, launch, write_settings
from fairway.store.postgres.os_user import account_for
from fairway.store.postgres.postmaster import find_running, is_ready, read_pid_file
from fairway.store.postgres.processes import Process

DATABASE = "fairway"
LOOK_SECONDS = 0.02
TELL_SECONDS = 2.0
ANSWER_SECONDS = 10.0
FAST_STOP_SECONDS = 60.0
LOG_TAIL_BYTES = 4096
LOG_TAIL_LINES = 15
NOT_YET = (OSError, asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError)


class EmbeddedPostgres:
    """`start` returns a connection string; start again after an unexpected end."""

    def __init__(
        self,
        data_dir: Path,
        postgres_bin: Path | None = None,
        cache_dir: Path = CACHE_DIR,
        in_child: Callable[[], None] | None = None,
        processes: int = 1,
    ) -> None:
        """`in_child` is called in the new process before PostgreSQL is: to tie it to ours.

        It has room for the connections of so many `processes` of a server.
        """
        self._root = data_dir.resolve()
        self._postgres_bin = postgres_bin
        self._cache_dir = cache_dir
        self._in_child = in_child
        self._processes = processes
        self._lock: int | None = None
        self._postmaster: Process | None = None
        self._stopping = False
        self._report: Callable[[str], None] = _say_nothing

    @property
    def pid(self) -> int | None:
        """The postmaster's number while it lives."""
        return self._postmaster.pid if self._postmaster and self._postmaster.alive else None

    async def start(self, report: Callable[[str], None]) -> str:
        """Bring PostgreSQL up and return where to connect; `report` hears what takes long."""
        self._report, self._stopping = report, False
        if self.pid is None:
            self._let_go()
            try:
                await self._start()
            except BaseException:
                await self.stop()
                raise
        return self._address(DATABASE)

    async def stop(self, at_once: asyncio.Event | None = None) -> None:
        """End PostgreSQL and let go of the folder. Safe to call twice, or before any start.

        When `at_once` is set it is not waited for: the next start recovers.
        """
        self._stopping = True
        if self._postmaster is not None:
            await self._end(self._postmaster, at_once or asyncio.Event())
            self._postmaster = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def address_in_use(self) -> str | None:
        """Where the PostgreSQL of whoever holds the folder takes connections; None if it does not.

        For those who only look: they start nothing, so they stop nothing either.
        """
        record = read_pid_file(self._root / "pgdata")
        is_ready_now = record is not None and record.status == "ready"
        return self._address(DATABASE) if is_ready_now else None

    async def wait(self) -> str:
        """Return when PostgreSQL has ended: why, or nothing if it was told to."""
        postmaster = self._postmaster
        if postmaster is not None:
            await postmaster.ended()
        if self._stopping or postmaster is None:
            return ""
        return f"PostgreSQL (pid {postmaster.pid}) ended by itself. It said:\n{self._log_tail()}"

    async def _start(self) -> None:
        folder = claim(self._root, account_for(self._root))
        if self._lock is None:
            self._lock = take_lock(folder)
        binaries = await asyncio.to_thread(
            usable_binaries, self._postgres_bin, folder.account, self._cache_dir
        )
        if not folder.cluster.exists():
            self._report(f"Making a new PostgreSQL {binaries.major} database in {self._root}")
            await asyncio.to_thread(create_cluster, folder, binaries)
        check_version(folder, binaries.major)
        crashed = read_pid_file(folder.cluster) is not None
        if not await self._adopt(folder):
            await self._launch(folder, binaries, crashed)

    async def _adopt(self, folder: DataFolder) -> bool:
        """Use a postmaster that is already there, unless it ends before it answers."""
        while running := await find_running(folder.cluster, self._report):
            self._report(f"Taking over the PostgreSQL that was left running (pid {running.pid})")
            self._postmaster = running
            if await self._answers(running, "has yet to answer"):
                return True
            self._let_go()
        return False

    async def _launch(self, folder: DataFolder, binaries: Binaries, crashed: bool) -> None:
        write_settings(folder, self._processes)
        begin = folder.log.stat().st_size if folder.log.exists() else 0
        self._postmaster = launch(folder, binaries, socket_dir(folder), self._in_child)
        doing = "is recovering from a crash" if crashed else "is starting"
        if not await self._answers(self._postmaster, doing):
            raise Unavailable(f"PostgreSQL did not start. It said:\n{self._log_tail(begin)}")

    async def _answers(self, postmaster: Process, doing: str) -> bool:
        """Wait until it takes connections, for as long as it lives; False when it ends first."""
        loop = asyncio.get_running_loop()
        begin = told = loop.time()
        while not await postmaster.ended(within_seconds=LOOK_SECONDS):
            if is_ready(self._root / "pgdata", postmaster.pid) and await self._ensure_database():
                return True
            if loop.time() - told >= TELL_SECONDS:
                told = loop.time()
                self._report(f"PostgreSQL {doing}, {told - begin:.0f} s so far{self._last_word()}")
        return False

    async def _ensure_database(self) -> bool:
        """Connect, and make our database if it is the first time; False if it cannot answer yet."""
        try:
            connection = await asyncpg.connect(self._address("postgres"), timeout=ANSWER_SECONDS)
        except NOT_YET:
            return False
        try:
            known = "SELECT 1 FROM pg_database WHERE datname = $1"
            if not await connection.fetchval(known, DATABASE):
                await connection.execute(f"CREATE DATABASE {DATABASE}")
        finally:
            await connection.close()
        return True

    async def _end(self, postmaster: Process, at_once: asyncio.Event) -> None:
        postmaster.send(signal.SIGCONT)  # one that was paused would hear nothing
        postmaster.send(signal.SIGINT)
        ending = asyncio.create_task(postmaster.ended(within_seconds=FAST_STOP_SECONDS))
        asked = asyncio.create_task(at_once.wait())
        await asyncio.wait({ending, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not ending.done() or not ending.result():
            if ending.done():
                self._report(f"PostgreSQL does not stop within {FAST_STOP_SECONDS:.0f} s")
            postmaster.send(signal.SIGCONT)
            postmaster.send(signal.SIGQUIT)
            await postmaster.ended()
            await ending
        postmaster.release()

    def _let_go(self) -> None:
        if self._postmaster is not None:
            self._postmaster.release()
            self._postmaster = None

    def _address(self, database: str) -> str:
        """Where it listens, in its own words: it may have been started by another release."""
        record = read_pid_file(self._root / "pgdata")
        if record is None:
            raise Unavailable("PostgreSQL ended before anyone could connect to it.")
        return f"postgresql://{ROLE}@/{database}?host={record.socket_dir}&port={record.port}"

    def _last_word(self) -> str:
        tail = self._log_tail().splitlines()
        return f" (last log line: {tail[-1]})" if tail else ""

    def _log_tail(self, begin_bytes: int = 0) -> str:
        try:
            with (self._root / "postgres.log").open("rb") as log:
                end_bytes = log.seek(0, os.SEEK_END)
                log.seek(max(begin_bytes, end_bytes - LOG_TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return "\n".join(lines[-LOG_TAIL_LINES:])


def _say_nothing(message: str) -> None:
    """The listener before there is one."""
