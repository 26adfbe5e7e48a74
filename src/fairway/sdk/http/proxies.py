"""Whether a proxy stands between this program and its server, by the machine's own settings."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def is_proxied(url: str) -> bool:
    """By HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, as the general HTTP client reads them."""
    parts, proxies = urlsplit(url), getproxies()
    if parts.scheme not in proxies and "all" not in proxies:
        return False
    return not proxy_bypass(parts.hostname or "")
