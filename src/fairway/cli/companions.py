"""The processes beside the server of `fairway up`: workers, and programs that stand beside it.

Each is kept running, replaced with a growing pause when it dies, and ended before the server is.
They find the platform through `client.json` in the data folder, like any program on this machine.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial

from fairway.cli.local_keys import LocalKeys
from fairway.cli.work import APP_NOT_LOADED
from fairway.core.backoff import backoff_seconds
from fairway.runtime.loops import pause
from fairway.runtime.parent_death import die_with_parent
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger

log = logger("up")

PAUSE_FIRST_SECONDS = 0.2
PAUSE_MAX_SECONDS = 10.0
LONG_LIFE_SECONDS = 30.0  # whoever lived this long starts again without a grudge


class Companions:
    """`start` once the server is ready; it stops the server when all have ended."""

    def __init__(
        self, settings: Settings, stopping: asyncio.Event, server_stop: asyncio.Event
    ) -> None:
        self._settings = settings
        self._stopping = stopping
        self._tasks: list[asyncio.Task[None]] = []
        self.problem = ""  # why nothing can come of it, in a sentence: then all stops
        self._finisher = asyncio.create_task(self._finish(server_stop), name="finisher")

    def start(self, targets: Sequence[str], beside: Sequence[str], keys: LocalKeys) -> None:
        grace = str(self._settings.drain_seconds)
        workers = [("fairway", "worker", target, "--grace", grace) for target in targets]
        environment = self._environment(keys)
        for words in (*workers, *((module,) for module in beside)):
            keeping = self._keep(words, environment if words[0] == "fairway" else self._plain())
            self._tasks.append(asyncio.create_task(keeping, name=" ".join(words)))

        for target in targets:
            syncing = self._sync(target)
            self._tasks.append(asyncio.create_task(syncing, name=f"schedules of {target}"))

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
            "FAIRWAY_DIE_WITH_PARENT": "1",
        }

    async def _finish(self, server_stop: asyncio.Event) -> None:
        """Let the server stop only after everybody beside it has."""
        await self._stopping.wait()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        server_stop.set()

    async def _keep(self, words: Sequence[str], environment: dict[str, str]) -> None:
        failures = 0
        while not self._stopping.is_set():
            began = asyncio.get_running_loop().time()
            status = await self._run(words, environment)
            if self._stopping.is_set():
                return
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

    async def _run(self, words: Sequence[str], environment: dict[str, str]) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *words,
            env=environment,
            start_new_session=True,
            preexec_fn=partial(die_with_parent, signal.SIGTERM),
        )
        ended = asyncio.create_task(process.wait())
        asked = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({ended, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not ended.done():
            process.terminate()
        return await ended
