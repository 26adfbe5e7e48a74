"""The processes beside the server of `fairway up`: workers, and programs that stand beside it.

Each is kept running, replaced with a growing pause when it dies, and ended before the server is.
They find the platform through `client.json` in the data folder, like any program on this machine.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from fairway.cli.processes.local_keys import LocalKeys
from fairway.cli.processes.work import APP_NOT_LOADED
from fairway.core.backoff import backoff_seconds
from fairway.runtime.loops import pause
from fairway.runtime.parent_death import die_with_parent
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger

log = logger("up")

PAUSE_FIRST_SECONDS = 0.2
PAUSE_MAX_SECONDS = 10.0
LONG_LIFE_SECONDS = 30.0  # whoever lived this long starts again without a grudge
RELOADED = -1000  # no status of a process: it was ended because its sources changed
LOOK_SECONDS = 0.5  # between two looks at the sources
RELOAD_GRACE_SECONDS = 2.0  # who edits wants to see; jobs that run are handed back
LATE_SECONDS = 60.0  # beyond the drain, in which a worker says what it still has to say
HURRIED_SECONDS = 10.0  # from the second word to the end of who does not hear
SOURCES_MAX = 10_000
NOT_SOURCES = {"__pycache__", "node_modules", "venv", "site-packages"}


@dataclass(frozen=True, slots=True)
class WorkerWishes:
    """What is said of the workers that start with everything."""

    words: tuple[str, ...] = ()  # flags of `fairway worker`
    reloads: bool = False  # start them again when their sources change
    scales: bool = False  # as many as the autoscaler wants


class Stops(NamedTuple):
    """Who wants whom to stop."""

    stopping: asyncio.Event  # everything
    hurried: asyncio.Event  # at once
    server: asyncio.Event  # for it is the last


class Sources:
    """The Python files of an app's folder: when one changes, another program is meant."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self.look()

    def look(self) -> dict[str, int]:
        """By name, when each was last written; so many at most."""
        found: dict[str, int] = {}
        for folder, folders, files in os.walk(self._folder):
            folders[:] = [one for one in folders if one[0] != "." and one not in NOT_SOURCES]
            for name in files:
                path = os.path.join(folder, name)
                if name.endswith(".py") and os.path.exists(path):
                    found[path] = os.stat(path).st_mtime_ns
            if len(found) >= SOURCES_MAX:
                break
        return found

    async def changed(self) -> None:
        """Returns once something is different, and has been quiet since the look before."""
        while (now := await asyncio.to_thread(self.look)) == self._seen:
            await pause(LOOK_SECONDS)
        while now != self._seen:
            self._seen = now
            await pause(LOOK_SECONDS)
            now = await asyncio.to_thread(self.look)


def folder_of(target: str) -> Path:
    """Of `file.py:app` where the file is; of a module where it is looked for."""
    place = target.partition(":")[0]
    return Path(place).resolve().parent if place.endswith(".py") else Path.cwd()


