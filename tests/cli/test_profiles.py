"""Profiles: kept as they were said, for their owner alone; a key goes only where it belongs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.program import Run, fairway, said, sentence

from fairway.cli.processes.local_keys import FILE_NAME, LocalKeys, write_keys
from fairway.cli.profiles import Profile, Profiles, config_path, read_profiles, write_profiles
from fairway.cli.remote import Options
from fairway.core.errors import InvalidRequest
from fairway.sdk.http.settings import DEFAULT_URL

names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12)


@given(st.dictionaries(names, st.builds(Profile, names, names, names), max_size=3))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, found: dict[str, Profile]
) -> None:
    path = tmp_path_factory.mktemp("profiles") / "fairway" / "config.toml"
    wanted = Profiles(next(iter(found), ""), found)
    write_profiles(path, wanted)
    assert read_profiles(path) == wanted
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["[profiles", "profiles = 3", "[profiles.a]\ncolour = 'red'"])
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(InvalidRequest, match=r"config\.toml cannot be read"):
        read_profiles(path)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("FAIRWAY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("FAIRWAY_DATA_DIR", str(tmp_path / "none"))
    one = Profile("http://prod:1", "tenant's", "operator's")
    write_profiles(config_path(), Profiles("prod", {"prod": one, "other": Profile("http://o:2")}))
    return tmp_path


def test_a_key_is_shown_to_its_own_address_only(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Options()._found("tenant") == ("http://prod:1", "tenant's")
    assert Options(profile="prod")._found("operator") == ("http://prod:1", "operator's")
    assert Options(profile="other")._found("tenant") == ("http://o:2", "")
    assert Options(url="http://elsewhere:3")._found("tenant") == ("http://elsewhere:3", "")
    assert Options(url="http://prod:1/")._found("tenant") == ("http://prod:1/", "tenant's")
    assert Options(key="mine")._found("tenant") == ("http://prod:1", "mine")
    monkeypatch.setenv("FAIRWAY_URL", "http://elsewhere:3")
    assert Options()._found("tenant") == ("http://elsewhere:3", "")
    assert Options(profile="prod")._found("tenant") == ("http://prod:1", "tenant's")
    monkeypatch.setenv("FAIRWAY_API_KEY", "of the environment")
    assert Options()._found("tenant") == ("http://elsewhere:3", "of the environment")
    assert Options(profile="prod")._found("tenant") == ("http://prod:1", "tenant's")


@pytest.mark.parametrize(
    ("url", "is_asked"),
    [("http://127.0.0.1:1", True), ("http://[::1]:1", True), ("http://127.0.0.1.example", False)],
)
def test_a_folder_of_somebody_else_is_shown_no_key_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, *, is_asked: bool
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("FAIRWAY_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("FAIRWAY_API_KEY", "ours")
    monkeypatch.delenv("FAIRWAY_URL", raising=False)
    keys = LocalKeys(url=url, api_key="its own", worker_key="w", operator_key="o")
    write_keys(tmp_path / FILE_NAME, keys)
    assert Options()._found("tenant") == (url if is_asked else DEFAULT_URL, "ours")
    monkeypatch.delenv("FAIRWAY_API_KEY")
    assert Options()._found("tenant") == (url, "its own")


def test_a_profile_is_made_used_and_forgotten(
    run: Run, tmp_path: Path, acme: tuple[str, str]
) -> None:
    bare = {"FAIRWAY_URL": "", "FAIRWAY_API_KEY": "", "FAIRWAY_OPERATOR_KEY": ""}
    ours = bare | {"XDG_CONFIG_HOME": str(tmp_path)}
    url = run("limits", "--profile", "none", **ours)
    assert "There is no profile 'none'" in sentence(url)
    assert "say where it is" in sentence(run("profiles", "set", "here", **ours))
    assert run("profiles", "set", "here", "--url", "http://127.0.0.1:1", **ours).status == 0
    listed = said(run("profiles", "ls", "--json", **ours))["profiles"]
    assert listed == [{"name": "here", "default": True, "url": "http://127.0.0.1:1", "keys": []}]
    assert fairway(tmp_path, "profiles", "rm", "here", XDG_CONFIG_HOME=str(tmp_path)).status == 0
