"""The processes beside the server of `fairway up`: workers, and programs that stand beside it.

Each is kept running (`supervisor`) and ended before the server is. They find the platform through
`client.json` in the data folder, like any program on this machine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairway.cli.processes.local_keys import LocalKeys
from fairway.cli.processes.signals import Orders
from fairway.cli.processes.supervisor import CANNOT_START, Place, Program, first_of
from fairway.runtime.loops import pause
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger

log = logger("up")

LOOK_SECONDS = 0.5  # between two looks at the sources
RELOAD_GRACE_SECONDS = 2.0  # who edits wants to see; jobs that run are handed back
SOURCES_MAX = 10_000
NOT_SOURCES = {"__pycache__", "node_modules", "venv", "site-packages"}


@dataclass(frozen=True, slots=True)
class WorkerWishes:
    """What is said of the workers that start with everything."""

    words: tuple[str, ...] = ()  # flags of `fairway worker`
    reloads: bool = False  # start them again when their sources change
    scales: bool = False  # as many as the autoscaler wants
    pools: frozenset[str] = frozenset()  # that were named


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
    """`start` once the server is ready; `stop` before the server does."""

    def __init__(self, settings: Settings, orders: Orders, wishes: WorkerWishes) -> None:
        self._settings = settings
        self._wishes = wishes
        self._orders = orders
        self._places: list[Place] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.problem = ""  # why nothing can come of it, in a sentence: then all stops

    def start(self, targets: Sequence[str], beside: Sequence[str], keys: LocalKeys) -> None:
        for target in targets:
            place = self._place(self._worker(target, keys))
            keep = self._keep_reloading if self._wishes.reloads else self._keep
            self._add(keep(target, place), place.program.name)
            self._add(self._sync(target), f"schedules of {target}")
        for module in beside:
            program = Program(name=module, words=(module,), environment=self._plain())
            self._add(self._keep(module, self._place(program)), module)

    async def stop(self) -> None:
        """They end as the orders say; all at once, for each has its own to finish."""
        for place in self._places:
            place.leave()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _worker(self, target: str, keys: LocalKeys) -> Program:
        grace_seconds = self._settings.drain_seconds
        if self._wishes.reloads:
            grace_seconds = min(grace_seconds, RELOAD_GRACE_SECONDS)
        command = "fleet" if self._wishes.scales else "worker"
        flags = ("--grace", str(grace_seconds), *self._wishes.words)
        return Program(
            name=f"{command} {target}",
            words=("fairway", command, target, *flags),
            environment=self._environment(keys),
            grace_seconds=grace_seconds,
            final=frozenset({0, CANNOT_START}) if self._wishes.reloads else frozenset({0}),
        )

    def _place(self, program: Program) -> Place:
        place = Place(program, self._orders)
        self._places.append(place)
        return place

    def _add(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    async def _sync(self, target: str) -> None:
        """Once: the schedules that an app declares are the default tenant's from now on."""
        words = ("fairway", "schedules", "sync", target, "--beside-worker")
        program = Program(name="sync", words=words, environment=self._plain(), once=True)
        status = await self._place(program).run()
        # Of an app that cannot be loaded its worker tells, which decides what comes of that.
        if status not in (0, CANNOT_START) and not self._orders.stopping.is_set():
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

    async def _keep(self, what: str, place: Place) -> None:
        status = await place.run()
        if place.is_leaving:
            return
        if status == CANNOT_START:  # one that never ran; one that did is being edited, perhaps
            self.problem = f"{what} cannot be loaded; see the words above."
            self._orders.stop()
        else:
            log.warning("program ended as it was asked to; no other is started", program=what)

    async def _keep_reloading(self, target: str, place: Place) -> None:
        """Another life whenever the sources change; those that cannot be loaded are waited for."""
        sources = Sources(folder_of(target))
        life = asyncio.create_task(place.run())
        while True:
            has_ended = await first_of(asyncio.shield(life), sources.changed()) == 0
            if has_ended and not await self._mended(target, life.result(), place, sources):
                return
            log.info("sources changed; starting the worker again", target=target)
            self._add(self._sync(target), f"schedules of {target}")
            if life.done():
                life = asyncio.create_task(place.run())
            else:
                place.renew()

    async def _mended(self, target: str, status: int, place: Place, sources: Sources) -> bool:
        """Whether there is something new to run after a worker that ended by itself."""
        if place.is_leaving or status != CANNOT_START:
            return False
        log.error("the app cannot be loaded; waiting for its sources to change", target=target)
        return await first_of(self._orders.stopping.wait(), sources.changed()) == 1
