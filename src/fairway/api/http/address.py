"""The address that a page was asked under, for examples in it and links to it.

It comes from whoever asks, so it is a name and a port or nothing: it stands in a page, and in
commands that people paste into a shell. What a proxy says of itself (`Forwarded`) is not read, for
anybody may say it; a browser's own address replaces this one once the page is there.
"""

from __future__ import annotations

import re
from typing import Any

#: Where the address goes in a page that is made once. No text has this character.
PLACE = "\0"

_HOST = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")


def address_of(scope: dict[str, Any]) -> str:
    """By the `Host` of a request; one that cannot be, or none, is where the server listens."""
    asked = next((value for name, value in scope["headers"] if name == b"host"), b"")
    host = asked.decode("latin1")
    if not _HOST.fullmatch(host):
        host = _listening(scope["server"])
    return f"{scope['scheme']}://{host}"


def _listening(server: tuple[str, int | None] | None) -> str:
    name, port = server or ("127.0.0.1", None)
    shown = f"[{name}]" if ":" in name else name
    return shown if port is None else f"{shown}:{port}"
