"""Clients under steady load: each job is sent until it is accepted, always with the same key."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import httpx2

TYPES = (("nap", "short"), ("nap", "short"), ("work", "medium"))
CALL_SECONDS_MAX = 3.0


def seconds_of_run(dice: random.Random) -> float:
    """Most runs are a moment; some outlive the lazy write, and some a whole second."""
    return dice.choice((0.0, 0.0, 0.02, 0.15, 0.3, 1.0))


class Sent(NamedTuple):
    """One call: when it ended, how long it took, and its status or error."""

    at: float
    seconds: float
    answer: str


class Load:
    """`async with Load(urls, key, rate=80) as load:` posts until the block ends."""

    def __init__(
        self,
        urls: Sequence[str],
        api_key: str,
        *,
        rate: float = 80.0,
        clients: int = 8,
        types: Sequence[tuple[str, str]] = TYPES,
        run_seconds: Callable[[random.Random], float] = seconds_of_run,
        first: int = 0,  # of the keys: a second load of one test has others
    ) -> None:
        self._urls = list(urls)
        self._api_key = api_key
        self._clients = clients
        self._pause = clients / rate
        self._types = types
        self._run_seconds = run_seconds
        self._numbers = itertools.count(first)
        self._stopping = asyncio.Event()
        self.call_seconds_max = CALL_SECONDS_MAX
        self._tasks: list[asyncio.Task[None]] = []
        self.accepted: list[str] = []
        self.accepted_at: list[float] = []
        self.answers: Counter[str] = Counter()
        self.longest_seconds = 0.0  # the longest that any call took to be answered or refused
        self.calls: list[Sent] = []
        self.without_retry_after = 0  # answers 503 that do not say when to come again

    async def __aenter__(self) -> Load:
        self._tasks = [asyncio.create_task(self._client(n)) for n in range(self._clients)]
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._stopping.set()
        await asyncio.gather(*self._tasks)

    async def has_accepted(self, jobs: int, within_seconds: float = 20.0) -> None:
        """Wait until so many more jobs than now were accepted."""
        goal = len(self.accepted) + jobs
        began = time.monotonic()
        while len(self.accepted) < goal:
            assert time.monotonic() - began < within_seconds, self.answers
            await asyncio.sleep(0.02)

    async def _client(self, number: int) -> None:
        dice = random.Random(number)
        headers = {"authorization": f"Bearer {self._api_key}"}
        async with httpx2.AsyncClient(
            headers=headers, timeout=self.call_seconds_max, trust_env=False
        ) as http:
            while not self._stopping.is_set():
                await self._one_job(http, dice)
                await asyncio.sleep(self._pause * (0.5 + dice.random()))

    async def _one_job(self, http: httpx2.AsyncClient, dice: random.Random) -> None:
        kind, pool = dice.choice(self._types)
        number = next(self._numbers)
        body = {"type": kind, "pool": pool, "payload": {"seconds": self._run_seconds(dice)}}
        key = {"idempotency-key": f"load-{number}"}
        for round_ in itertools.count(number):
            url = self._urls[round_ % len(self._urls)]
            reply = await self._post(http, url, body, key)
            if reply is not None and reply.status_code == 202:
                self.accepted.append(reply.json()["id"])
                self.accepted_at.append(time.time())
                return
            await asyncio.sleep(0.05 + dice.random() / 10)

    async def _post(
        self, http: httpx2.AsyncClient, url: str, body: dict[str, Any], key: dict[str, str]
    ) -> httpx2.Response | None:
        began = time.monotonic()
        answer = ""
        try:
            reply = await http.post(f"{url}/v1/jobs", json=body, headers=key)
            answer = str(reply.status_code)
        except httpx2.HTTPError as error:
            answer = type(error).__name__
            return None
        finally:
            seconds = time.monotonic() - began
            self.longest_seconds = max(self.longest_seconds, seconds)
            self.answers[answer] += 1
            self.calls.append(Sent(time.time(), seconds, answer))
        if reply.status_code == 503 and "retry-after" not in reply.headers:
            self.without_retry_after += 1
        assert reply.status_code in (202, 500, 502, 503), (reply.status_code, reply.text)
        return reply
