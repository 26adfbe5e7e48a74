"""Makes `docs/CLI.md` from the commands themselves: `python -m tests.laws.cli_page` writes it.

What every command that asks a server takes is said once, above the mark, by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cyclopts import App

from fairway.cli.main import COMMANDS, MEASURE, app

PAGE = Path(__file__).parents[2] / "docs/CLI.md"
MARK = "<!-- From here on made from the code. -->\n"
SHARED = re.compile(r"\*\*(?:Output|Server)\*\*:\n\n(?:\* .*\n)+\n?")
#: Said by the name of the option already.
NOISE = re.compile(r" \*\[default: False\]\*|, --empty-[\w-]+| +$", re.MULTILINE)


@cache
def page() -> str:
    found = [PAGE.read_text("utf-8").partition(MARK)[0] + MARK]
    for group, commands in COMMANDS.items():
        if group is MEASURE:  # they have pages of their own
            continue
        found.append(f"## {group.name}\n")
        found += [part for name in commands for part in _parts(app[name], name)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(found)).rstrip() + "\n"


def _parts(command: App, name: str) -> Iterator[str]:
    text = command.generate_docs(heading_level=3, usage_name=f"fairway {name}")
    text = text.replace(" -m tests.laws.cli_page", "")  # who asks is named after some commands
    text = re.sub(r"#+ Table of Contents\n\n(?:\s*- .*\n)+", "", text)
    text = NOISE.sub("", SHARED.sub("", text)).replace(f"](#{name}", f"](#fairway-{name}")
    yield re.sub(rf"^(#+) (?:fairway )?{name}\b", rf"\1 fairway {name}", text, flags=re.MULTILINE)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
