"""The scoring service as `make up` starts it: taken, scored, ranked; nothing lost in a crash."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import httpx2
from examples.scoring.jobs import simulated
from tests.acceptance.processes import command_of, send, tree
from tests.examples.conftest import Town, answering, town

#: Who is killed after which application.
VICTIMS = {15: "fairway worker", 30: "-m examples.scoring", 45: "worker.runner"}
APP = ["examples.scoring.jobs:app", "--beside", "examples.scoring"]


async def scored(http: httpx2.AsyncClient, at: str, application: str) -> dict[str, Any]:
    began = time.monotonic()
    while True:
        view: dict[str, Any] = (await http.get(f"{at}/applications/{application}")).json()
        if view["status"] == "scored":
            return view
        assert view["status"] in ("pending", "scoring"), view
        assert time.monotonic() - began < 60, view
        await asyncio.sleep(0.1)


async def apply(http: httpx2.AsyncClient, at: str, number: int) -> str:
    """Until it is taken: an answer that was lost is asked for again under the same key."""
    body = {"candidate": f"candidate {number}", "payload": {"number": number}}
    began = time.monotonic()
    while True:
        try:
            reply = await http.post(
                f"{at}/applications", json=body, headers={"Idempotency-Key": f"test-{number}"}
            )
            if reply.status_code == 202:
                return str(reply.json()["id"])
        except httpx2.HTTPError:
            pass
        assert time.monotonic() - began < 60
        await asyncio.sleep(0.1)


async def test_an_application_is_taken_scored_and_ranked(
    tmp_path: Path, http: httpx2.AsyncClient
) -> None:
    with town(tmp_path, APP, {"SCORING_SECONDS": "0.2"}) as here:
        await answering(f"{here.at}/leaderboard")
        reply = await http.post(
            f"{here.at}/applications", json={"candidate": "Ada", "payload": {"years": 10}}
        )
        assert reply.status_code == 202
        assert reply.json()["status"] == "pending"
        application = reply.json()["id"]
        assert reply.headers["location"] == f"/applications/{application}"
        assert (await scored(http, here.at, application))["score"] == simulated(
            "Ada", {"years": 10}
        ).score
        board = (await http.get(f"{here.at}/leaderboard")).json()
        assert [place["id"] for place in board["leaderboard"]] == [application]
        assert board["next_cursor"] is None
        await _bad_input(http, here)
        await _page(http, here, application)


async def _bad_input(http: httpx2.AsyncClient, here: Town) -> None:
    for body in (b"{", b"{}", b'{"candidate":"","payload":1}', b'{"candidate":"A"}', b"\xff"):
        reply = await http.post(f"{here.at}/applications", content=body)
        assert reply.status_code == 422
        assert reply.headers["content-type"] == "application/problem+json"
    large = b'{"candidate":"A","payload":"' + b"x" * 60_000 + b'"}'
    assert (await http.post(f"{here.at}/applications", content=large)).status_code == 413
    assert (await http.get(f"{here.at}/applications/nobody")).status_code == 404
    for query in ("limit=0", "limit=x", "limit=1000", "cursor=!!", "cursor=QQ"):
        assert (await http.get(f"{here.at}/leaderboard?{query}")).status_code == 422


async def _page(http: httpx2.AsyncClient, here: Town, application: str) -> None:
    assert "Leaderboard" in (await http.get(here.at)).text
    assert (await http.get(f"{here.at}/board.js")).status_code == 200
    assert (await http.get(f"{here.at}/service.py")).status_code == 404
    async with http.stream("GET", f"{here.at}/leaderboard/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                assert application in line
                break


async def test_killing_anything_under_load_loses_no_application(
    tmp_path: Path, http: httpx2.AsyncClient
) -> None:
    with town(tmp_path, APP, {"SCORING_SECONDS": "0.3"}) as here:
        await answering(f"{here.at}/leaderboard")
        taken: list[str] = []
        for number in range(60):
            taken.append(await apply(http, here.at, number))
            if number in (15, 30, 45):
                _kill(
                    here,
                    {15: "fairway worker", 30: "examples.scoring", 45: "worker.runner"}[number],
                )
        views = [await scored(http, here.at, application) for application in taken]
        assert len({view["id"] for view in views}) == 60
        for number, view in enumerate(views):
            expected = simulated(f"candidate {number}", {"number": number}).score
            assert view["score"] == expected


def _kill(here: Town, words: str) -> None:
    """kill -9 of one process of the town, and of nobody else."""
    victims = [pid for pid in tree(here.program.pid) if words in command_of(pid)]
    assert victims
    send(victims[0], signal.SIGKILL)
