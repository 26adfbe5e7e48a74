"""Addresses of servers, as others are told them: what a client can be sent to. Calls none."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def wrong_addresses(**settings: str | None) -> list[str]:
    """A sentence for each that is given and is none: jobs would wait for a server nobody finds."""
    return [
        f"FAIRWAY_{name.upper()} is {url!r}: name the address of this server as others reach it,"
        " such as http://10.0.0.1:8700."
        for name, url in settings.items()
        if url is not None and not is_address(url)
    ]
