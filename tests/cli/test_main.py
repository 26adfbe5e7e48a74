"""The command tree: help that comes at once, mistakes that are answered in words."""

from __future__ import annotations

import resource
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.cli.program import fairway

HELP_SECONDS_MAX = 0.4


def test_help_names_every_command(tmp_path: Path) -> None:
    ended = fairway(tmp_path, "--help")
    assert ended.status == 0
    for command in ("up", "server", "worker", "check", "bench"):
        assert command in ended.out
    assert list(tmp_path.iterdir()) == []


def test_help_comes_at_once(tmp_path: Path) -> None:
    """In processor time, and the best of a few: the machine may be busy with other things."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    seconds = []
    for _ in range(5):
        before = spent()
        assert fairway(tmp_path, "--help").status == 0
        seconds.append(spent() - before)
    assert min(seconds) < HELP_SECONDS_MAX


@pytest.mark.parametrize("command", ["up", "server", "worker", "check", "bench"])
def test_every_command_has_help(tmp_path: Path, command: str) -> None:
    ended = fairway(tmp_path, command, "--help")
    assert ended.status == 0
    assert f"fairway {command}" in ended.out


def test_version(tmp_path: Path) -> None:
    assert fairway(tmp_path, "--version").out.strip() == version("fairway")


@pytest.mark.parametrize("words", [["nonsense"], ["up", "--prot", "1"], ["worker"]])
def test_a_mistyped_command_is_no_traceback(tmp_path: Path, words: list[str]) -> None:
    ended = fairway(tmp_path, *words)
    assert ended.status != 0
    assert "Traceback" not in ended.out + ended.err
    assert ended.out + ended.err


def test_a_server_needs_a_database(tmp_path: Path) -> None:
    ended = fairway(tmp_path, "server")
    assert ended.status == 1
    assert ended.err.startswith("fairway: Set FAIRWAY_DATABASE_URL")
