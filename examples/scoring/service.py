"""The service people talk to: applications in, scores and the board out.

It keeps nothing of its own: an application is a Fairway job, its score a row of the board.
"""

from __future__ import annotations

import asyncio
import base64
import re
from pathlib import Path
from typing import Annotated, Any

import msgspec
from examples.scoring.board import Board, Row, Score
from examples.scoring.feed import Feed, place_view
from examples.scoring.jobs import score
from examples.scoring.settings import Settings
from examples.web import (
    JOB_ID,
    UNREADABLE,
    BadInput,
    bad_input,
    idempotency_key,
    job_id,
    message,
    page_file,
    problem,
    refused,
)
from msgspec import Meta
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fairway import FairwayError

PAGE = Path(__file__).parent / "page"
BODY_BYTES_MAX = 48 << 10
PAGE_DEFAULT, PAGE_MAX = 20, 100
STATUS = {"queued": "pending", "scheduled": "pending", "running": "scoring", "dead": "failed"}


class Application(msgspec.Struct, forbid_unknown_fields=True):
    candidate: Annotated[str, Meta(min_length=1, max_length=200)]
    payload: Any


class Service:
    def __init__(self, settings: Settings) -> None:
        self.board = Board(settings.data)
        self.feed = Feed(self.board)

    def build(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/applications", self.submit, methods=["POST"]),
                Route("/applications/{id}", self.read, methods=["GET"]),
                Route("/leaderboard", self.leaderboard, methods=["GET"]),
                Route("/leaderboard/events", self.events, methods=["GET"]),
                Route("/", lambda _: page_file(PAGE, "index.html")),
                Route("/{name}", lambda request: page_file(PAGE, request.path_params["name"])),
            ],
            exception_handlers={FairwayError: refused, BadInput: bad_input},
        )

    async def submit(self, request: Request) -> Response:
        key = idempotency_key(request)
        wanted = await message(request, Application, BODY_BYTES_MAX)
        enqueuer = score.options(idempotency_key=key) if key else score.options()
        try:
            handle = await enqueuer.aenqueue(wanted.candidate, wanted.payload)
        except UNREADABLE as error:
            return problem(422, f"This cannot be an application: {error}"[:300])
        return JSONResponse(
            {"id": handle.id, "status": "pending"},
            202,
            headers={"location": f"/applications/{handle.id}"},
        )

    async def read(self, request: Request) -> Response:
        application = job_id(request)
        row = await asyncio.to_thread(self.board.find, application)
        if row is not None:
            return JSONResponse(scored_view(row))
        handle = score.handle(application)
        view = await handle.astatus()
        if view.state == "succeeded":  # the board was lost: the platform still knows the score
            found = await handle.aresult(timeout=5)
            candidate = view.payload["candidate"]
            row = await asyncio.to_thread(self.board.record, application, candidate, Score(**found))
            return JSONResponse(scored_view(row))
        answer = {"id": application, "status": STATUS.get(view.state, view.state)}
        if view.state == "dead" and view.error:
            answer["error"] = view.error.get("message", "")
        return JSONResponse(answer)

    async def leaderboard(self, request: Request) -> Response:
        limit = request.query_params.get("limit", str(PAGE_DEFAULT))
        if not re.fullmatch(r"[0-9]{1,3}", limit) or not 1 <= int(limit) <= PAGE_MAX:
            return problem(422, f"limit is a number from 1 to {PAGE_MAX}.")
        try:
            after = uncursor(request.query_params.get("cursor"))
        except ValueError:
            return problem(422, "The cursor is not one of ours.")
        places = await asyncio.to_thread(self.board.ranking, int(limit) + 1, after)
        more = len(places) > int(limit)
        page = places[: int(limit)]
        return JSONResponse(
            {
                "leaderboard": [place_view(place) for place in page],
                "next_cursor": cursor(page[-1].row) if more else None,
            }
        )

    async def events(self, request: Request) -> Response:
        return EventSourceResponse(self.feed.follow(), ping=15)


def scored_view(row: Row) -> dict[str, Any]:
    return {"id": row.id, "status": "scored", **row._asdict()}


def cursor(row: Row) -> str:
    return base64.urlsafe_b64encode(f"{row.score}:{row.id}".encode()).decode().rstrip("=")


def uncursor(text: str | None) -> Row | None:
    """The place a page ended at. A forged one shows the same board from elsewhere, no more."""
    if text is None:
        return None
    place = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    best, _, last = place.partition(":")
    if not re.fullmatch(r"[0-9]{1,3}", best) or not JOB_ID.fullmatch(last):
        raise ValueError
    return Row(last, "", int(best), "", "", 0, 0, 0.0, 0.0)
