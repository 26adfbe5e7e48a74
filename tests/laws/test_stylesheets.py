"""Pages by day and by night, on a desk and on a phone: what a stylesheet alone can tell."""

from __future__ import annotations

import re

import pytest
from tests.laws.source import ROOT

SHEETS = [
    "src/fairway/api/docs/docs.css",
    "src/fairway/lab/report/page.css",
    "examples/scoring/page/board.css",
    "examples/judge/page/judge.css",
]
#: `:root { … }`, the first by day, the second by night.
_ROOT = re.compile(r":root\s*\{([^}]*)\}")
_BOUNDED = re.compile(r"minmax\((?:[^()]|\([^()]*\))*\)")
_COLOUR = re.compile(r"(--[\w-]+):\s*#[0-9a-fA-F]{3,8}\b")


@pytest.mark.parametrize("sheet", SHEETS)
def test_every_colour_has_one_for_the_night(sheet: str) -> None:
    text = (ROOT / sheet).read_text("utf-8")
    day, night = (set(_COLOUR.findall(block)) for block in _ROOT.findall(text))
    assert day == night
    assert "prefers-color-scheme: dark" in text
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{}]*[;}])", _ROOT.sub("", text)) == []


@pytest.mark.parametrize("sheet", SHEETS)
def test_a_phone_has_a_layout_of_its_own(sheet: str) -> None:
    """And no grid has a column that a long word could push beyond the screen."""
    text = (ROOT / sheet).read_text("utf-8")
    assert "@media (max-width:" in text
    columns = re.findall(r"grid-template-columns:([^;]*);", text)
    assert [one for one in columns if "fr" in _BOUNDED.sub("", one)] == []


def test_a_page_is_as_wide_as_its_screen() -> None:
    pages = sorted(ROOT.glob("examples/*/page/*.html"))
    assert len(pages) == 2
    for page in pages:
        assert 'name="viewport" content="width=device-width' in page.read_text("utf-8"), page
