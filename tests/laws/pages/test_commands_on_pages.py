"""Every `fairway …` that a page shows is one that the commands understand; so is every variable."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.laws.source import ROOT

from fairway.cli.main import app
from fairway.runtime.settings import FOREIGN, PREFIX, Settings

PAGES = [ROOT / "README.md", ROOT / "examples/README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCED = re.compile(r"```(?:sh|console|ini)\n(.*?)```", re.DOTALL)
INDENTED = re.compile(r"^ {4}(fairway .*)$", re.MULTILINE)
COMMAND = re.compile(r"(?:^|[\s/$(])fairway ((?:[\w-]+)[^`)#;&>|]*)", re.MULTILINE)
OPTION_OF_USAGE = re.compile(r"\b(COMMAND|OPTIONS|ARGS)\b")


def commands_on(page: Path) -> Iterator[str]:
    text = page.read_text("utf-8")
    for block in (*FENCED.findall(text), *INDENTED.findall(text)):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            told = line.removeprefix("$ ").partition("  #")[0]
            if not line.startswith(("Description", "User")) and not OPTION_OF_USAGE.search(told):
                yield from COMMAND.findall(told)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_on_a_page_are_understood(page: Path) -> None:
    wrong = []
    for command in commands_on(page):
        try:
            app.parse_args(shlex.split(command), exit_on_error=False, print_error=False)
        except Exception as error:
            wrong.append(f"fairway {command}: {error}")
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_variables_on_a_page_are_settings(page: Path) -> None:
    known = {field.name.upper() for field in dataclasses.fields(Settings)} | FOREIGN
    told = set(re.findall(rf"\b{PREFIX}([A-Z][A-Z_]+[A-Z])\b", page.read_text("utf-8")))
    assert told - known == set()
