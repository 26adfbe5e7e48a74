"""A whole platform as `make up` starts it, with the examples on it, for a few tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.acceptance.house import free_port
from tests.acceptance.processes import Program

from fairway.cli.processes.data_folder import postgres_folder
from fairway.store.postgres.postmaster import read_pid_file

QUICK = {"FAIRWAY_LEASE_SECONDS": "short=2,medium=3,long=3"}


class Town:
    """`fairway up` with programs beside it; `at` is the example's own address."""

    def __init__(self, folder: Path, words: list[str], environment: dict[str, str]) -> None:
        self.folder = folder
        self._words, self._environment = words, environment
        self.port, self.example_port = free_port(), free_port()
        self.program = self._start()

    def _start(self) -> Program:
        ports = {"SCORING_PORT": str(self.example_port), "JUDGE_PORT": str(self.example_port)}
        return Program(
            ["up", *self._words, "--port", str(self.port), "--data-dir", str(self.folder / "data")],
            QUICK | ports | self._environment,
            self.folder / "up.log",
        )

    async def restart(self) -> None:
        """kill -9 of the server itself, with all it started; then another life in its place."""
        await self.program.kill()
        self.program = self._start()

    @property
    def postmaster(self) -> int:
        record = read_pid_file(postgres_folder(self.folder / "data") / "pgdata")
        assert record is not None
        return record.pid

    @property
    def at(self) -> str:
        return f"http://127.0.0.1:{self.example_port}"

    def worker(self, name: str, words: list[str], environment: dict[str, str]) -> Program:
        """Another worker, which finds the platform by its data folder."""
        data = {"FAIRWAY_DATA_DIR": str(self.folder / "data")}
        return Program(["worker", *words], data | environment, self.folder / f"{name}.log")


@contextmanager
def town(folder: Path, words: list[str], environment: dict[str, str]) -> Iterator[Town]:
    opened = Town(folder, words, environment)
    try:
        yield opened
    finally:
        opened.program.bury()


async def answering(url: str, within_seconds: float = 60.0) -> None:
    began = time.monotonic()
    async with httpx2.AsyncClient(timeout=2, trust_env=False) as http:
        while True:
            try:
                if (await http.get(url)).status_code == 200:
                    return
            except httpx2.HTTPError:
                pass
            assert time.monotonic() - began < within_seconds, f"no answer from {url}"
            await asyncio.sleep(0.05)


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=20, trust_env=False) as client:
        yield client
