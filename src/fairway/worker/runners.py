"""Runner processes as the keeper sees them: started, fed, listened to, replaced when they die."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable

from fairway.wire.exchange import Lease
from fairway.worker.pipe import Declared, Orders, Pipe, Words


class RunnerProcess:
    """One runner. `on_words` hears what it says; `on_death` is called once, with a description."""

    def __init__(
        self,
        target: str,
        threads: int,
        on_words: Callable[[RunnerProcess, Words], None],
        on_death: Callable[[RunnerProcess, str], None],
    ) -> None:
        self._target = target
        self._threads = threads
        self._on_words = on_words
        self._on_death = on_death
        self._process: asyncio.subprocess.Process | None = None
        self._pipe: Pipe[Words] | None = None
        self._watch: asyncio.Task[None] | None = None
        self.declared: asyncio.Future[list[Declared]] = asyncio.get_running_loop().create_future()
        self.jobs: set[str] = set()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._pipe = await Pipe.join(ours, Words, self._hear, lambda: None)
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "fairway.worker.runner", self._target, str(theirs.fileno()),
                str(self._threads),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # a group of its own: killed whole, untouched by Ctrl-C
            )  # fmt: skip
        self._watch = asyncio.create_task(self._wait(), name=f"runner:{self._process.pid}")

    def run(self, leases: list[Lease]) -> None:
        self.jobs.update(lease.job for lease in leases)
        self._send(Orders(leases=leases))

    def cancel(self, jobs: list[str]) -> None:
        self._send(Orders(cancel=jobs))

    def give_up(self, jobs: list[str]) -> None:
        self.jobs.difference_update(jobs)  # no word will come of how they ended
        self._send(Orders(give_up=jobs))

    def kill(self) -> None:
        """End the runner and everything it started."""
        if self._process is not None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return

    async def stop(self) -> None:
        """Close the pipe; a runner that does not end by itself is killed."""
        if self._pipe is not None:
            self._pipe.close()
        if self._watch is not None:
            try:
                async with asyncio.timeout(2):
                    await asyncio.shield(self._watch)
            except TimeoutError:
                self.kill()
                await self._watch

    def _send(self, orders: Orders) -> None:
        if self._pipe is not None:
            self._pipe.send(orders)

    def _hear(self, words: Words) -> None:
        if words.declared is not None and not self.declared.done():
            self.declared.set_result(words.declared)
        for end in words.ended:
            self.jobs.discard(end.job)
        self._on_words(self, words)

    async def _wait(self) -> None:
        assert self._process is not None
        status = await self._process.wait()
        self.kill()  # what it started must not outlive it
        await asyncio.sleep(0)  # let the last frames of the pipe be heard first
        self._on_death(self, _description(status))


def _description(status: int) -> str:
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"
