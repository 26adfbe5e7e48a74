"""Help on a screen of any width."""

from __future__ import annotations

from fairway.cli.terminal.help_text import paragraphs


def test_a_paragraph_is_one_line_and_lists_stay() -> None:
    text = "First.\n\nA sentence that\ngoes on.\n- one\n- two\n    code"
    assert paragraphs(text) == "First.\n\nA sentence that goes on.\n- one\n- two\n    code"
