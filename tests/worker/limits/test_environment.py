"""What a runner finds in its environment: all that its keeper has, and no key to the platform."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.worker.platform import lease
from tests.worker.runners.test_fleet import House, stopping

from fairway.runtime.random_ids import new_api_key
from fairway.worker.limits.environment import for_runners

WORKER_KEY = new_api_key("worker").text
OPERATOR_KEY = new_api_key("operator").text
TENANT_KEY = new_api_key("tenant").text

KEEPERS = {
    "FAIRWAY_API_KEY": WORKER_KEY, "FAIRWAY_OPERATOR_KEY": OPERATOR_KEY,
    "FAIRWAY_WORKER_KEY": WORKER_KEY, "FAIRWAY_DATABASE_URL": "postgresql://u:secret@db/fairway",
    "MY_WORKER_KEY": f" {WORKER_KEY}\n", "BACKUP": OPERATOR_KEY,
    "FAIRWAY_URL": "http://fairway:8700", "ANTHROPIC_API_KEY": "sk-1", "TENANT": TENANT_KEY,
}  # fmt: skip
JOBS_MAY_SEE = {"FAIRWAY_URL", "ANTHROPIC_API_KEY", "TENANT"}


def test_keys_of_workers_and_operators_stay_with_the_keeper_whatever_their_names() -> None:
    assert for_runners(KEEPERS).keys() == JOBS_MAY_SEE
    odd = {"EMPTY": "", "PATH": "/bin:/usr/bin", "ODD": "fw_worker_not_a_key", "ÜBER": "é" * 100}
    assert for_runners(odd) == odd


@pytest.mark.parametrize(
    ("job_type", "pool"), [("environment", "short"), ("environment.alone", "long")]
)
async def test_no_job_finds_the_workers_key(
    monkeypatch: pytest.MonkeyPatch, job_type: str, pool: str
) -> None:
    """C23.17, in the shared runner and in a process of its own, which a spare becomes."""
    for name, value in KEEPERS.items():
        monkeypatch.setenv(name, value)
    house = House()
    async with stopping(house.fleet):
        await house.fleet.start()
        house.fleet.run([lease(1, job_type, pool)])
        end = await asyncio.wait_for(house.end, 20)
        assert end.kind == "succeeded"
        found: dict[str, str] = msgspec.json.decode(end.result or b"")
    assert KEEPERS.keys() & found.keys() == JOBS_MAY_SEE
    assert not [name for name, value in found.items() if WORKER_KEY in value]
