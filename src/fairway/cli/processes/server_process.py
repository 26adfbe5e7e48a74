"""One server process, as its parent keeps it: `fairway up`, or one of several at an address.

The address, and a pipe by which the server says that it is ready, are handed down to every life of
it. Whoever connects between two lives waits in line. A server that dies while workers drain has
another life as well: what they report must reach the disk. How many there are is decided elsewhere
(`server_group.py`).
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from collections.abc import Sequence
from dataclasses import replace

from fairway.cli.processes.listening import LISTEN_FD
from fairway.cli.processes.signals import Orders
from fairway.cli.processes.supervisor import Place, Program, first_of
from fairway.core.server_processes import GROUP_VARIABLE, ProcessGroup, SiblingFiles
from fairway.runtime.loops import pause
from fairway.runtime.service_manager import READY_FD
from fairway.runtime.settings import Settings

CLOSE_INTAKE = signal.SIGUSR1  # what `up_server` takes it for
READY_BEFORE = "FAIRWAY_READY_BEFORE"  # in the environment of all lives after the first that was
PIPE_BYTES = 4096
RENEWAL_SECONDS_MAX = 300.0  # a new version may have to migrate first
_READY = re.compile(rb"^READY=1$.*?^MAINPID=(\d+)$", re.MULTILINE | re.DOTALL)
WORDS = ("fairway", "up-server")


class ServerProcess:
    """`start`, `ready`, and when all others have ended, `stop`."""

    def __init__(
        self,
        settings: Settings,
        listener: socket.socket,
        orders: Orders,
        *,
        words: Sequence[str] | None = None,
        group: ProcessGroup | None = None,
    ) -> None:
        self._listener = listener
        self._orders = orders
        self._heard, self._said = os.pipe()
        self._ready = asyncio.Event()
        self._ready_pid = 0  # of the last life that said so
        self._is_intake_closed = False
        files = (listener.fileno(), self._said)
        self._place = Place(_program(settings, files, words or WORDS, group), orders)
        self._life: asyncio.Task[int] | None = None

    @property
    def is_started(self) -> bool:
        return self._life is not None

    def start(self) -> asyncio.Task[int]:
        """Its task ends when the server does for good: it could not start, or was told to."""
        asyncio.get_running_loop().add_reader(self._heard, self._hear)
        self._life = asyncio.create_task(self._place.run(), name="server")
        return self._life

    def _hear(self) -> None:
        for pid in _READY.findall(os.read(self._heard, PIPE_BYTES)):
            if not self._ready_pid:
                self._place.change(_once_more(self._place.program))
            self._ready_pid = int(pid)
            self._ready.set()
        self._pass_on()

    def _pass_on(self) -> None:
        """To a life that is ready: before that it would not understand, and die of the signal."""
        if self._is_intake_closed and self._place.pid == self._ready_pid:
            self._place.send(CLOSE_INTAKE)

    async def ready(self, *given_up: asyncio.Event) -> bool:
        """Whether it came to be ready before it ended, or anybody gave it up."""
        assert self._life is not None
        others = (event.wait() for event in given_up)
        first = await first_of(asyncio.shield(self._life), self._ready.wait(), *others)
        return first == 1

    async def renew(self) -> bool:
        """Another life in place of this one; whether that came to be ready in good time."""
        self._ready.clear()
        self._place.renew()
        coming = asyncio.create_task(self.ready(self._orders.stopping))
        await first_of(asyncio.shield(coming), pause(RENEWAL_SECONDS_MAX))
        coming.cancel()
        return coming.done() and coming.result()

    def close_intake(self) -> None:
        """What runs goes on, new jobs are refused: nothing comes in that must be drained."""
        self._is_intake_closed = True
        self._pass_on()

    async def stop(self) -> None:
        self._place.leave()
        self._listener.close()  # the server has its own; who comes after its end is turned away
        if self._life is not None:
            await asyncio.gather(self._life, return_exceptions=True)
        asyncio.get_running_loop().remove_reader(self._heard)
        os.close(self._heard)
        os.close(self._said)


def _program(
    settings: Settings, files: tuple[int, int], words: Sequence[str], group: ProcessGroup | None
) -> Program:
    """With what was said on the command line; all else it finds in the environment."""
    said = {
        "FAIRWAY_HOST": settings.host,
        "FAIRWAY_PORT": str(settings.port),
        "FAIRWAY_DATA_DIR": str(settings.data_dir.resolve()),
        "FAIRWAY_SERVER_PROCESSES": "1",
        "FAIRWAY_DIE_WITH_PARENT": str(os.getpid()),
        LISTEN_FD: str(files[0]),
        READY_FD: str(files[1]),
    }
    alone = Program(
        name="server",
        words=words,
        environment={**os.environ, **said},
        final=frozenset(),  # whoever ended it, it is needed
        files=files,
    )
    return alone if group is None else _as_member(alone, settings, group)


def _once_more(program: Program) -> Program:
    """Of a server that was ready before: it need not say again where everything is."""
    return replace(program, environment={**program.environment, READY_BEFORE: "1"})


def _as_member(alone: Program, settings: Settings, group: ProcessGroup) -> Program:
    """One of several: it is told where it is reached alone, and where all of them are."""
    said = {
        "FAIRWAY_ADVERTISED_URL": group.url,
        "FAIRWAY_PUBLIC_URL": settings.programs_url,
        "FAIRWAY_SERVER_PROCESSES": str(len(group.urls)),
        "FAIRWAY_DATABASE_URL": settings.database_url or "",
        "FAIRWAY_OWNER_DATABASE_URL": settings.owner_database_url or "",
        GROUP_VARIABLE: group.said(),
    }
    return replace(
        alone,
        name=f"server {group.number}",
        environment={**alone.environment, **said},
        files=(*alone.files, group.listen_fd, *group.counts_fds, *_flat(group.files)),
    )


def _flat(files: SiblingFiles) -> tuple[int, ...]:
    return (files.pids_fd, files.taken_fd, *files.handed_fds)
