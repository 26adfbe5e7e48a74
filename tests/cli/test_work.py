"""`fairway worker` with the wrong words: one clear sentence, exit status 1, no traceback."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.api.house import open_house
from tests.cli.program import fairway

from fairway.cli.processes.work import APP_NOT_LOADED, parse_pools
from fairway.core.errors import InvalidRequest
from fairway.runtime.random_ids import new_api_key
from fairway.wire.messages import POOL_WORDS

APP = """
from fairway import App
app = App("sample")
other = 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sample.py").write_text(APP)
    (tmp_path / "broken.py").write_text("import a_library_that_is_not_there\n")
    return tmp_path


def test_no_key(folder: Path) -> None:
    ended = fairway(folder, "worker", "sample:app")
    assert ended.status == 1
    assert ended.err == (
        "fairway: No worker key: set FAIRWAY_API_KEY to one, or start `fairway up` in this folder"
        " first.\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--pool", "Huge"],
            f"--pool Huge: 'Huge' is no name of a pool; it must have {POOL_WORDS}.",
        ),
        (["--pool", "short=0"], "--pool short=0: a pool needs at least one slot."),
        (
            ["--pool", "short=9999", "--pool", "long=2"],
            "A worker has at most 10000 slots in all; start several.",
        ),
        (["--pool", "short=many"], "--pool short=many: slots must be a number, as in short=8."),
        (["--pool", "long=-1"], "--pool long=-1: slots must be a number, as in long=8."),
    ],
)
def test_a_wrong_pool(folder: Path, words: list[str], sentence: str) -> None:
    ended = fairway(folder, "worker", "sample:app", *words, FAIRWAY_API_KEY="k")
    assert ended.status == 1
    assert ended.err == f"fairway: {sentence}\n"


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (["--url", "http://127.0.0.1:1", "127.0.0.1:8700"], {}),
        ([], {"FAIRWAY_URL": "http://127.0.0.1:1, 127.0.0.1:8700"}),
    ],
)
def test_an_address_that_is_none(
    folder: Path, words: list[str], environment: dict[str, str]
) -> None:
    """It would say "worker ready" and try for ever."""
    ended = fairway(folder, "worker", "sample:app", *words, FAIRWAY_API_KEY="k", **environment)
    assert ended.status == 1
    assert ended.err.startswith("fairway: '127.0.0.1:8700' is no address of a server")
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nonsense", "'nonsense' is not of the form 'module:name'"),
        ("nowhere:app", "there is no module 'nowhere'"),
        ("nowhere.py:app", "there is no file nowhere.py"),
        ("sample:apps", "sample has no 'apps'; it has app, other"),
    ],
)
def test_a_wrong_target(folder: Path, target: str, words: str) -> None:
    ended = fairway(folder, "worker", target, FAIRWAY_API_KEY="k")
    assert ended.status == APP_NOT_LOADED
    assert words in ended.err
    assert "Traceback" not in ended.err


def test_the_data_folder_that_a_worker_makes_is_for_its_owner_alone(folder: Path) -> None:
    fairway(folder, "worker", "nowhere:app", FAIRWAY_API_KEY="k")
    assert stat.S_IMODE((folder / ".fairway").stat().st_mode) == 0o700
    assert (folder / ".fairway/.gitignore").read_text() == "*\n"


def test_an_app_after_a_list_of_pools_is_still_the_app(folder: Path) -> None:
    ended = fairway(folder, "worker", "--pool", "short", "nowhere:app", FAIRWAY_API_KEY="k")
    assert ended.status == APP_NOT_LOADED
    assert "there is no module 'nowhere'" in ended.err


@pytest.mark.parametrize("words", [[], ["--pool", "short"], ["--label", "gpu", "sample:app"]])
def test_no_app(folder: Path, words: list[str]) -> None:
    ended = fairway(folder, "worker", *words, FAIRWAY_API_KEY="k")
    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert ended.err.startswith("fairway: Which app? Name it first")


def test_an_app_that_cannot_be_imported_shows_its_own_error_once(folder: Path) -> None:
    ended = fairway(folder, "worker", "broken:app", FAIRWAY_API_KEY="k")
    assert ended.status == APP_NOT_LOADED
    assert ended.err.count("No module named 'a_library_that_is_not_there'") == 1


def test_a_server_that_refuses_the_key_ends_the_worker(folder: Path, server_url: str) -> None:
    key = new_api_key("worker").text
    ended = fairway(folder, "worker", "sample:app", "--url", server_url, FAIRWAY_API_KEY=key)
    assert ended.status == 1
    assert ended.err == "fairway: This API key is not valid.\n"


def test_an_operators_key_is_not_a_workers(folder: Path, database_url: str) -> None:
    with open_house(database_url) as house:
        door, key = house.url, house.operator_key
        ended = fairway(folder, "worker", "sample:app", "--url", door, FAIRWAY_API_KEY=key)
    assert ended.status == 1
    assert "ready" not in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_pool_that_is_not_there_ends_the_worker(folder: Path, database_url: str) -> None:
    with open_house(database_url) as house:
        door, key = house.url, house.new_key({"scope": "worker"})
        words = ("worker", "sample:app", "--pool", "shrot", "--url", door)
        ended = fairway(folder, *words, FAIRWAY_API_KEY=key)
    assert ended.status == 1
    assert "There is no pool 'shrot'; there are short, medium, long." in ended.err
    assert "ready" not in ended.err


def test_no_slots_are_refused_by_the_option_that_was_given() -> None:
    """It was silently the default."""
    for options, name in (((None, 0), "--slots 0"), ((["short=0"], None), "--pool short=0")):
        with pytest.raises(InvalidRequest, match=f"^{name}: a pool needs at least one slot"):
            parse_pools(*options)
