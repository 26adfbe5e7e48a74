"""The lean way to whichever server of a platform answers: each has its own connections.

A server that gives no answer is left for the next, as `addresses.py` says. It lives on one event
loop.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.sdk.http.addresses import Addresses
from fairway.sdk.http.lean_http import LeanHttp
from fairway.sdk.http.transport import NotNow, Question


class LeanServers:
    def __init__(
        self, addresses: Addresses, headers: Mapping[str, str], patience_seconds: float
    ) -> None:
        self._addresses = addresses
        self._share_seconds = addresses.share_seconds(patience_seconds)
        self._servers = {url: LeanHttp(url, headers, str(addresses)) for url in addresses.all}

    async def attempt(self, question: Question, left_seconds: float) -> bytes:
        """One try: the body of a good answer; NotNow when another may bring one."""
        url = self._addresses.current
        try:
            return await self._servers[url].attempt(
                question, min(left_seconds, self._share_seconds)
            )
        except NotNow as not_now:
            if not_now.is_elsewhere:
                self._addresses.leave(url)
            raise

    def close_idle(self) -> None:
        for server in self._servers.values():
            server.close_idle()
