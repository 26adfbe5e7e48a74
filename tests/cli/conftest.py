"""A real server for the commands that talk to one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.api.house import NO_TLS, House, open_house, own_house
from tests.cli.program import Ended, Run, fairway
from tests.postgres import Server


@pytest.fixture
def server_url(database_url: str) -> Iterator[str]:
    with open_house(database_url) as house:
        yield house.url


@pytest.fixture(scope="session")
def house(postgres_server: Server) -> Iterator[House]:
    with own_house(postgres_server, "cli_tests") as house:
        yield house


@pytest.fixture(scope="module")
def acme(house: House) -> tuple[str, str]:
    return house.new_tenant()


@pytest.fixture
def run(house: House, acme: tuple[str, str], tmp_path: Path) -> Run:
    def run(*words: str, **environment: str) -> Ended:
        keys = {"FAIRWAY_API_KEY": acme[1], "FAIRWAY_OPERATOR_KEY": house.operator_key}
        return fairway(tmp_path, *words, **{"FAIRWAY_URL": house.url} | keys | environment)

    return run


@pytest.fixture
def job(house: House, acme: tuple[str, str]) -> str:
    headers = {"authorization": f"Bearer {acme[1]}"}
    with httpx2.Client(base_url=house.url, headers=headers, verify=NO_TLS) as client:
        return str(client.post("/v1/jobs", json={"type": "cli.work"}).json()["id"])
