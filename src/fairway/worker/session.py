"""The conversation with the platform: the only file that knows the transport.

One exchange at a time is the rule, and a second one when there is something to say while the
first is held open. A call that fails is followed by another to the next address, after a pause
that grows; the caller then says hello again and sends all it has not heard of since.
"""

from __future__ import annotations

import random

import httpx2

from fairway.core.errors import FairwayError, Unavailable
from fairway.wire import exchange as wire
from fairway.wire.problems import error_of

PAUSE_FIRST_SECONDS = 0.05
PAUSE_MAX_SECONDS = 2.0
GRACE_SECONDS = 10.0  # on top of the time a call may be held open


class Session:
    def __init__(self, urls: list[str], api_key: str, worker: str) -> None:
        self._urls = [url.rstrip("/") for url in urls]
        self._path = f"/v1/workers/{worker}/exchange"
        self._client = httpx2.AsyncClient(
            headers={"authorization": f"Bearer {api_key}", "content-type": "application/json"},
            limits=httpx2.Limits(max_connections=4, keepalive_expiry=60),
            trust_env=False,
        )
        self._failures_in_row = 0
        self._dice = random.Random()

    async def exchange(self, request: wire.ExchangeRequest) -> wire.ExchangeReply:
        """Raises FairwayError; `Unavailable` means that another try may help."""
        timeout = httpx2.Timeout(5.0, read=request.wait_ms / 1000 + GRACE_SECONDS)
        try:
            reply = await self._client.post(
                self._urls[0] + self._path, content=wire.encode(request), timeout=timeout
            )
        except httpx2.HTTPError as error:
            raise Unavailable(f"{self._urls[0]} does not answer: {error!r}") from error
        if reply.status_code != 200:
            raise _error(reply)
        self._failures_in_row = 0
        return wire.decode_reply(reply.content)

    def next_pause_seconds(self) -> float:
        """After a failed call: how long to rest; the next call goes to the next address."""
        self._failures_in_row += 1
        self._urls.append(self._urls.pop(0))
        longest = min(PAUSE_FIRST_SECONDS * 2.0**self._failures_in_row, PAUSE_MAX_SECONDS)
        return float(longest * (0.5 + self._dice.random() / 2))

    async def close(self) -> None:
        await self._client.aclose()


def _error(reply: httpx2.Response) -> FairwayError:
    try:
        problem = reply.json()
    except ValueError:
        problem = {"status": reply.status_code, "detail": reply.text[:200]}
    return error_of(problem)
