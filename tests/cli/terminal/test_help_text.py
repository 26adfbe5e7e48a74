"""Help on a screen of any width."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import fairway

from fairway.cli.terminal.help_text import paragraphs


def test_a_paragraph_is_one_line_and_lists_stay() -> None:
    text = "First.\n\nA sentence that\ngoes on.\n- one\n- two\n    code"
    assert paragraphs(text) == "First.\n\nA sentence that goes on.\n- one\n- two\n    code"


def test_words_of_a_parameter_are_one_line_too(tmp_path: Path) -> None:
    """The docstring is broken within this sentence."""
    ended = fairway(tmp_path, "server", "--help", COLUMNS="160")
    assert "one on up to 2 of them, since PostgreSQL and workers need some" in ended.out
