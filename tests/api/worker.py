"""A worker as another language would write it: JSON over HTTP, and nothing of ours."""

from __future__ import annotations

import secrets
from typing import Any

import httpx2


class HandWorker:
    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.session = secrets.token_hex(16)
        self.type = f"hand.{secrets.token_hex(4)}"
        self.numbers = 0
        self.inbox: list[dict[str, Any]] = []  # leases that came and nobody asked for yet

    async def post(self, **message: Any) -> httpx2.Response:
        body = {"session": self.session, **message}
        return await self.client.post("/v1/workers/hand-1/exchange", json=body)

    async def say(self, **message: Any) -> dict[str, Any]:
        reply = await self.post(**message)
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        self.inbox += found.get("leases", [])
        return found

    async def hello(self, slots: int = 1, pool: str = "short", **message: Any) -> dict[str, Any]:
        hello = {"types": [{"name": self.type}], "slots": {pool: slots}}
        return await self.say(hello=hello, **{"running": [], **message})

    async def lease(self, **message: Any) -> dict[str, Any]:
        """The next lease, however many calls it takes."""
        for _ in range(20):
            if self.inbox:
                return self.inbox.pop(0)
            await self.say(wait_ms=500, **message)
        raise AssertionError("no lease came")

    def holding(self, lease: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {name: lease[name] for name in ("job", "tenant", "epoch", "token")} | more

    def report(self, lease: dict[str, Any], kind: str = "succeeded", **more: Any) -> dict[str, Any]:
        self.numbers += 1
        return self.holding(lease, n=self.numbers, kind=kind, ran_us=1500, **more)

    async def tell(self, report: dict[str, Any], **message: Any) -> dict[str, Any]:
        """Report and wait until the number comes back, in whichever list."""
        heard = await self.say(reports=[report], wait_ms=200, **message)
        for _ in range(20):
            if report["n"] in heard.get("recorded", []) + heard.get("refused", []):
                return heard
            heard = await self.say(wait_ms=200, **message)
        raise AssertionError("the report was not heard of")

    async def run(self, **more: Any) -> dict[str, Any]:
        """Take one job, report how it went."""
        lease = await self.lease()
        await self.tell(self.report(lease, **more))
        return lease

    async def leave(self) -> None:
        await self.post(goodbye=True)
