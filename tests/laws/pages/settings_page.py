"""Makes `docs/SETTINGS.md` from `Settings`: `python -m tests.laws.pages.settings_page` writes it.

What programs other than servers read is said once, above the mark, by hand.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

from fairway.core.pools import BY_NAME
from fairway.runtime.settings import PREFIX, Settings

PAGE = Path(__file__).parents[3] / "docs/SETTINGS.md"
MARK = "<!-- From here on made from the code. -->\n"
KINDS = {
    bool: "`true`, `false`",
    int: "whole number",
    float: "number",
    str: "text",
    str | None: "text",
    Path: "folder",
    Path | None: "folder",
    dict[str, float]: "`pool=number,…`",
}


def page() -> str:
    lines = ["| variable | kind | default | |", "|---|---|---|---|"]
    hints, meanings = get_type_hints(Settings), dict(meanings_of_fields())
    for one in dataclasses.fields(Settings):
        name, kind = f"`{PREFIX}{one.name.upper()}`", KINDS[hints[one.name]]
        lines.append(f"| {name} | {kind} | {_default(one)} | {meanings[one.name]} |")
    above = PAGE.read_text("utf-8").partition(MARK)[0]
    return above + MARK + "\n" + "\n".join(lines) + "\n"


def meanings_of_fields() -> Iterator[tuple[str, str]]:
    """The text below each field, in one line."""
    (tree,) = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(tree, ast.ClassDef)
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(ast.Constant(str() as text)):
                    yield field.target.id, " ".join(text.split()).replace("|", "\\|")


def _default(one: dataclasses.Field[Any]) -> str:
    if one.name == "lease_seconds":
        return (
            "`" + ",".join(f"{pool.name}={pool.lease_seconds:g}" for pool in BY_NAME.values()) + "`"
        )
    if one.default is None:
        return "–"
    value = one.default
    if isinstance(value, bool):
        return f"`{value}`".lower()
    size = f" ({_size(value)})" if "bytes" in one.name and isinstance(value, int) else ""
    return (f"`{value:g}`" if isinstance(value, float) else f"`{value}`") + size


def _size(size_bytes: int) -> str:
    unit = next(power for power in (30, 20, 10) if size_bytes >> power)
    return f"{size_bytes >> unit} {({30: 'GB', 20: 'MB', 10: 'KB'})[unit]}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
