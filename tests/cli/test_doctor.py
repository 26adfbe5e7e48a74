"""`fairway doctor` against a real server: what it sees, with which keys, and what it returns."""

from __future__ import annotations

import time
from typing import Any

from tests.api.house import House
from tests.cli.program import Run, said

from fairway.cli.doctor import _signs
from fairway.cli.remote import Remote, Reply
from fairway.core.diagnosis import ailments
from fairway.core.tenant import tenant_moving
from fairway.services.platform import Platform


def test_a_job_that_nobody_runs_is_found(run: Run, job: str) -> None:
    ended = run("doctor")
    assert (ended.status, ended.err) == (1, "")
    assert "cli.work waiting: no live worker runs that type." in ended.out
    assert "→ fairway worker module:app" in ended.out
    ends_at = time.monotonic() + 30  # an operator sees the queue by metrics, seconds old
    while '"pain": "down"' not in (found := run("doctor", "--json", FAIRWAY_API_KEY="")).out:
        assert time.monotonic() < ends_at, found
    assert "There is no worker, with " in found.out
    assert found.status == 1


def test_a_server_that_is_away_is_the_only_thing_to_say(run: Run) -> None:
    ended = run("doctor", "--url", "http://127.0.0.1:1", "--key", "k", "-o", "jsonl")
    assert ended.status == 1
    assert said(ended._replace(status=0)) == {
        "pain": "down", "what": "No server answers.", "helps": "fairway check",
    }  # fmt: skip


def test_without_a_key_it_looks_at_what_everybody_sees(run: Run) -> None:
    ended = run("doctor", FAIRWAY_API_KEY="", FAIRWAY_OPERATOR_KEY="")
    assert ended.err == ""
    assert "Looked without a key: only at what everybody sees." in ended.out


def test_a_workers_key_in_the_environment_is_passed_over(run: Run, house: House) -> None:
    """FAIRWAY_API_KEY where a worker runs; the operator's shows what there is to see."""
    key = house.new_key({"scope": "worker"})
    assert run("doctor", FAIRWAY_API_KEY=key).err == ""
    alone = run("doctor", FAIRWAY_API_KEY=key, FAIRWAY_OPERATOR_KEY="")
    assert (alone.err, "Looked without a key" in alone.out) == ("", True)


def test_a_pause_is_among_it(run: Run, acme: tuple[str, str]) -> None:
    run("pause", f"tenant={acme[0]}", "pool=long")
    out = run("doctor").out
    run("resume", f"tenant={acme[0]}", "pool=long")
    assert f"Paused: pool=long of {acme[0]}." in out


def test_a_server_that_died_is_among_it(run: Run, house: House) -> None:
    """Its row stays for an hour; one that leaves takes it along."""

    async def add(platform: Platform) -> None:
        async with platform.database.background() as connection:
            await connection.execute(
                "INSERT INTO servers SELECT 'a-dead-one', 'http://10.0.0.9:1', true, false,"
                " now() - interval '1 h', now() - interval '21 s', now() - interval '15 s'"
            )

    async def remove(platform: Platform) -> None:
        async with platform.database.background() as connection:
            await connection.execute("DELETE FROM servers WHERE name = 'a-dead-one'")

    house.inside(add)
    try:
        out = run("doctor").out
    finally:
        house.inside(remove)
    assert "Server a-dead-one (http://10.0.0.9:1) stopped answering 2" in out
    assert " s ago without having left; its shards are with " in out
    assert "→ fairway servers" in out


class Moving(Remote):
    """A server that says of whatever is asked that the tenant is being moved."""

    def reply(self, method: str, path: str, *_: Any) -> Reply:
        if path in {"/readyz", "/metrics"}:
            return Reply(200, "", b"{}")
        raise tenant_moving()


def test_a_tenant_that_moves_is_not_told_that_nothing_is_wrong() -> None:
    found = ailments(_signs([Moving("http://127.0.0.1:1", "k")]))
    assert "Your tenant stands still: it is being moved" in found[0].what
