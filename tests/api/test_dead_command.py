"""`fairway dead …` against a real server: what a person types, and what the program says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest
from tests.api.house import House
from tests.api.jobs.test_dead_letters import died
from tests.api.worker import HandWorker
from tests.cli.program import Ended, fairway


class Person:
    def __init__(self, folder: Path, url: str, key: str) -> None:
        self._folder = folder
        self._environment = {"FAIRWAY_URL": url, "FAIRWAY_API_KEY": key}

    async def types(self, *words: str) -> Ended:
        return await asyncio.to_thread(fairway, self._folder, *words, **self._environment)


@pytest.fixture
def person(house: House, tenant: httpx2.AsyncClient, tmp_path: Path) -> Person:
    key = tenant.headers["authorization"].removeprefix("Bearer ")
    return Person(tmp_path, house.url, key)


async def test_look_count_replay_discard(
    person: Person, tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    said = await person.types("dead", "list")
    assert (said.status, said.out) == (0, "No dead letters.\n")
    first, second, third = await died(tenant, worker, 3)
    said = await person.types("dead", "list", "--type", worker.type)
    assert all(job in said.out for job in (first, second, third)), said
    assert "ValueError: no user 7" in said.out
    assert (await person.types("dead", "groups")).out.splitlines()[1].split()[0] == "3"
    assert "ValueError: no user 7" in (await person.types("dead", "show", first)).out
    assert (await person.types("dead", "discard", first)).out == "Discarded.\n"
    assert "queued" in (await person.types("dead", "replay", second)).out
    assert (await person.types("dead", "replay", "--all", "--dry-run")).out == (
        "This would replay 1 dead letter; nothing was done.\n"
    )
    said = await person.types("dead", "replay", "--type", worker.type, "--per-second", "1000", "-y")
    (line,) = said.out.splitlines()  # no progress of a terminal glued before it
    assert line.startswith("replay "), said
    assert line.endswith(": done, 1 of 1 done."), said
    assert "replay" in (await person.types("bulk", "ls")).out
    assert (await person.types("restraints")).out == "Nothing is held back.\n"
    said = await person.types("events")
    assert said.out.startswith("No events.\nWhat becomes of jobs is written down from"), said


async def test_mistakes_are_answered_in_words(person: Person) -> None:
    said = await person.types("dead", "replay")
    assert (said.status, said.err) == (
        1, "fairway: Say which: an id, a filter such as --type, or --all.\n",
    )  # fmt: skip
    said = await person.types("dead", "show", "01980a5e-7c1b-7000-8000-04a2b1c3d4e5")
    assert said.status == 1
    assert "There is no job" in said.err
