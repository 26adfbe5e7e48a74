"""Pictures for docs, at 1440 and 390 pixels: `make pictures` puts them where docs have them.

Each is of a page that holds together: it is no wider than its window, and nothing failed to load.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Page, expect
from tests.api.house import House, own_house
from tests.browser.accessibility import settled
from tests.browser.aside import Aside, sign_in
from tests.browser.picture_scene import furnished
from tests.postgres import Server

pytestmark = pytest.mark.slow

DESK, LOW, PHONE = (1440, 1000), (1440, 680), (390, 844)
HALF = 128  # of the colours that a small picture has
BYTES_MAX = 150_000
PICTURES = {
    "tenants": ("tenants", LOW, "light"),
    "overview": ("", DESK, "light"),
    "overview-dark": ("", DESK, "dark"),
    "overview-phone": ("", PHONE, "light"),
    "job": ("jobs/{job}?tenant={tenant}", (1440, 780), "light"),
    "failures": ("failures?tenant={tenant}", LOW, "light"),
    "flow": ("flows/{flow}?tenant={tenant}", LOW, "light"),
    "events": ("events?tenant={tenant}", LOW, "light"),
    "audit": ("audit", LOW, "light"),
}
expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def house(postgres_server: Server) -> Iterator[House]:
    """A platform of its own: nobody else's tenants are in the picture."""
    with own_house(postgres_server, "picture_tests") as house:
        yield house


@pytest.fixture
def names(house: House) -> Iterator[dict[str, str]]:
    aside = Aside()
    with furnished(house, aside) as names:
        yield names
    aside.close()


def _kept(picture: bytes, path: Path) -> None:
    """With few colours, so that it is small: the common ones as they are, the rare ones nearly."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    colours: list[Any] = sorted(image.getcolors(image.width * image.height) or (), reverse=True)
    assert len(colours) > HALF, "an empty page"
    rare = image.quantize(HALF, Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([*chain.from_iterable(one for _, one in colours[:HALF]), *rare[: 3 * HALF]])
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)
    assert path.stat().st_size < BYTES_MAX, path


def test_pictures_are_taken(
    page: Page, house: House, names: dict[str, str], tmp_path: Path
) -> None:
    folder = Path(os.environ.get("FAIRWAY_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    sign_in(page, house.operator_key)
    for name, (path, (width, height), theme) in PICTURES.items():
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]  # one of two
        page.goto(f"/ui/{path.format(**names)}")
        settled(page)
        if path == "tenants":  # shares are told once there is some time to tell them of
            expect(page.get_by_role("row").filter(has_text="acme")).to_contain_text("%")
        if path == "":
            expect(page.locator(".live")).to_have_text("Live")
            long = page.locator(".pool-card").filter(has=page.get_by_role("link", name="long"))
            expect(long).to_contain_text("5 wait for a worker that runs their type")
            expect(page.locator("canvas").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        _kept(page.screenshot(), folder / f"{name}.png")
