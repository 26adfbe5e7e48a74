"""A tiny real HTTP server that answers as the documented endpoints do, and misbehaves on demand.

Raw asyncio, so that it can drop a connection after it has done the work. It runs in a thread of
its own, as a server does: tests may block.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

API_KEY = "fk_test"


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class Dropped(Exception):
    """Close the connection without a reply."""


def problem(code: str, status: int, detail: str = "", **extra: Any) -> dict[str, Any]:
    title = code.replace("_", " ").lower()
    return {"type": f"/problems/{code}", "title": title, "status": status, "code": code,
            "detail": detail, **extra}  # fmt: skip


@dataclass
class TinyServer:
    """`moods` spoils the next replies, in order: a Reply before the work, "drop" after it.

    With "hold" the work is done, and the reply waits for `let_go`.
    """

    port: int = 0
    requests: list[Request] = field(default_factory=list)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    uploads: dict[str, bytes] = field(default_factory=dict)
    moods: deque[Reply | str] = field(default_factory=deque)
    owner: str = ""  # named in replies to submissions
    streams_full: int = 0  # how many questions for a stream are refused
    stream: list[bytes] = field(default_factory=list)  # what each events connection sends
    batch_max: int = 10_000
    batch_code: str = "PAYLOAD_TOO_LARGE"  # what a larger one hears
    refuse: str = ""  # jobs of a batch with this text in their payload are kept out
    connections: int = 0
    waits: bool = True  # else `Prefer: wait` is not honoured
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"

    def start(self) -> None:
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait(10)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    def finish(self, job_id: str, state: str = "succeeded", **fields: Any) -> None:
        """End a job and answer those who wait for it."""
        self.jobs[job_id].update(state=state, **fields)
        self._loop.call_soon_threadsafe(self._changed.set)

    def let_go(self) -> None:
        """Send the replies that are held."""
        self._loop.call_soon_threadsafe(self._let_go.set)

    def paths(self) -> list[str]:
        return [f"{request.method} {request.path}" for request in self.requests]

    def _live(self, ready: threading.Event) -> None:
        self._loop.run_until_complete(self._serve(ready))
        self._loop.close()

    async def _serve(self, ready: threading.Event) -> None:
        self._stopping, self._changed = asyncio.Event(), asyncio.Event()
        self._let_go = asyncio.Event()
        server = await asyncio.start_server(
            self._connection, "127.0.0.1", self.port, ssl=self.tls, limit=1 << 20
        )
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stopping.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await _read(reader):
                self.requests.append(request)
                if request.path.endswith("/events") and self.streams_full:
                    self.streams_full -= 1
                    await _write(writer, Reply(429, problem("TOO_MANY_STREAMS", 429)))
                    continue
                if request.path.endswith("/events"):
                    await self._send_stream(writer)
                    return
                await _write(writer, await self._reply(request))
        except (Dropped, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _reply(self, request: Request) -> Reply:
        mood = self.moods.popleft() if self.moods else None
        if isinstance(mood, Reply):
            return mood
        reply = await self._work(request)
        if self.owner:
            reply.headers["Fairway-Owner"] = self.owner
        if mood == "drop":
            raise Dropped
        if mood == "hold":
            await self._let_go.wait()
        return reply

    async def _work(self, request: Request) -> Reply:
        if request.method == "PUT" and request.path.startswith("/uploads/"):
            self.uploads[request.path] = request.body  # the address is the right to it
            return Reply(204)
        if request.headers.get("authorization") != f"Bearer {API_KEY}":
            return Reply(401, problem("UNAUTHENTICATED", 401, "a valid API key is required"))
        match request.method, request.path:
            case "POST", "/v1/jobs":
                return self._submit(request)
            case "POST", "/v1/jobs/batch":
                return self._batch(request)
            case "POST", "/v1/uploads":
                until = datetime(2026, 1, 2, tzinfo=UTC).isoformat()
                url = f"{self.url}/uploads/u1"
                made = {"id": "u1", "url": url, "expires_at": until, "size_bytes_max": 1 << 30}
                return Reply(201, made)
        if letter := re.fullmatch(r"/v1/dead-letters/([^/]+)/replay", request.path):
            return self._replay(letter[1])
        job_id = request.path.removeprefix("/v1/jobs/")
        if job_id not in self.jobs:
            return Reply(404, problem("NOT_FOUND", 404, f"no job {job_id}"))
        if request.method == "DELETE":
            return self._cancel(job_id)
        if self.waits:
            await self._wait(request, job_id)
        return Reply(200, self.jobs[job_id])

    def _replay(self, job_id: str) -> Reply:
        if self.jobs.get(job_id, {}).get("state") != "dead":
            return Reply(404, problem("NOT_FOUND", 404, f"no dead letter {job_id}"))
        self.jobs[job_id]["state"] = "queued"
        return Reply(202, self.jobs[job_id])

    def _cancel(self, job_id: str) -> Reply:
        if (state := self.jobs[job_id]["state"]) in ("succeeded", "dead", "cancelled"):
            return Reply(409, problem("CONFLICT", 409, f"it is {state}"))
        self.finish(job_id, "cancelled")
        return Reply(202, self.jobs[job_id])

    async def _wait(self, request: Request, job_id: str) -> None:
        wait_seconds = float(request.headers.get("prefer", "wait=0").removeprefix("wait="))
        ends_at = self._loop.time() + wait_seconds
        while self.jobs[job_id]["state"] == "queued" and self._loop.time() < ends_at:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), ends_at - self._loop.time())
            except TimeoutError:
                return

    def _submit(self, request: Request) -> Reply:
        job_id = self._accept_once(request.headers["idempotency-key"], request.json)
        return Reply(202, {"id": job_id, "state": "queued"}, {"Location": f"/v1/jobs/{job_id}"})

    def _batch(self, request: Request) -> Reply:
        jobs = request.json["jobs"]
        if len(jobs) > self.batch_max:
            return Reply(413, problem(self.batch_code, 413))
        keys = request.json.get("idempotency_keys")
        if keys is None:
            key = request.headers["idempotency-key"]
            keys = [f"{key}#{place}" for place in range(len(jobs))]
        items = [self._batch_item(job, key) for job, key in zip(jobs, keys, strict=True)]
        accepted = sum(item["status"] == 202 for item in items)
        return Reply(200, {"accepted": accepted, "items": items})

    def _batch_item(self, job: dict[str, Any], key: str) -> dict[str, Any]:
        if self.refuse and self.refuse in json.dumps(job.get("payload", {})):
            return {"status": 422, "problem": problem("INVALID_REQUEST", 422, "not this one")}
        return {"status": 202, "id": self._accept_once(key, job)}

    def _accept_once(self, key: str, job: dict[str, Any]) -> str:
        if key not in self.keys:
            self.keys[key] = self._accept(job)
        return self.keys[key]

    def _accept(self, job: dict[str, Any]) -> str:
        job_id = f"00000000-0000-7000-8000-{len(self.jobs):012x}"
        self.jobs[job_id] = {
            "id": job_id, "type": job["type"], "pool": job["pool"], "state": "queued",
            "priority": job.get("priority", 5), "attempts": 1, "deliveries": 1, "result": None,
            "created_at": datetime(2026, 1, 1, tzinfo=UTC).isoformat(),
            "payload": job.get("payload", {}),
        }  # fmt: skip
        return job_id

    async def _send_stream(self, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        writer.write(head + (self.stream.pop(0) if self.stream else b""))
        await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body)


async def _write(writer: asyncio.StreamWriter, reply: Reply) -> None:
    body = b"" if reply.body is None else json.dumps(reply.body).encode()
    kind = "application/problem+json" if reply.status >= 400 else "application/json"
    headers = {"Content-Type": kind, "Content-Length": str(len(body)), **reply.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {reply.status} X\r\n{lines}\r\n".encode() + body)
    await writer.drain()
