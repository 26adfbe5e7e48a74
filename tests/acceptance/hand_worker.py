"""A worker made by hand, as the page on the exchange tells: many of them fit into one process.

It holds medium jobs until it is told to finish them, and ends short ones at once. It counts what
no worker should see: runs it must stop, outcomes refused, jobs of a tenant that is not its own.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import secrets
from typing import Any

import msgspec

from fairway.runtime.plain_http import HttpClient

HELLO = {"types": [{"name": "hand"}], "slots": {"medium": 8, "short": 5}}
WAIT_MS = 1500
NAMING_CALLS = 4  # every so many calls it names all that it runs


class HandWorker:
    def __init__(self, url: str, key: str, tenant: str | None = None) -> None:
        self._door = HttpClient(
            url, {"authorization": f"Bearer {key}", "content-type": "application/json"}
        )
        self._session = secrets.token_hex(16)
        self._tenant = tenant
        self._numbers = itertools.count(1)
        self._calls = 0
        self._failures = 0
        self._must_greet = True
        self._unheard: dict[int, dict[str, Any]] = {}
        self.held: dict[str, dict[str, Any]] = {}
        self.refused: list[int] = []
        self.stopped: list[str] = []
        self.foreign: list[str] = []
        self.hellos = 0  # that were answered

    async def run(self) -> None:
        while True:
            try:
                await self._exchange()
                self._failures = 0
            except (OSError, TimeoutError):
                self._must_greet = True
                self._failures += 1
                longest = min(0.05 * 2.0 ** min(self._failures, 10), 1.0)
                await asyncio.sleep(longest * (0.5 + random.random() / 2))

    def finish(self) -> None:
        """Every medium job is done; the next call says so."""
        for job in list(self.held):
            self._end(job)

    @property
    def is_settled(self) -> bool:
        return not self.held and not self._unheard

    def _end(self, job: str) -> None:
        lease, number = self.held.pop(job), next(self._numbers)
        self._unheard[number] = proof(lease) | {"n": number, "kind": "succeeded", "ran_us": 1000}

    async def _exchange(self) -> None:
        self._calls += 1
        is_hello = self._must_greet
        body: dict[str, Any] = {"session": self._session, "call": self._calls}
        body |= {"wait_ms": WAIT_MS, "reports": list(self._unheard.values())}
        body["running"] = [proof(lease) for lease in (*self.held.values(), *self._unheard.values())]
        if is_hello:
            body["hello"] = HELLO
        elif self._calls % NAMING_CALLS == 0:
            body["running_is_all"] = True
        else:
            del body["running"]
        path = "/v1/workers/hand/exchange"
        reply = await self._door.post(path, msgspec.json.encode(body), WAIT_MS / 1000 + 5)
        if reply.status != 200:
            raise OSError(reply.status, reply.body[:200])
        said = msgspec.json.decode(reply.body)
        self._must_greet = said.get("resync", False)
        self.hellos += is_hello and not self._must_greet
        self._hear(said)

    def _hear(self, said: dict[str, Any]) -> None:
        for number in said.get("recorded", []):
            self._unheard.pop(number, None)
        for number in said.get("refused", []):
            self.refused.append(number)
            self._unheard.pop(number, None)
        self.stopped += [job for job in said.get("revoked", []) if self.held.pop(job, None)]
        for lease in said.get("leases", []):
            if self._tenant not in (None, lease["tenant"]):
                self.foreign.append(lease["tenant"])
            elif lease["job"] not in self.held:
                self.held[lease["job"]] = lease
                if lease["pool"] == "short":
                    self._end(lease["job"])

    def close(self) -> None:
        self._door.close()


def proof(lease: dict[str, Any]) -> dict[str, Any]:
    return {name: lease[name] for name in ("job", "tenant", "epoch", "token")}
