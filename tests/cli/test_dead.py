"""`fairway dead …` before it asks a server: what is too little to act on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.program import fairway

SERVER = {"FAIRWAY_URL": "http://127.0.0.1:9", "FAIRWAY_API_KEY": "nobody asks"}


@pytest.mark.parametrize("words", [("replay",), ("discard", "--type", "")])
def test_a_filter_that_is_empty_narrows_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    """As `--type "$TYPE"` of a script that forgot to set it: else all of them would go."""
    ended = fairway(tmp_path, "dead", *words, **SERVER)
    assert ended.status == 1
    assert "Say which: an id, a filter such as --type, or --all." in ended.err