class Companions:
    """`start` once the server is ready; it stops the server when all have ended."""

    def __init__(self, settings: Settings, stops: Stops, wishes: WorkerWishes) -> None:
        self._settings = settings
        self._wishes = wishes
        self._stopping, self._hurried = stops.stopping, stops.hurried
        self._tasks: list[asyncio.Task[None]] = []
        self.problem = ""  # why nothing can come of it, in a sentence: then all stops
        self._finisher = asyncio.create_task(self._finish(stops.server), name="finisher")

    def start(self, targets: Sequence[str], beside: Sequence[str], keys: LocalKeys) -> None:
        grace_seconds = self._settings.drain_seconds
        if self._wishes.reloads:
            grace_seconds = min(grace_seconds, RELOAD_GRACE_SECONDS)
        flags = ("--grace", str(grace_seconds), *self._wishes.words)
        command = "fleet" if self._wishes.scales else "worker"
        for target in targets:
            words = ("fairway", command, target, *flags)
            sources = Sources(folder_of(target)) if self._wishes.reloads else None
            self._add(self._keep(words, self._environment(keys), sources), " ".join(words))
            self._add(self._sync(target), f"schedules of {target}")
        for module in beside:
            self._add(self._keep((module,), self._plain()), module)

    def _add(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    async def _sync(self, target: str) -> None:
        """Once: the schedules that an app declares are the default tenant's from now on."""
        words = ("fairway", "schedules", "sync", target)
        status = await self._run(words, self._plain())
        if status and not self._stopping.is_set():
            log.error("schedules were not synced", target=target, status=status)

    def _plain(self) -> dict[str, str]:
        """They read the address and the tenant's key from the data folder."""
        ours = ("FAIRWAY_URL", "FAIRWAY_API_KEY")
        found = {name: value for name, value in os.environ.items() if name not in ours}
        return found | {"FAIRWAY_DATA_DIR": str(self._settings.data_dir.resolve())}

    def _environment(self, keys: LocalKeys) -> dict[str, str]:
        return self._plain() | {
            "FAIRWAY_URL": self._settings.url,
            "FAIRWAY_API_KEY": keys.worker_key,
            "FAIRWAY_DIE_WITH_PARENT": str(os.getpid()),
        }

    async def _finish(self, server_stop: asyncio.Event) -> None:
        """Let the server stop only after everybody beside it has."""
        await self._stopping.wait()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        server_stop.set()

    async def _keep(
        self, words: Sequence[str], environment: dict[str, str], sources: Sources | None = None
    ) -> None:
        failures = 0
        while not self._stopping.is_set():
            began = asyncio.get_running_loop().time()
            status = await self._run(words, environment, sources)
            if self._stopping.is_set():
                return
            if sources is not None and status in (RELOADED, APP_NOT_LOADED):
                await self._reloaded(words[2], sources, is_broken=status == APP_NOT_LOADED)
                failures = 0
                continue
            if status == 0:
                log.warning("program ended as it was asked to; no other is started", program=words)
                return
            if status == APP_NOT_LOADED and not failures:
                # One that worked before is being edited, perhaps; this one never did.
                self.problem = f"{words[2]} cannot be loaded; see the words above."
                self._stopping.set()
                return
            lived = asyncio.get_running_loop().time() - began
            failures = failures + 1 if lived < LONG_LIFE_SECONDS else 1
            seconds = backoff_seconds(PAUSE_FIRST_SECONDS, failures, PAUSE_MAX_SECONDS)
            name = " ".join(words[:3])
            log.error(
                "program ended; starting it again", program=name, status=status, in_seconds=seconds
            )
            await pause(seconds)

    async def _reloaded(self, target: str, sources: Sources, *, is_broken: bool) -> None:
        """Go on with what the sources say now; those that cannot be loaded are being edited."""
        if is_broken:
            log.error("the app cannot be loaded; waiting for its sources to change", target=target)
            await self._first_of(sources.changed(), self._stopping.wait())
        log.info("sources changed; starting the worker again", target=target)
        self._add(self._sync(target), f"schedules of {target}")

    async def _run(
        self, words: Sequence[str], environment: dict[str, str], sources: Sources | None = None
    ) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *words,
            env=environment,
            start_new_session=True,
            preexec_fn=partial(die_with_parent, signal.SIGTERM),
        )
        ended = asyncio.create_task(process.wait())
        changes = [] if sources is None else [sources.changed()]
        first = await self._first_of(asyncio.shield(ended), self._stopping.wait(), *changes)
        await self._end(process, ended)
        status = await ended
        return RELOADED if first == 2 else status

    async def _end(self, process: Process, ended: asyncio.Task[int]) -> None:
        """Ask, and once more when it is late or somebody is in a hurry; then it is killed."""
        late_seconds = self._settings.drain_seconds + LATE_SECONDS
        if not ended.done():
            _send(process, signal.SIGTERM)
            waits = (self._hurried.wait(), pause(late_seconds))
            await self._first_of(asyncio.shield(ended), *waits)
        if not ended.done():
            _send(process, signal.SIGTERM)
            await self._first_of(asyncio.shield(ended), pause(HURRIED_SECONDS))
        if not ended.done():
            log.error("program does not end; killing it", pid=process.pid)
            _send(process, signal.SIGKILL)

    async def _first_of(self, *waits: Awaitable[object]) -> int:
        """Which of these was done first; the others are given up."""
        tasks = [asyncio.ensure_future(one) for one in waits]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        first = next(place for place, task in enumerate(tasks) if task.done())
        for task in tasks:
            task.cancel()
        return first


def _send(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has just ended
        process.send_signal(number)
