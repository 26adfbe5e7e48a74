"""Calls to servers of other regions: whichever of a region's addresses answers.

A region that does not answer a call of ours counts as away until the watch hears it again, so that
a home that hangs costs few callers their time. What a caller asked for may take as long as its
answer does: that nothing came in time is no sign, or one tenant would take a region from all.
Decides nothing about what is sent.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from fairway.core.errors import Unavailable
from fairway.core.regions.region_map import RegionMap
from fairway.runtime.plain_http import HttpClient, Reply, head_lines

REGION_SECRET = b"x-fairway-region-secret"
STATE_PATH = "/internal/region/state"
DIRECTORY_PATH = "/internal/region/directory"
JOBS_PATH = "/internal/region/jobs"
ROWS_PATH = "/internal/region/rows"
KNOWN_PATH = "/internal/region/known"
REMAINING_PATH = "/internal/region/remaining"
REPLY_BYTES_MAX = 32 << 20  # a page of the directory has some two, of a list of jobs less
PATHS = (STATE_PATH, DIRECTORY_PATH, JOBS_PATH, ROWS_PATH, KNOWN_PATH, REMAINING_PATH)
#: Whoever shows another secret hears that there is nothing.
NOT_FOR_US = (401, 403, 404)
#: No answer came, or none that says anything.
BROKEN = (OSError, TimeoutError)


class RegionAway(OSError):
    """None of a region's servers takes calls. `is_open`: one may have done what it was asked."""

    def __init__(self, region: str, *, is_open: bool) -> None:
        super().__init__(f"The region {region} does not answer.")
        self.is_open = is_open


class RegionRequest(NamedTuple):
    method: str
    path: str
    body: bytes
    lines: str  # of its head
    may_repeat: bool  # asked twice, it does the same
    #: How long it takes is for whoever asks to say: what takes too long says nothing of the region.
    of_a_caller: bool = False


class RegionPeers:
    def __init__(self, regions: RegionMap, secret: str) -> None:
        self._map = regions
        self._lines = head_lines({REGION_SECRET.decode(): secret})
        self._clients: dict[str, HttpClient] = {}
        self._last_good: dict[str, str] = {}  # region → address
        self.away: set[str] = set()
        self.refusing: set[str] = set()  # they answer, but not to our secret

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    async def call(self, region: str, path: str, body: bytes, seconds: float) -> bytes:
        """As a server of ours; what is asked may be asked twice. RegionAway: nobody answers."""
        return (await self.call_in_turn(region, path, body, seconds))[0]

    async def call_in_turn(
        self, region: str, path: str, body: bytes, seconds: float
    ) -> tuple[bytes, bool]:
        """As `call`; and whether another of its servers, which gave no answer, may have it too."""
        request = RegionRequest("POST", path, body, self._lines, may_repeat=True)
        reply, is_open = await self._in_turn(region, request, seconds)
        return self._good(region, reply, is_open=is_open), is_open

    async def ask_one(self, region: str, path: str, body: bytes, seconds: float) -> bytes:
        """As `call`, of one server alone: one that hangs takes no more time than that."""
        request = RegionRequest("POST", path, body, self._lines, may_repeat=False)
        return self._good(region, await self.pass_on(region, request, seconds))

    async def ask_any(self, region: str, path: str, seconds: float) -> bytes:
        """All its servers at once, the first answer counts: one that hangs holds up nobody."""
        urls = self._map.regions[region].urls
        calls = [asyncio.create_task(self._ask(url, path, seconds)) for url in urls]
        refused = False
        try:
            for call in asyncio.as_completed(calls):
                reply = await call
                if reply is not None and reply.status == 200:
                    self.refusing.discard(region)
                    return reply.body
                refused |= reply is not None and reply.status in NOT_FOR_US
        finally:
            for one in calls:
                one.cancel()
        self.missed(region)
        if refused:
            self.refusing.add(region)
        else:
            self.refusing.discard(region)
        raise RegionAway(region, is_open=False)

    async def _ask(self, url: str, path: str, seconds: float) -> Reply | None:
        try:
            return await self._client(url).call("POST", path, b"{}", seconds, self._lines)
        except BROKEN:
            return None

    async def pass_on(self, region: str, request: RegionRequest, seconds: float) -> Reply:
        """The first answer of any of its servers; another is asked if one surely did nothing."""
        return (await self._in_turn(region, request, seconds))[0]

    async def _in_turn(
        self, region: str, request: RegionRequest, seconds: float
    ) -> tuple[Reply, bool]:
        is_open, ours = False, not request.of_a_caller
        asked = request.method, request.path, request.body
        for url in self._addresses(region):
            try:
                reply = await self._client(url).call(*asked, seconds, request.lines)
            except ConnectionRefusedError:
                continue
            except BROKEN as error:
                is_open = True
                is_too_long = isinstance(error, TimeoutError) and not ours
                if not is_too_long:
                    self._last_good[region] = self._after(region, url)
                if is_too_long or not request.may_repeat:
                    break
            else:
                self._last_good[region] = url
                return reply, is_open
        if ours or not is_open:
            self.away.add(region)
        raise RegionAway(region, is_open=is_open)

    def missed(self, region: str) -> None:
        self.away.add(region)

    def heard(self, region: str) -> None:
        self.away.discard(region)

    def is_away(self, region: str) -> bool:
        return region in self.away

    def _good(self, region: str, reply: Reply, *, is_open: bool = False) -> bytes:
        if reply.status != 200:
            raise RegionAway(region, is_open=is_open or reply.status >= 500)
        return reply.body

    def _after(self, region: str, url: str) -> str:
        """Whom to begin with next time: one that hangs is not asked first again."""
        urls = self._map.regions[region].urls
        return urls[(urls.index(url) + 1) % len(urls)]

    def _addresses(self, region: str) -> list[str]:
        named = self._map.regions.get(region)  # None: the directory has a longer list
        urls = [] if named is None else list(named.urls)
        good = self._last_good.get(region)
        return [good, *(url for url in urls if url != good)] if good is not None else urls

    def _client(self, url: str) -> HttpClient:
        client = self._clients.get(url)
        if client is None:
            client = self._clients[url] = HttpClient(url, {}, REPLY_BYTES_MAX)
        return client


def home_away(region: str) -> Unavailable:
    return Unavailable(
        f"The tenant's home is the region {region}, and none of its servers answers. Try again when"
        " it is back.",
        code="HOME_UNREACHABLE",
    )


def region_away(region: str) -> Unavailable:
    """Of one that is neither: where a job may be that was accepted before its tenant moved."""
    return Unavailable(
        f"The region {region} has to be asked for this, too, and none of its servers answers. Try"
        " again when it is back."
    )


def directory_away(region: str) -> Unavailable:
    return Unavailable(
        f"Tenants, tiers, keys and homes are changed in the region {region}, and none of its"
        " servers answers. Nothing was changed. Bring it back; if it is lost, fail it over:"
        f" `fairway region failover {region} --to NAME`.",
        code="DIRECTORY_UNREACHABLE",
    )
