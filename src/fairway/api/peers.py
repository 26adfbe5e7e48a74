"""Connections to the other servers of a cluster, and questions: how jobs run, who works there.

Made before the platform, which asks through it, and before the relay, which passes calls on.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairway.api.owner_line import Lines
from fairway.core.errors import Unavailable
from fairway.core.ids import Epoch, JobId
from fairway.runtime.plain_http import HttpClient, head_lines
from fairway.services.jobs.far_runs import FarRun, Runs
from fairway.wire.exchange import NULL
from fairway.wire.operators.operator import WorkerList, WorkerView

RUNS_PATH = "/internal/runs"
RUNS_SECONDS_MAX = 1.0  # a question about runs; the store alone answers then
WORKERS_PATH = "/internal/workers"
WORKERS_SECONDS_MAX = 1.0  # who does not answer by then is left out
CLIENTS_MAX = 256  # those used last; far more than a cluster has servers


class Peers:
    def __init__(self) -> None:
        # by server; for staff, and for tenants; the one used last comes last
        self._clients: dict[tuple[str, bool], HttpClient] = {}
        self.lines = Lines()  # for small calls that come all the time

    def client(self, url: str, *, for_staff: bool) -> HttpClient:
        """An owner knows a connection by who spoke first on it."""
        place = (url, for_staff)
        client = self._clients.pop(place, None) or HttpClient(url, {})
        self._clients[place] = client
        if len(self._clients) > CLIENTS_MAX:
            self._clients.pop(next(iter(self._clients))).close()
        return client

    def close(self) -> None:
        self.lines.close()
        for client in self._clients.values():
            client.close()

    async def ask_runs(self, secret: str, url: str, jobs: list[JobId]) -> Runs:
        """Those of these jobs that run, as the server there says; Unavailable if it does not."""
        client = self.client(url, for_staff=True)
        question, lines = msgspec.json.encode(jobs), cluster_lines(secret)
        try:
            reply = await client.call("POST", RUNS_PATH, question, RUNS_SECONDS_MAX, lines)
            found = _decode_runs(reply.body) if reply.status == 200 else []
        except (OSError, TimeoutError, msgspec.DecodeError) as error:
            raise Unavailable(code="NOT_OWNER") from error
        return {one.job: FarRun(one.epoch, one.started_us, one.said) for one in found}

    async def ask_workers(
        self, secret: str, url: str, asked: AskedWorkers
    ) -> list[WorkerView] | None:
        """The workers that the server there hears; None when it does not answer."""
        client, lines = self.client(url, for_staff=True), cluster_lines(secret)
        question = msgspec.json.encode(asked)
        try:
            reply = await client.call("POST", WORKERS_PATH, question, WORKERS_SECONDS_MAX, lines)
            return _decode_workers(reply.body).workers if reply.status == 200 else None
        except (OSError, TimeoutError, msgspec.DecodeError):
            return None


class AskedWorkers(msgspec.Struct):
    """A question of another server about its workers; one that names none asks for all."""

    name: str | None = None
    drain: bool = False  # ask those of that name to drain


def cluster_lines(secret: str) -> str:
    """What shows that a call comes from a server of this cluster."""
    return head_lines({"x-fairway-cluster": secret})


def asked_jobs(question: bytes) -> list[JobId]:
    """What `Peers.ask_runs` of another server asks for."""
    return [JobId(job) for job in _decode_jobs(question)]


def encode_runs(runs: Iterable[tuple[JobId, FarRun]]) -> bytes:
    """The answer to `Peers.ask_runs` of another server."""
    return msgspec.json.encode([_Run.of(job, run) for job, run in runs])


class _Run(msgspec.Struct, array_like=True):
    """A run, from server to server."""

    job: JobId
    epoch: Epoch
    started_us: int
    progress: msgspec.Raw = NULL

    @classmethod
    def of(cls, job: JobId, run: FarRun) -> _Run:
        said = NULL if run.progress is None else msgspec.Raw(run.progress)
        return cls(job, run.epoch, run.started_us, said)

    @property
    def said(self) -> bytes | None:
        text = bytes(self.progress)
        return None if text == b"null" else text


_decode_jobs = msgspec.json.Decoder(list[str]).decode
_decode_workers = msgspec.json.Decoder(WorkerList).decode
_decode_runs = msgspec.json.Decoder(list[_Run]).decode
