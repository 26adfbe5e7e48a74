"""The web app's files: read once, kept whole and compressed, told from each other by their content.

They are built from `web/` (`make web`) and are no part of the repository; where they were not
built, there are none. What is not among them cannot be asked for, whatever a path says.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"
FILE_BYTES_MAX = 4 << 20

MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
}
PACKED = (".png", ".woff2")  # they are compressed already
_HASHED = re.compile(r".+-[0-9A-Z]{8}\.\w+")  # as esbuild names what never changes
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"


class StaticFile(NamedTuple):
    body: bytes
    packed: bytes | None  # by gzip, where that is smaller
    etag: str
    media: str
    kept: str  # for Cache-Control


@cache
def load(folder: Path = FOLDER) -> Mapping[str, StaticFile]:
    """By name; none where nothing was built."""
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return {
        one.name: _read(one)
        for one in found
        if one.suffix in MEDIA and one.is_file() and one.stat().st_size <= FILE_BYTES_MAX
    }


def is_built(folder: Path = FOLDER) -> bool:
    return INDEX in load(folder)


def _read(path: Path) -> StaticFile:
    body = path.read_bytes()
    packed = None if path.suffix in PACKED else gzip.compress(body, 9, mtime=0)
    return StaticFile(
        body,
        packed if packed is not None and len(packed) < len(body) else None,
        hashlib.sha256(body).hexdigest()[:32],
        MEDIA[path.suffix],
        FOR_EVER if _HASHED.fullmatch(path.name) else ASK_AGAIN,
    )
