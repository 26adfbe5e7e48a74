"""Commands that ask a running server: jobs, tenants, tiers, limits, pauses; and wrong words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.api.house import NO_TLS, House, open_house
from tests.cli.program import Ended, fairway
from tests.postgres import Server, at_database, drop_database, in_thread, make_database

Run = Callable[..., Ended]


@pytest.fixture(scope="module")
def house(postgres_server: Server) -> Iterator[House]:
    name = "cli_tests"
    in_thread(make_database(postgres_server.dsn, name, template=postgres_server.template))
    with open_house(at_database(postgres_server.dsn, name)) as house:
        yield house
    in_thread(drop_database(postgres_server.dsn, name))


@pytest.fixture(scope="module")
def acme(house: House) -> tuple[str, str]:
    return house.new_tenant()


@pytest.fixture
def run(house: House, acme: tuple[str, str], tmp_path: Path) -> Run:
    def run(*words: str, **environment: str) -> Ended:
        keys = {"FAIRWAY_API_KEY": acme[1], "FAIRWAY_OPERATOR_KEY": house.operator_key}
        return fairway(tmp_path, *words, **{"FAIRWAY_URL": house.url} | keys | environment)

    return run


def said(ended: Ended) -> Any:
    assert (ended.status, ended.err) == (0, ""), ended
    return json.loads(ended.out)


def sentence(ended: Ended) -> str:
    """What a command that went wrong says: one sentence, no stack."""
    assert ended.status == 1, ended
    assert ended.out == ""
    assert ended.err.startswith("fairway: ")
    assert len(ended.err.splitlines()) == 1, ended.err
    return ended.err.removeprefix("fairway: ").strip()


@pytest.fixture
def job(house: House, acme: tuple[str, str]) -> str:
    headers = {"authorization": f"Bearer {acme[1]}"}
    with httpx2.Client(base_url=house.url, headers=headers, verify=NO_TLS) as client:
        return str(client.post("/v1/jobs", json={"type": "cli.work"}).json()["id"])


# -- jobs ----------------------------------------------------------------------------------------


def test_jobs_are_listed_with_whole_ids(run: Run, job: str) -> None:
    table = run("jobs", "list", "--state", "queued", "--type", "cli.work")
    assert (table.status, table.err) == (0, "")
    (line,) = [line for line in table.out.splitlines() if line.startswith(job)]
    assert line.split()[1:4] == ["cli.work", "short", "queued"]
    whole = said(run("jobs", "list", "--limit", "1", "--json"))
    assert [one["id"] for one in whole["jobs"]] == [job]
    assert run("jobs", "list", "--type", "nobody.wrote").out == "No jobs.\n"


def test_a_job_is_shown_explained_and_cancelled(run: Run, job: str) -> None:
    assert said(run("jobs", "show", job))["id"] == job
    why = run("jobs", "why", job)
    assert (why.status, why.err) == (0, "")
    assert why.out.startswith("queued: No live worker runs this job type in this pool.\n")
    assert "place" in why.out
    assert said(run("jobs", "why", job, "--json"))["reason"] == "no_worker"
    assert run("jobs", "cancel", job).out == "cancelled\n"
    assert run("jobs", "why", job).out.splitlines()[0] == "cancelled: It has ended."
    assert "cancelled" in sentence(run("jobs", "cancel", job))


@pytest.mark.parametrize("command", ["show", "why", "cancel"])
@pytest.mark.parametrize("id_", ["nonsense", "ü%"])
def test_a_job_that_is_not_there(run: Run, command: str, id_: str) -> None:
    assert "There is no job" in sentence(run("jobs", command, id_))


def test_a_list_in_a_pipe_is_whole(run: Run, job: str) -> None:
    """`fairway jobs list | grep queued` must find it, however narrow the screen is."""
    (line,) = [row for row in run("jobs", "list", COLUMNS="").out.splitlines() if job in row]
    assert line.split()[1:4] == ["cli.work", "short", "queued"]
    narrow = run("jobs", "list", "--limit", "1", COLUMNS="50").out
    assert "…" not in narrow
    assert job in narrow


def test_many_are_cancelled_only_when_it_is_said_which(run: Run, job: str) -> None:
    assert sentence(run("jobs", "cancel-all")).startswith("Say which: a filter such as --type")
    assert "jobs match." in run("jobs", "cancel-all", "--dry-run").out
    assert said(run("jobs", "show", job))["state"] == "queued"
    ended = run("jobs", "cancel-all", "--type", "cli.work")
    assert ended.out.endswith(" cancelled, 0 asked to stop.\n"), ended
    assert said(run("jobs", "show", job))["state"] == "cancelled"
    assert run("jobs", "cancel-all", "--all").out == "0 cancelled, 0 asked to stop.\n"


def test_a_wrong_filter_is_named(run: Run) -> None:
    assert "state" in sentence(run("jobs", "list", "--state", "asleep"))
    assert "limit" in sentence(run("jobs", "list", "--limit", "100000"))


# -- tenants, tiers, limits ----------------------------------------------------------------------


def test_a_tenant_is_added_shown_and_changed(run: Run) -> None:
    added = said(run("tenants", "add", "umbrella", "tier=pro", "weight=50", "reserved.long=2"))
    assert added["api_key"].startswith("fw_tenant_")
    assert (added["tier"], added["weight"], added["reserved"]) == ("pro", 50, {"long": 2})
    changed = said(run("tenants", "set", "umbrella", "weight=", "cap=3", "reserved.long=0"))
    assert (changed["weight"], changed["cap"], changed["reserved"]) == (100, 3, {"long": 0})
    assert said(run("tenants", "show", "umbrella")) == changed


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["tenants", "set", "acme"], "Say what to change, as in"),
        (["tenants", "set", "acme", "weight"], "'weight': write it as field=value."),
        (["tenants", "set", "acme", "weight=many"], "weight must be a whole number, not 'many'."),
        (["tenants", "set", "{acme}", "weight=0"], "weight: "),
        (["tenants", "set", "{acme}", "colour=red"], "colour"),
        (["tenants", "set", "{acme}", "tier=gold"], "There is no tier 'gold'; there are free,"),
        (["tenants", "set", "{acme}", "reserved.huge=1"], "There is no pool 'huge'"),
        (["tenants", "set", "nobody", "weight=1"], "There is no tenant 'nobody'."),
        (["tenants", "add", "No Spaces"], "name: "),
        (["tenants", "add", "{acme}"], "There is a tenant named"),
        (["pause"], "Name a tenant, a type or a pool."),
        (["pause", "pool=huge"], "There is no pool 'huge'; there are short,"),
        (["pause", "tenant=nobody"], "There is no tenant 'nobody'."),
        (["pause", "queue=long"], "queue"),
        (["resume", "pool=long"], "This was not paused."),
        (["resume"], "Name a tenant, a type or a pool."),
    ],
)
def test_wrong_words_are_answered_in_words(
    run: Run, acme: tuple[str, str], words: list[str], part: str
) -> None:
    assert part in sentence(run(*(word.format(acme=acme[0]) for word in words)))


def test_tiers_and_limits_are_shown(run: Run) -> None:
    table = run("tiers")
    assert (table.status, table.err) == (0, "")
    (free,) = [line.split() for line in table.out.splitlines() if line.startswith("free")]
    assert free == ["free", "1", "0", "–", "10", "100", "10000000"]
    limits = said(run("limits"))
    assert (limits["tier"], limits["rate_per_second"], limits["burst"]) == ("standard", 100, 1000)


# -- pauses --------------------------------------------------------------------------------------


def test_a_pause_and_its_end(run: Run, acme: tuple[str, str], job: str) -> None:
    what = [f"tenant={acme[0]}", "type=cli.work"]
    assert run("pause", *what).out == f"Paused: {' '.join(what)}\n"
    assert run("jobs", "why", job).out.startswith("queued: It is paused,")
    assert run("resume", *what).out == f"Runs again: {' '.join(what)}\n"
    assert "This was not paused." in sentence(run("resume", *what))


# -- keys and servers ----------------------------------------------------------------------------


def test_no_key_says_where_to_get_one(run: Run) -> None:
    assert sentence(run("limits", FAIRWAY_API_KEY="")).startswith(
        "No tenant's key: set FAIRWAY_API_KEY"
    )
    words = sentence(run("tiers", FAIRWAY_OPERATOR_KEY=""))
    assert words.startswith("No operator's key: set FAIRWAY_OPERATOR_KEY")


def test_a_wrong_key_is_refused(run: Run, house: House) -> None:
    assert sentence(run("limits", FAIRWAY_API_KEY="fw_x")) == "This API key is not valid."
    words = sentence(run("tiers", FAIRWAY_OPERATOR_KEY=house.new_key({"scope": "worker"})))
    assert words == "This needs an operator's key; yours is for something else."


def test_a_server_that_is_away_is_named(run: Run) -> None:
    words = sentence(run("limits", FAIRWAY_URL="http://127.0.0.1:1"))
    assert words.startswith("No server answers at http://127.0.0.1:1")


@pytest.mark.parametrize("url", ["127.0.0.1:8700", "http://", "nonsense"])
def test_an_address_that_is_none_is_told(run: Run, url: str) -> None:
    words = sentence(run("limits", FAIRWAY_URL=url))
    assert words.startswith(f"{url.rstrip('/')!r} is no address of a server: write it as in")


def test_a_key_with_strange_letters(run: Run) -> None:
    assert "copy it anew" in sentence(run("limits", FAIRWAY_API_KEY="fw_tenant_…"))


def test_a_replay_with_arguments_that_are_none(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{")
    assert "--payload bad.json is no JSON" in sentence(
        run("dead", "replay", "--all", "--payload", "bad.json")
    )
    assert "absent.json" in sentence(run("dead", "replay", "--all", "--payload", "absent.json"))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nonsense", "'nonsense' is not of the form"),
        ("nowhere:app", "there is no module 'nowhere'"),
        ("sample:other", "sample:other is a int, not a fairway.App"),
    ],
)
def test_schedules_of_an_app_that_is_none(
    run: Run, tmp_path: Path, target: str, words: str
) -> None:
    (tmp_path / "sample.py").write_text("other = 1\n")
    assert words in sentence(run("schedules", "sync", target))


@pytest.mark.parametrize("command", ["jobs", "tenants", "pause"])
def test_every_command_has_help(run: Run, command: str) -> None:
    ended = run(command, "--help")
    assert ended.status == 0
    assert f"fairway {command}" in ended.out
