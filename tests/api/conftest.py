"""One real server for all of these tests; each test brings its own tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from tests.api.house import House, own_house
from tests.api.worker import HandWorker
from tests.postgres import Server


@pytest.fixture(scope="session")
def house(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    storage = f"file://{tmp_path_factory.mktemp('objects')}"
    with own_house(postgres_server, "api_tests", storage_url=storage) as house:
        yield house


@pytest.fixture
async def tenant(house: House) -> AsyncIterator[httpx2.AsyncClient]:
    """A caller with the key of a tenant that nobody else uses."""
    _, key = house.new_tenant()
    async with house.caller(key) as client:
        yield client


@pytest.fixture
async def stranger(house: House) -> AsyncIterator[httpx2.AsyncClient]:
    """A caller with the key of another tenant."""
    _, key = house.new_tenant()
    async with house.caller(key) as client:
        yield client


@pytest.fixture
async def nobody(house: House) -> AsyncIterator[httpx2.AsyncClient]:
    """A caller without a key."""
    async with house.caller() as client:
        yield client


@pytest.fixture
async def operator(house: House) -> AsyncIterator[httpx2.AsyncClient]:
    async with house.caller(house.operator_key) as client:
        yield client


@pytest.fixture
async def worker(house: House) -> AsyncIterator[HandWorker]:
    """A worker written by hand, over HTTP alone, for a job type of its own."""
    async with house.caller(house.new_key({"scope": "worker"})) as client:
        worker = HandWorker(client)
        yield worker
        await worker.leave()


@pytest.fixture
async def nothing_is_written(tenant: httpx2.AsyncClient) -> AsyncIterator[None]:
    """What is refused leaves nothing behind."""
    yield
    assert (await tenant.get("/v1/jobs")).json()["jobs"] == []
