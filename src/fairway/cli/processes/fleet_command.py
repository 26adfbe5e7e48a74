"""A command of your own as the hand of the autoscaler: whatever starts and ends machines for you.

It is run without a shell whenever what is wanted changes, and again while the workers are not as
many as wanted. A command that fails or hangs is told and tried again, with a growing pause.
"""

from __future__ import annotations

import asyncio
import shlex
import string
from contextlib import suppress

from fairway.core.autoscale.division import PoolWish
from fairway.core.backoff import backoff_seconds
from fairway.core.errors import InvalidRequest
from fairway.runtime.telemetry import logger

log = logger("fleet")

NAMES = ("pool", "wanted", "workers", "may_go")
RUN_SECONDS_MAX = 60.0
AGAIN_SECONDS = 60.0  # while there are not as many as wanted
PAUSE_FIRST_SECONDS = 2.0


class CommandActuator:
    def __init__(self, pool: str, template: str) -> None:
        self._pool = pool
        self._words = parse_template(template)
        self._last: PoolWish | None = None
        self._due = 0.0
        self._failures = 0

    async def act(self, wish: PoolWish) -> None:
        now = asyncio.get_running_loop().time()
        is_news = self._last is None or _meant(wish) != _meant(self._last)
        is_due = now >= self._due and (wish.workers != wish.wanted or self._failures > 0)
        if not is_due and (not is_news or self._failures > 0):
            return
        self._last = wish
        if await self._run(wish):
            self._failures, self._due = 0, now + AGAIN_SECONDS
        else:
            self._failures += 1
            self._due = now + backoff_seconds(PAUSE_FIRST_SECONDS, self._failures, AGAIN_SECONDS)

    async def close(self, hurried: asyncio.Event) -> None:
        """Nothing: what it started is not ours to end."""

    async def _run(self, wish: PoolWish) -> bool:
        words = filled(self._words, self._pool, wish)
        try:
            process = await asyncio.create_subprocess_exec(*words)
        except OSError as error:
            log.error("command cannot be started", command=words[0], error=str(error))
            return False
        try:
            async with asyncio.timeout(RUN_SECONDS_MAX):
                status = await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            status = await process.wait()
        if status:
            log.error("command failed", command=words[0], status=status, wanted=wish.wanted)
        return status == 0


def _meant(wish: PoolWish) -> tuple[int, list[str]]:
    return wish.wanted, sorted(wish.may_go)


def parse_template(template: str) -> list[str]:
    """The words of a command; a slip is better said before anything is started."""
    try:
        words = shlex.split(template)
        fields = [name for word in words for _, name, _, _ in string.Formatter().parse(word)]
    except ValueError as error:
        raise InvalidRequest(f"--command: {error}.") from None
    if not words:
        raise InvalidRequest("--command: name a program, as in './scale {pool} {wanted}'.")
    for name in fields:
        if name is not None and name not in NAMES:
            raise InvalidRequest(
                f"--command: there is no {{{name}}}; there are {{{'}, {'.join(NAMES)}}}."
            )
    return words


def filled(words: list[str], pool: str, wish: PoolWish) -> list[str]:
    """Word by word: a worker's name with a space in it stays within its word."""
    known = {
        "pool": pool,
        "wanted": str(wish.wanted),
        "workers": str(wish.workers),
        "may_go": ",".join(sorted(wish.may_go)),
    }
    return [word.format(**known) for word in words]
