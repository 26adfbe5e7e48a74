"""How `--help` looks: as cyclopts has it, with paragraphs as wide as the screen.

A docstring is broken where our lines end, which is wider than many screens: each of its lines would
be broken twice. Nothing of it is loaded before somebody asks for help.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from cyclopts.help.formatters import DefaultFormatter
    from rich.console import Console, ConsoleOptions

#: An end of a line within a paragraph: what is indented, or begins as an item of a list, stays.
_BROKEN = re.compile(r"(?<=\S)\n(?=[^\s*-])")


def paragraphs(text: str) -> str:
    """Each on a line of its own."""
    return _BROKEN.sub(" ", text)


class HelpText:
    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        entries = [entry.copy(description=_joined(entry.description)) for entry in panel.entries]
        _usual()(console, options, panel.copy(entries=entries))

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        _usual().render_usage(console, options, usage)

    def render_description(
        self, console: Console, options: ConsoleOptions, description: Any
    ) -> None:
        from cyclopts.help import InlineText

        text = getattr(getattr(description, "primary_renderable", None), "plain", "")
        if text:
            joined = paragraphs(text)
            description = InlineText.from_format(joined, "plaintext", force_empty_end=True)
        _usual().render_description(console, options, description)


def _joined(description: Any) -> Any:
    """Of a command or a parameter; what is put behind its words (default, choices) stays there."""
    from cyclopts.help import InlineText

    text = getattr(getattr(description, "primary_renderable", None), "plain", "")
    if not text:
        return description
    joined = InlineText.from_format(paragraphs(text), "plaintext")
    for more in description.texts:
        joined.append(more)
    return joined


def _usual() -> DefaultFormatter:
    from cyclopts.help.formatters import DefaultFormatter

    return DefaultFormatter()
