"""Scoring as a job: it holds a slot while it thinks, and nothing else.

`fairway worker examples.scoring.jobs:app` runs it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from functools import cache
from typing import Any, TypedDict

from examples.scoring.board import Board, Row, Score
from examples.scoring.settings import Settings, load

from fairway import CTX, App, Ctx

app = App("scoring", patience="5s")


class Scored(TypedDict):
    score: int
    reason: str
    model: str
    tokens_in: int
    tokens_out: int
    dollars: float


@app.job(name="scoring.score", pool="medium", timeout="2m")
async def score(candidate: str, payload: Any, ctx: Ctx = CTX) -> Scored:
    """Score one application; the job's id is the application's."""
    settings, board = load(), _board()
    known = await asyncio.to_thread(board.find, ctx.job_id)
    if known is None:  # else an earlier run got this far and died: do not pay twice
        found = await _find_out(settings, candidate, payload)
        known = await asyncio.to_thread(board.record, ctx.job_id, candidate, found)
    return scored(known)


async def _find_out(settings: Settings, candidate: str, payload: Any) -> Score:
    if settings.mode == "real":
        from examples.scoring.claude import ask  # the library costs half a second to load

        return await ask(settings, candidate, payload)
    await asyncio.sleep(settings.seconds)
    return simulated(candidate, payload)


def simulated(candidate: str, payload: Any) -> Score:
    """The same application always gets the same score."""
    text = json.dumps([candidate, payload], sort_keys=True)
    return Score(hashlib.sha256(text.encode()).digest()[0] * 101 // 256, "simulated")


def scored(row: Row) -> Scored:
    return Scored(
        score=row.score, reason=row.reason, model=row.model, tokens_in=row.tokens_in,
        tokens_out=row.tokens_out, dollars=row.dollars,
    )  # fmt: skip


@cache
def _board() -> Board:
    return Board(load().data)
