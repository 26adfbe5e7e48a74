"""`fairway dashboard`: a link that signs your browser in, once. Opens nothing by itself."""

from __future__ import annotations

from urllib.parse import urlsplit

from fairway.cli.remote import PLAIN, Options


def dashboard(*, options: Options = PLAIN) -> None:
    """Print a link that signs your browser in to the dashboard: once, within ten minutes.

    As the operator whose key is shown; with a tenant's key alone, sign in at /ui with the key.
    """
    remote = options.operator()
    made = remote.call("POST", "/session/links")
    parts = urlsplit(made["url"])
    # The server knows itself by another name, perhaps; this one reached it from here.
    made["url"] = f"{remote.url}{parts.path}#{parts.fragment}"
    options.record(made, made["url"])
