"""Where the server is and which key opens it.

What the code says comes first, then FAIRWAY_URL and FAIRWAY_API_KEY. What is still missing is
read from the file that `fairway up` leaves on its own machine: `client.json` in FAIRWAY_DATA_DIR,
or in `.fairway` of the current folder. As for the commands, a key of that file is shown to the
address of that file only, and another key to that address only if it is this machine's: a folder
that came from somebody else must not learn it. Several servers stand in one text, with commas, and
several regions with semicolons; `addresses.py` says which of them is asked.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from fairway.sdk.http.addresses import DEFAULT_URL as DEFAULT_URL
from fairway.sdk.http.addresses import checked_regions, is_this_machine, text_of


class ClientSettings(msgspec.Struct, kw_only=True, frozen=True):
    """The shape of `client.json`, too."""

    url: str = DEFAULT_URL
    api_key: str = ""
    acting_for: str = ""  # a tenant, for which an operator's key acts


def find_settings(url: str | None = None, api_key: str | None = None) -> ClientSettings:
    url = url or os.environ.get("FAIRWAY_URL")
    api_key = api_key or os.environ.get("FAIRWAY_API_KEY")
    if url:
        url = text_of(checked_regions(url))
        if api_key:
            return ClientSettings(url=url, api_key=api_key)
    kept = _from_file(Path(os.environ.get("FAIRWAY_DATA_DIR") or ".fairway") / "client.json")
    if url and url != kept.url:
        return ClientSettings(url=url)
    if api_key and not is_this_machine(kept.url):
        return ClientSettings(api_key=api_key)
    return ClientSettings(url=kept.url, api_key=api_key or kept.api_key)


def _from_file(path: Path) -> ClientSettings:
    if not path.is_file():
        return ClientSettings()
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClientSettings)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path} is not what `fairway up` writes: {error}") from error
