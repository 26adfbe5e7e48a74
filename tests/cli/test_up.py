"""`fairway up` with an app that is not there or does not load: it ends, and says why."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.cli.program import fairway


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["typo:app"], "there is no module 'typo' (looked from {folder})."),
        (["typo.py:app"], "there is no file typo.py (looked from {folder})."),
        (["typo"], "'typo' is not of the form 'module:name' or 'file.py:name'."),
        (
            ["--beside", "json.tool", "sample:app"],
            "--beside sample:app: this is an app; name apps before --beside.",
        ),
    ],
)
def test_a_slip_is_said_before_anything_is_started(
    tmp_path: Path, words: list[str], sentence: str
) -> None:
    ended = fairway(tmp_path, "up", *words)
    assert ended.status == 1
    assert ended.err == f"fairway: {sentence.format(folder=tmp_path)}\n"
    assert list(tmp_path.iterdir()) == []


def test_an_app_that_cannot_be_imported_ends_it(tmp_path: Path, database_url: str) -> None:
    """It would be started again and again, each time with the same words."""
    (tmp_path / "broken.py").write_text("import a_library_that_is_not_there\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    ended = fairway(tmp_path, "up", "broken:app", "--port", port, FAIRWAY_DATABASE_URL=database_url)
    assert ended.status == 1
    assert "No module named 'a_library_that_is_not_there'" in ended.err
    assert "starting it again" not in ended.err
    last = ended.err.splitlines()[-1]
    assert last == "fairway: broken:app cannot be loaded; see the words above."
