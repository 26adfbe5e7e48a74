"""Figures of several processes, asked for by name: fresh, and as often as all can bear."""

from __future__ import annotations

import os

import pytest

from fairway.api.operators import process_metrics
from fairway.api.operators.process_metrics import NAMED_MAX, ProcessMetrics
from fairway.api.peers import Peers
from fairway.core.server_processes import ProcessGroup, SiblingFiles
from fairway.runtime.plain_http import HttpClient, Reply
from fairway.runtime.telemetry import Metrics

NAME = "fairway_jobs_promoted_total"
NOWHERE = "http://127.0.0.1:9"


class Asked(HttpClient):
    """A sibling that answers at once, and has nothing to say."""

    def __init__(self) -> None:
        super().__init__(NOWHERE, {})
        self.bodies: list[bytes] = []

    async def call(self, method: str, path: str, body: object, *rest: object) -> Reply:
        assert isinstance(body, bytes)
        self.bodies.append(body)
        return Reply(200, b"\0")


async def test_who_asks_again_and_again_asks_every_process_so_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_metrics, "NAMED_REST_SECONDS", 60.0)
    monkeypatch.setattr(process_metrics, "MERGED_SECONDS", 60.0)
    sibling, peers, metrics = Asked(), Peers(), Metrics()
    peers._clients[NOWHERE, True] = sibling
    kept = (os.memfd_create("own"), os.memfd_create("other"))
    try:
        group = ProcessGroup("shop", 1, 0, (NOWHERE, NOWHERE), kept, SiblingFiles(0, 0, ()))
        figures = ProcessMetrics(metrics, group, peers, "secret")
        for number in range(NAMED_MAX):
            metrics.promoted.inc()
            told = await figures.now(names_types=False, only=[NAME])
            assert f"{NAME} {number + 1}.0" in told.decode(), "each is of this moment"
        for _ in range(3):
            assert NAME in (await figures.now(names_types=False, only=[NAME])).decode()
        assert sibling.bodies == [NAME.encode()] * NAMED_MAX + [b""], "the others: of all, kept"
        figures._has_rested()
        await figures.now(names_types=False, only=[NAME])
        assert sibling.bodies[-1] == NAME.encode()
    finally:
        for descriptor in kept:
            os.close(descriptor)
