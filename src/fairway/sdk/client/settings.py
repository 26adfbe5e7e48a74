"""Where the server is and which key opens it.

What the code says comes first, then FAIRWAY_URL and FAIRWAY_API_KEY. When neither of the two is
set, the file that `fairway up` leaves on its own machine is read: `client.json` in
FAIRWAY_DATA_DIR, or in `.fairway` of the current folder. Of several addresses, which are for
workers, the first is used.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

DEFAULT_URL = "http://127.0.0.1:8700"


class ClientSettings(msgspec.Struct, kw_only=True, frozen=True):
    """The shape of `client.json`, too."""

    url: str = DEFAULT_URL
    api_key: str = ""


def find_settings(url: str | None = None, api_key: str | None = None) -> ClientSettings:
    url = url or os.environ.get("FAIRWAY_URL")
    api_key = api_key or os.environ.get("FAIRWAY_API_KEY")
    if url or api_key:
        return ClientSettings(url=checked_url(url or DEFAULT_URL), api_key=api_key or "")
    return _from_file(Path(os.environ.get("FAIRWAY_DATA_DIR") or ".fairway") / "client.json")


def checked_url(text: str) -> str:
    """The first of the addresses; ValueError now, not "no answer" after all our patience."""
    url = text.split(",")[0].strip().rstrip("/")
    scheme, _, host = url.partition("://")
    if scheme not in ("http", "https") or not host:
        raise ValueError(
            f"{url!r} is no address of a server: write it as in {DEFAULT_URL} (FAIRWAY_URL or url=)"
        )
    return url


def _from_file(path: Path) -> ClientSettings:
    if not path.is_file():
        return ClientSettings()
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClientSettings)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path} is not what `fairway up` writes: {error}") from error
