"""Makes the table of `docs/CAPACITY.md`: `python -m tests.laws.pages.capacity_page` writes it.

What the figures mean is said once, above the mark, by hand.
"""

from __future__ import annotations

from pathlib import Path

from fairway.simulate import capacity

PAGE = Path(__file__).parents[3] / "docs/CAPACITY.md"
MARK = "<!-- From here on made from the code. -->\n"


def page() -> str:
    return PAGE.read_text("utf-8").partition(MARK)[0] + MARK + "\n" + capacity.page()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
