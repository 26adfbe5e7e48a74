"""Where the SDK finds its server."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway import App
from fairway.sdk.http.settings import DEFAULT_URL, ClientSettings, find_settings


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("FAIRWAY_URL", "FAIRWAY_API_KEY", "FAIRWAY_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def write(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "client.json").write_text(text)


def test_nothing_said() -> None:
    assert find_settings() == ClientSettings(url=DEFAULT_URL, api_key="")


def test_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(tmp_path / ".fairway", '{"url": "http://file", "api_key": "from file"}')
    monkeypatch.setenv("FAIRWAY_API_KEY", "k")
    monkeypatch.setenv("FAIRWAY_URL", "http://env")
    assert find_settings() == ClientSettings(url="http://env", api_key="k")


def test_half_of_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another tenant's key goes to the platform of this folder, as with the commands; the key of
    this folder goes nowhere else."""
    monkeypatch.setenv("FAIRWAY_API_KEY", "k")
    assert find_settings() == ClientSettings(url=DEFAULT_URL, api_key="k")
    write(tmp_path / ".fairway", '{"url": "http://127.0.0.2:1", "api_key": "from file"}')
    assert find_settings() == ClientSettings(url="http://127.0.0.2:1", api_key="k")
    write(tmp_path / ".fairway", '{"url": "http://file", "api_key": "from file"}')
    assert find_settings() == ClientSettings(url=DEFAULT_URL, api_key="k"), "whose folder is it?"
    monkeypatch.delenv("FAIRWAY_API_KEY")
    monkeypatch.setenv("FAIRWAY_URL", "http://file/")
    assert find_settings() == ClientSettings(url="http://file", api_key="from file")
    monkeypatch.setenv("FAIRWAY_URL", "http://elsewhere")
    assert find_settings() == ClientSettings(url="http://elsewhere", api_key="")


def test_several_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are given them all, and what runs in a worker may enqueue."""
    monkeypatch.setenv("FAIRWAY_URL", "http://one:8700/, http://two:8700,http://one:8700,")
    assert find_settings().url == "http://one:8700,http://two:8700"


@pytest.mark.parametrize(
    "text", ["127.0.0.1:8700", "localhost", "http://", "ftp://x", ",", "http://a,b:1"]
)
def test_an_address_that_is_none_is_told_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="is no address of a server: write it as in http://"):
        find_settings(text)


def test_code_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRWAY_URL", "http://env")
    assert App("x", url="http://code", api_key="c").settings == ClientSettings(
        url="http://code", api_key="c"
    )


def test_the_file_of_this_folder(tmp_path: Path) -> None:
    write(tmp_path / ".fairway", '{"url": "http://file", "api_key": "k", "more": 1}')
    assert find_settings() == ClientSettings(url="http://file", api_key="k")


def test_the_file_of_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "data", '{"url": "http://data", "api_key": "k"}')
    monkeypatch.setenv("FAIRWAY_DATA_DIR", str(tmp_path / "data"))
    assert find_settings().url == "http://data"


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    write(tmp_path / ".fairway", '{"url": 1}')
    with pytest.raises(ValueError, match=r"client\.json is not what `fairway up` writes"):
        find_settings()
