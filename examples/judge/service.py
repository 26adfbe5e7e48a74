"""The judge people talk to: submissions in, verdicts out, live.

Source and tests go to object storage first, then the job with their references to Fairway: a 202
means that both are safe. The service keeps nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx2
import msgspec
from examples.judge import files
from examples.judge.jobs import JOBS, CpuSeconds, MemoryMb, app
from examples.judge.languages import LANGUAGES, installed
from examples.judge.pools import CONTEST
from examples.judge.sandbox import Sandbox
from examples.judge.settings import Settings
from examples.judge.trouble import SandboxUnavailable
from examples.web import BadInput, bad_input, job_id, message, page_file, problem, refused
from msgspec import Meta, Struct
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fairway import FairwayError, Handle, Unavailable

PAGE = Path(__file__).parent / "page"
BODY_BYTES_MAX = 4 << 20
CONTEST_PRIORITY = 9
LOOK_SECONDS = 1.0
FINAL = {"succeeded", "dead", "cancelled", "expired"}


class Case(Struct, forbid_unknown_fields=True):
    input: str
    expected: str


class Submission(Struct, forbid_unknown_fields=True):
    language: str
    source: Annotated[str, Meta(min_length=1, max_length=256 << 10)]
    tests: Annotated[list[Case], Meta(min_length=1, max_length=100)]
    contest: bool = False
    cpu_seconds: CpuSeconds = 2.0
    memory_mb: MemoryMb = 256


class Service:
    def __init__(self, settings: Settings) -> None:
        self._store = files.open_store(settings.store)
        self._wanted_sandbox = settings.sandbox
        self._level: asyncio.Task[tuple[str | None, str]] | None = None
        self._http: httpx2.AsyncClient | None = None

    def build(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/submissions", self.submit, methods=["POST"]),
                Route("/submissions/{id}", self.read, methods=["GET"]),
                Route("/submissions/{id}/events", self.events, methods=["GET"]),
                Route("/languages", self.languages, methods=["GET"]),
                Route("/", lambda _: page_file(PAGE, "index.html")),
                Route("/{name}", lambda request: page_file(PAGE, request.path_params["name"])),
            ],
            exception_handlers={FairwayError: refused, BadInput: bad_input},
            lifespan=self._life,
        )

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        settings = app.settings
        headers = {"authorization": f"Bearer {settings.api_key}"}
        async with httpx2.AsyncClient(
            base_url=settings.url, headers=headers, trust_env=False
        ) as self._http:
            try:
                yield
            finally:
                await app.aclose()

    async def languages(self, _: Request) -> Response:
        """What this host offers, and how it would hold what is handed in."""
        if self._level is None:
            self._level = asyncio.create_task(asyncio.to_thread(_sandbox, self._wanted_sandbox))
        sandbox, reason = await asyncio.shield(self._level)  # whoever asks next shares it
        return JSONResponse({"languages": installed(), "sandbox": sandbox, "reason": reason})

    async def submit(self, request: Request) -> Response:
        wanted = await message(request, Submission, BODY_BYTES_MAX)
        if wanted.language not in installed():
            return problem(422, f"language is one of {', '.join(installed())} - at `$.language`")
        handle = await self._hand_in(wanted)
        location = {"location": f"/submissions/{handle.id}"}
        return JSONResponse({"id": handle.id, "status": "queued"}, 202, headers=location)

    async def _hand_in(self, wanted: Submission) -> Handle[Any]:
        texts = [
            wanted.source,
            *(text for case in wanted.tests for text in (case.input, case.expected)),
        ]
        source, *rest = await asyncio.gather(
            *(files.put(self._store, text.encode()) for text in texts)
        )
        pairs = list(zip(rest[::2], rest[1::2], strict=True))
        job = JOBS[wanted.language]
        pool = CONTEST if wanted.contest else LANGUAGES[wanted.language].pool
        enqueuer = job.options(pool=pool)
        return await enqueuer.aenqueue(
            source=source, tests=pairs, cpu_seconds=wanted.cpu_seconds, memory_mb=wanted.memory_mb
        )

    async def read(self, request: Request) -> Response:
        return JSONResponse(await self._view(job_id(request)))

    async def events(self, request: Request) -> Response:
        """Each change, and every second the expected wait while it waits; ends with the verdict."""
        first = await self._view(job_id(request))  # a 404 must come before the stream
        return EventSourceResponse(self._follow(first), ping=15)

    async def _follow(self, view: dict[str, Any]) -> AsyncIterator[ServerSentEvent]:
        last: dict[str, Any] = {}
        changes = asyncio.create_task(self._wait_for_end(view["id"]))
        try:
            while True:
                if view != last:
                    text = msgspec.json.encode(view).decode()
                    yield ServerSentEvent(text, event=view["status"])
                if view["status"] in FINAL | {"judged"}:
                    return
                last = view
                if changes.done():  # and the job is not: it has nothing more to say
                    await asyncio.sleep(LOOK_SECONDS)
                else:
                    await asyncio.wait({changes}, timeout=LOOK_SECONDS)
                view = await self._look_again(view)
        finally:
            changes.cancel()

    async def _look_again(self, view: dict[str, Any]) -> dict[str, Any]:
        """While the platform does not answer, all is as it was: no reason to end the stream."""
        try:
            return await self._view(view["id"])
        except (Unavailable, httpx2.TransportError):
            await asyncio.sleep(LOOK_SECONDS)
            return view

    async def _wait_for_end(self, submission: str) -> None:
        """Over when the platform says that the job is; then the next look is the last."""
        async for _ in Handle.from_id(app, submission).aevents():
            pass

    async def _view(self, submission: str) -> dict[str, Any]:
        view = await Handle.from_id(app, submission).astatus()
        found: dict[str, Any] = {"id": view.id, "status": view.state, "pool": view.pool}
        if view.state == "succeeded":
            found |= {"status": "judged", **_document(view.result)}
        elif view.state == "running":
            found["progress"] = _document(view.progress).get("text", "")
        elif view.state in ("queued", "scheduled"):
            found |= await self._wait(submission)
        elif view.state == "dead":
            found["error"] = _document(view.error).get("message", "")
        return found

    async def _wait(self, submission: str) -> dict[str, Any]:
        """The place in the line and when it is likely to start, in the platform's own words."""
        assert self._http is not None
        reply = await self._http.get(f"/v1/jobs/{submission}/explain")
        if reply.status_code != 200:
            return {}
        said = reply.json()
        likely = (said.get("start") or {}).get("likely_at")
        return {"position": said.get("position"), "likely_at": likely, "why": said.get("detail")}


def _sandbox(wanted: str) -> tuple[str | None, str]:
    """The level in use here, or why there is none."""
    try:
        return Sandbox.find(wanted).level, ""
    except SandboxUnavailable as error:
        return None, str(error)


def _document(found: Any) -> dict[str, Any]:
    """An object of the view; an empty one where there is none."""
    return found if isinstance(found, dict) else {}
