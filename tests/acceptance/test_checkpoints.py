"""A long job outlives its workers: what it saved is where the next run begins."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from tests.acceptance.house import House
from tests.acceptance.processes import until

BUCKET = "checkpoints"
QUICK_LEASE = {"FAIRWAY_LEASE_SECONDS": "short=1,medium=1,long=1"}
KILLS = 2
KILLS_SOAKED = 5


@pytest.fixture
def on_a_folder(house: House) -> House:
    house.settings |= QUICK_LEASE
    return house


@pytest.fixture
def on_s3(house: House) -> Iterator[House]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    url = f"http://{host}:{port}"
    boto3.client(
        "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="test",
        aws_secret_access_key="test",
    ).create_bucket(Bucket=BUCKET)  # fmt: skip
    house.settings |= (
        QUICK_LEASE
        | credentials
        | {
            "FAIRWAY_STORAGE_URL": f"s3://{BUCKET}/fairway",
            "AWS_ENDPOINT_URL": url,
            "AWS_REGION": "us-east-1",
        }
    )
    yield house
    server.stop()


def steps(house: House, job: str) -> list[tuple[str, int]]:
    """(run, step) in the order they were begun."""
    if not house.ledger.path.exists():
        return []
    lines = [json.loads(line) for line in house.ledger.path.read_text().splitlines()]
    found = [(line["run"], re.fullmatch(r"step (\d+)", line["event"])) for line in lines
             if line["job"] == job]  # fmt: skip
    return [(run, int(match[1])) for run, match in found if match]


async def killed_again_and_again(
    house: House, kind: str, pool: str, kills: int = KILLS
) -> tuple[str, dict[str, Any]]:
    (worker,) = await house.open()
    job = await house.post(kind, pool, steps=24, seconds=0.15)
    for _ in range(kills):
        seen = len(steps(house, job))
        await until(lambda seen=seen: len(steps(house, job)) >= seen + 3, 30, "three more steps")
        await worker.kill()
        worker = house.start_worker()
    return job, await house.finished(job, within_seconds=60)


def redone_of(house: House, job: str, kills: int = KILLS) -> int:
    """Every step was done, and each run began where the one before it had saved last."""
    done = steps(house, job)
    assert {step for _, step in done} == set(range(24))
    runs = list(dict.fromkeys(run for run, _ in done))
    assert len(runs) == kills + 1
    for before, after in pairwise(runs):
        last = max(step for run, step in done if run == before)
        first = min(step for run, step in done if run == after)
        assert first in (last, last + 1), "more than one interval was done again"
    return len(done) - 24


@pytest.mark.parametrize(
    "kills", [KILLS, pytest.param(KILLS_SOAKED, marks=pytest.mark.slow)], ids=str
)
async def test_kills_on_a_folder(on_a_folder: House, figures: dict[str, str], kills: int) -> None:
    job, view = await killed_again_and_again(on_a_folder, "march", "long", kills)
    assert (view["state"], view["attempts"], view["deliveries"]) == ("succeeded", 1, kills + 1)
    redone = redone_of(on_a_folder, job, kills)
    figures[f"long job, {kills} kills of its worker, on a folder"] = f"{redone} steps of 24 redone"


@pytest.mark.slow
async def test_a_coroutine_in_a_shared_runner_goes_on_too(on_a_folder: House) -> None:
    job, view = await killed_again_and_again(on_a_folder, "stroll", "medium", kills=2)
    assert (view["state"], view["attempts"], view["deliveries"]) == ("succeeded", 1, 3)
    redone_of(on_a_folder, job, kills=2)


@pytest.mark.slow
async def test_kills_on_s3(on_s3: House, figures: dict[str, str]) -> None:
    """Two: what is another here is where a checkpoint lies, not how often it is needed."""
    job, view = await killed_again_and_again(on_s3, "march", "long", kills=2)
    assert (view["state"], view["attempts"], view["deliveries"]) == ("succeeded", 1, 3)
    redone = redone_of(on_s3, job, kills=2)
    figures["long job, 2 kills of its worker, on S3"] = f"{redone} steps of 24 redone"


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda path: path.write_bytes(b"7"), id="other bytes"),
        pytest.param(lambda path: path.write_bytes(b""), id="cut short", marks=pytest.mark.slow),
        pytest.param(Path.unlink, id="gone", marks=pytest.mark.slow),
    ],
)
async def test_a_broken_checkpoint_falls_back_to_the_one_before(
    on_a_folder: House, spoil: Callable[[Path], Any]
) -> None:
    house = on_a_folder
    (worker,) = await house.open()
    job = await house.post("march", "long", steps=12, seconds=0.15)
    await until(lambda: len(steps(house, job)) >= 5, 20, "five steps")
    await worker.kill()
    *_, before, newest = sorted((house.room / "objects").rglob("*-*-*[0-9a-f]"))
    expected = int(before.read_bytes())
    spoil(newest)
    house.start_worker()
    view = await house.finished(job, within_seconds=30)
    assert (view["state"], view["attempts"], view["deliveries"]) == ("succeeded", 1, 2)
    runs = list(dict.fromkeys(run for run, _ in steps(house, job)))
    assert min(step for run, step in steps(house, job) if run == runs[1]) == expected


async def test_size_and_age_are_seen_while_nobody_runs_it(on_a_folder: House) -> None:
    house = on_a_folder
    (worker,) = await house.open()
    job = await house.post("march", "long", steps=8, seconds=0.15)
    await until(lambda: len(steps(house, job)) >= 3, 20, "three steps")
    await worker.kill()
    await asyncio.sleep(0.3)
    view = await house.view(job)
    assert view["checkpoint"]["size_bytes"] >= 1
    assert view["finished_at"] is None
