"""Large arguments and results go all the way: client, storage, worker, storage, client."""

from __future__ import annotations

from tests.acceptance.house import House
from tests.acceptance.jobs import echo

from fairway.sdk.client import Client
from fairway.sdk.door import Submission
from fairway.sdk.handle import Handle
from fairway.sdk.settings import ClientSettings

TEXT = "abc" * 2_000_000


async def test_six_megabytes_there_and_back(house: House) -> None:
    """Over what goes with a request: the client uploads it by itself."""
    await house.open()
    client = Client(ClientSettings(url=house.urls[0], api_key=house.api_key))
    request = echo.options().request((TEXT,), {})
    job = await client.submit(Submission(echo, request))
    handle: Handle[str] = Handle(client, job, echo.codec.decode_result)
    assert await handle.aresult(timeout=30) == TEXT[::-1]
    view = await house.view(job)
    assert view["payload_bytes"] > 6_000_000
    assert view["result_bytes"] > 6_000_000
    await client.aclose()
