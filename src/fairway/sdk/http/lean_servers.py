"""The lean way to whichever server of a platform answers: each has its own connections.

A server that gives no answer is left for the next, as `addresses.py` says; so is an owner that a
reply named. It lives on one event loop.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.sdk.http.addresses import Addresses
from fairway.sdk.http.lean_http import LeanHttp
from fairway.sdk.http.transport import NotNow, Question

OTHERS_MAX = 8  # owners that we were told of, and keep connections to


class LeanServers:
    def __init__(
        self, addresses: Addresses, headers: Mapping[str, str], patience_seconds: float
    ) -> None:
        self._addresses = addresses
        self._headers = headers
        self._patience_seconds = patience_seconds
        self._servers = {url: self._open(url) for url in addresses.all}

    def _open(self, url: str) -> LeanHttp:
        def heard(owner: str | None) -> None:
            self._addresses.answered(url)
            self._addresses.learn(owner)

        return LeanHttp(url, self._headers, str(self._addresses), heard)

    async def attempt(self, question: Question, left_seconds: float) -> bytes:
        """One try: the body of a good answer; NotNow when another may bring one."""
        url = self._addresses.pick()
        try:
            return await self._attempt(url, question, left_seconds)
        except NotNow as not_now:
            # One that may have been heard is a try: whoever asked must know of it before the next.
            is_try = not_now.is_sent or not self._addresses.is_short_cut(url)
            if is_try or not not_now.is_elsewhere:
                raise
        return await self._attempt(self._addresses.current, question, left_seconds)

    async def _attempt(self, url: str, question: Question, left_seconds: float) -> bytes:
        content_bytes = len(question.content or b"")
        share = self._addresses.try_seconds(url, self._patience_seconds, content_bytes)
        left_seconds = min(left_seconds, share + question.wait_seconds)
        try:
            return await self._server(url).attempt(question, left_seconds)
        except NotNow as not_now:
            if not_now.is_elsewhere:
                self._addresses.leave(url)
            raise

    def _server(self, url: str) -> LeanHttp:
        server = self._servers.get(url)
        if server is None:
            given = len(self._addresses.all)
            if len(self._servers) >= given + OTHERS_MAX:
                self._servers.pop(list(self._servers)[given]).close_idle()
            server = self._servers[url] = self._open(url)
        return server

    def close_idle(self) -> None:
        for server in self._servers.values():
            server.close_idle()
