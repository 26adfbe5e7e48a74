"""Commands that ask a running server: jobs, tenants, tiers, limits, pauses; and wrong words."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.api.house import House
from tests.cli.program import Run, said, sentence

from fairway.api.regions.gate import OF_DIRECTORY, SPEND_CAP
from fairway.cli import remote
from fairway.cli.processes.local_keys import FILE_NAME, LocalKeys, write_keys
from fairway.core.errors import InvalidRequest, Unavailable
from fairway.sdk.http.addresses import DEFAULT_URL

# -- tenants, tiers, limits ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["tenants", "set", "acme"], "Say what to change, as in"),
        (
            ["tenants", "set", "acme", "weight"],
            "'weight': write it as field=value; the fields are tier, weight,",
        ),
        (
            ["tenants", "set", "acme", "weight=many"],
            "weight must be a whole number from 0 on, not 'many'.",
        ),
        (["tenants", "set", "{acme}", "weight=0"], "weight: "),
        (["tenants", "set", "{acme}", "colour=red"], "colour"),
        (["tenants", "set", "{acme}", "shards=4"], "said when it is made, and not changed"),
        (["tenants", "set", "{acme}", "shard=4"], "fairway shards move TENANT --to N"),
        (["shards", "move", "{acme}", "--to", "5", "--wait", "9d"], "--wait: 9d is too long: 24 h"),
        (["tenants", "set", "{acme}", "tier=gold"], "There is no tier 'gold'; there are free,"),
        (["tenants", "set", "{acme}", "reserved.huge=1"], "There is no pool 'huge'"),
        (["tenants", "set", "nobody", "weight=1"], "There is no tenant 'nobody'."),
        (["tenants", "add", "No Spaces"], "name: "),
        (["tenants", "add", "{acme}"], "There is a tenant named"),
        (["pause"], "Name a tenant, a type or a pool."),
        (["pause", "pool=huge", "--yes"], "There is no pool 'huge'; there are short,"),
        (["pause", "tenant=nobody"], "There is no tenant 'nobody'."),
        (["pause", "queue=long", "--yes"], "queue"),
        (["resume", "pool=long"], "This was not paused."),
        (["resume"], "Name a tenant, a type or a pool."),
    ],
)
def test_wrong_words_are_answered_in_words(
    run: Run, acme: tuple[str, str], words: list[str], part: str
) -> None:
    assert part in sentence(run(*(word.format(acme=acme[0]) for word in words)))


# -- keys and servers ----------------------------------------------------------------------------


def test_no_key_says_where_to_get_one(run: Run) -> None:
    assert sentence(run("limits", FAIRWAY_API_KEY="")).startswith(
        "No tenant's key: set FAIRWAY_API_KEY"
    )
    words = sentence(run("tiers", FAIRWAY_OPERATOR_KEY=""))
    assert words.startswith("No operator's key: set FAIRWAY_OPERATOR_KEY")


def test_a_folder_of_a_region_without_a_tenant_says_so(run: Run, tmp_path: Path) -> None:
    """`fairway up` was started here: to run this there is no way out."""
    (tmp_path / ".fairway").mkdir()
    kept = LocalKeys(url="http://127.0.0.1:1", api_key="", worker_key="w", operator_key="o")
    write_keys(tmp_path / ".fairway" / FILE_NAME, kept)
    words = sentence(run("limits", FAIRWAY_API_KEY="", FAIRWAY_URL=""))
    assert "`fairway up` made none here: of several regions the directory alone" in words


def test_a_wrong_key_is_refused(run: Run, house: House) -> None:
    assert sentence(run("limits", FAIRWAY_API_KEY="fw_x")) == "This API key is not valid."
    words = sentence(run("tiers", FAIRWAY_OPERATOR_KEY=house.new_key({"scope": "worker"})))
    assert words == "This needs an operator's key; yours is for something else."


def test_a_server_that_is_away_is_named(run: Run) -> None:
    words = sentence(run("limits", FAIRWAY_URL="http://127.0.0.1:1"))
    assert words == "No server answers at http://127.0.0.1:1: Connection refused."


def test_of_several_servers_the_next_is_asked_and_that_is_said(
    run: Run, house: House, acme: tuple[str, str]
) -> None:
    two = f"http://127.0.0.1:1,{house.url}"
    asked = run("jobs", "ls", "--tenant", acme[0], FAIRWAY_URL=two)
    assert asked.status == 0
    gone = "No server answers at http://127.0.0.1:1: Connection refused."
    assert asked.err == f"fairway: {gone} Asking {house.url}.\n"
    assert run("keys", "add", "--tenant", acme[0], FAIRWAY_URL=two).status == 0


LOST = "http://127.0.0.1:1,http://127.0.0.1:2"  # both servers of a region
LOST_IS_TOLD = (
    "fairway: No server answers at http://127.0.0.1:1: Connection refused."
    " Asking http://127.0.0.1:2.\n"
    "fairway: No server answers at http://127.0.0.1:2: Connection refused. Asking {}, another"
    " region's.\n"
)


def test_where_no_server_of_a_region_answers_the_next_region_is_asked(
    run: Run, house: House, acme: tuple[str, str]
) -> None:
    both, told = f"{LOST};{house.url}", LOST_IS_TOLD.format(house.url)
    made = run("jobs", "submit", "cli.elsewhere", FAIRWAY_URL=both)
    assert (made.status, made.err) == (0, told)
    for words in (["jobs", "show"], ["jobs", "why"]):
        assert run(*words, made.out.strip(), FAIRWAY_URL=both).err == told
    assert run("doctor", FAIRWAY_URL=both).err == told, "once, though it has two keys"
    listed = run("region", "ls", FAIRWAY_URL=both)
    assert listed.err.startswith(f"{told}fairway: There are no regions here"), "it was asked"
    assert run("keys", "add", "--tenant", acme[0], FAIRWAY_URL=both).status == 0, "as from there"
    other = run("limits", FAIRWAY_URL=both, FAIRWAY_API_KEY="fw_x")
    assert (
        other.err == f"{told}fairway: {house.url}, another region's: This API key is not valid.\n"
    )


def test_what_is_changed_in_one_region_alone_is_not_changed_in_the_next(
    run: Run, house: House
) -> None:
    both = f"{LOST};{house.url}"
    words = ["pause", "pool=long", "type=cli.never", "--yes"]
    refused = run(*words, FAIRWAY_URL=both)
    assert "Connection refused. This is done in one region alone: to mean another, name a" in (
        refused.err
    )
    split = run("shards", "split", "--to", "9999", FAIRWAY_URL=both)  # looks first, and that roams
    assert "No server of the first region answered. This is done in one region" in split.err
    assert (refused.status, split.status) == (1, 1)
    assert "cli.never" not in run("pauses").out


def test_what_any_region_changes_for_all_is_what_the_servers_pass_on() -> None:
    assert {*OF_DIRECTORY, "/v1/regions"} <= {*remote.OF_ALL_REGIONS}
    assert {*remote.OF_ALL_REGIONS} <= {*OF_DIRECTORY, "/v1/regions", "/session"}
    assert remote.SPEND_CAP == SPEND_CAP


def test_what_may_have_been_heard_is_not_said_to_another_server(
    monkeypatch: pytest.MonkeyPatch, house: House
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # takes a connection, never answers
        monkeypatch.setattr(remote, "WAIT_SECONDS", 0.2)
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(Unavailable, match=url):
            remote.Remote(f"{url},{house.url}", "").reply("POST", "/session/links")
        assert remote.Remote(f"{url},{house.url}", "").reply("GET", "/livez").status == 200


def test_a_key_of_a_file_goes_to_the_addresses_of_that_file_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("FAIRWAY_API_KEY", "FAIRWAY_DATA_DIR", "FAIRWAY_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".fairway").mkdir()
    kept = LocalKeys(
        url="http://127.0.0.1:1,http://127.0.0.1:2",
        api_key="fw_tenant_kept",
        worker_key="",
        operator_key="",
    )
    write_keys(tmp_path / ".fairway" / "client.json", kept)
    asked = remote.Options(url="http://127.0.0.1:2,http://example.com").tenant()
    assert (asked.urls, asked.key) == ("http://127.0.0.1:2", "fw_tenant_kept")
    with pytest.raises(InvalidRequest, match=r"There is one for http://127.0.0.1:1,"):
        remote.Options(url="http://127.0.0.1:3").tenant()
    kept.url = "http://127.0.0.1:1,http://example.com"  # a folder of somebody else's
    write_keys(tmp_path / ".fairway" / "client.json", kept)
    assert remote.Options(key="fw_tenant_mine").tenant().urls == DEFAULT_URL
    kept.url = "http://127.0.0.1:1,http://127.0.0.1:2;http://127.0.0.1:3"
    write_keys(tmp_path / ".fairway" / "client.json", kept)
    asked = remote.Options(url="http://127.0.0.1:1,http://x.example;http://127.0.0.1:3").tenant()
    assert asked.urls == "http://127.0.0.1:1;http://127.0.0.1:3"


@pytest.mark.parametrize("url", ["127.0.0.1:8700", "http://", "nonsense"])
def test_an_address_that_is_none_is_told(run: Run, url: str) -> None:
    for words in (sentence(run("limits", FAIRWAY_URL=url)), sentence(run("limits", "--url", url))):
        assert words.startswith(f"{url.rstrip('/')!r} is no address of a server: write it as in")
        assert "with http:// or https://" in words


def test_a_host_that_cannot_be_one_is_told() -> None:
    for host in ("a..b", "x" * 64):
        with pytest.raises(InvalidRequest, match="is no address of a server"):
            remote.Remote(f"http://{host}:1,http://127.0.0.1:1", "").get("/livez")


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


def test_an_operator_says_whose_things_a_command_is_about(
    run: Run, acme: tuple[str, str], job: str
) -> None:
    nobody = {"FAIRWAY_API_KEY": ""}
    listed = said(run("jobs", "ls", "--tenant", acme[0], "--json", **nobody))
    assert job in [one["id"] for one in listed["jobs"]]
    assert run("jobs", "logs", job, "--tenant", acme[0], **nobody).out == "No lines.\n"
    assert run("jobs", "cancel", job, "--tenant", acme[0], **nobody).out == "cancelled\n"
    for words in (["dead", "groups"], ["schedules", "ls"], ["webhooks", "ls"], ["bulk", "ls"]):
        assert run(*words, "--tenant", acme[0], **nobody).status == 0
    wrong = sentence(run("flows", "ls", "--tenant", "nobody", **nobody))
    assert wrong == "--tenant: There is no tenant 'nobody'."
