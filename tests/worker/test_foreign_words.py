"""What user code says or a tenant uploaded fails its own job: real runners, and those beside it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from tests.worker.pipe.test_pipe import SPLICE
from tests.worker.platform import Platform, ended, job_id, lease, said_of, until, working
from tests.worker.test_processes import has_begun, result_of, runners

from fairway.wire.exchange import Lease
from fairway.worker import transfers
from fairway.worker.exchange.large_results import in_frames
from fairway.worker.pipe import pipe
from fairway.worker.pipe.pipe import _LENGTH, RunnerMessage

ODD = {"target": "tests.worker.odd_jobs:app", "slots": {"short": 8, "medium": 8, "long": 2}}
MB = 1 << 20


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    async with Platform().open() as opened:
        yield opened


def framed(words: RunnerMessage) -> str:
    text = msgspec.json.encode(words)
    return (_LENGTH.pack(len(text)) + text).hex()


def saying(number: int, written: str, **more: Any) -> Lease:
    return lease(number, "say", "short", {"written": written, **more})


@pytest.mark.parametrize(
    "written",
    [
        _LENGTH.pack(5) + b"no {}",
        _LENGTH.pack(pipe.WORDS_BYTES_MAX + 1) + b"{",
        b"\xff" * 64,
        bytes.fromhex(framed(RunnerMessage(ended=[ended(job_id(2), "won")]))),
    ],
    ids=["no json", "too long", "noise", "no end"],
)
async def test_a_runner_that_says_garbage_costs_only_itself(
    platform: Platform, written: bytes
) -> None:
    """Beside it a job in a process of its own goes on, and so does the worker."""
    platform.leases = [lease(1, "lone", "long", {"seconds": 2.0})]
    async with working(platform, **ODD) as life:
        await until(lambda: has_begun(platform, 1), life, "the job beside it runs")
        platform.leases = [saying(2, written.hex(), seconds=600)]
        await until(lambda: job_id(2) in platform.heard, life, "its runner is gone")
        platform.leases = [lease(3)]
        await until(lambda: len(platform.heard) == 3, life, "all ended")
    lost = platform.heard[job_id(2)]
    assert lost.failure == "worker_crash"
    assert "said what cannot be read" in said_of(lost)["message"]
    assert [platform.heard[job_id(one)].kind for one in (1, 3)] == ["succeeded"] * 2


async def test_a_runner_cannot_speak_for_a_job_of_another(platform: Platform) -> None:
    forged = RunnerMessage(
        ended=[ended(job_id(1), result=Raw(b'"forged"'))],
        progress=[pipe.Progress(job=job_id(1), progress=Raw(b'"forged"'))],
    )
    platform.leases = [lease(1, "lone", "long", {"seconds": 1.0})]
    async with working(platform, **ODD) as life:
        await until(lambda: has_begun(platform, 1), life, "the other job runs")
        platform.leases = [saying(2, framed(forged))]
        await until(lambda: len(platform.heard) == 2, life, "both ended")
    assert isinstance(result_of(platform, 1), int)
    assert isinstance(result_of(platform, 2), int)
    told = [one for call in platform.calls for one in call.running or ()]
    assert all(bytes(one.progress) != b'"forged"' for one in told)


@pytest.mark.parametrize("where", ["result", "checkpoint", "progress"])
async def test_bytes_in_place_of_json_fail_their_own_job(platform: Platform, where: str) -> None:
    foreign = [b"}}}} no json", b'1},{"job":"x"', b'"\xff"', b"[" * 3000]
    platform.leases = [lease(1, payload={"seconds": 1.0})] + [
        lease(number, "raw", "short", {"written": written.hex(), "where": where})
        for number, written in enumerate(foreign, 2)
    ]
    async with working(platform, **ODD) as life:
        await until(lambda: len(platform.heard) == 5, life, "all ended")
        (runner,) = runners()
    assert result_of(platform, 1) == runner
    failed = [platform.heard[job_id(number)].failure for number in range(2, 6)]
    # Progress that cannot be said is an error like any other.
    assert failed == ["app_error" if where == "progress" else "permanent"] * 4


async def test_a_type_that_is_not_there_fails_its_own_job(platform: Platform) -> None:
    platform.leases = [lease(1, payload={"seconds": 0.5}), lease(2, "unknown")]
    async with working(platform, **ODD) as life:
        await until(lambda: len(platform.heard) == 2, life, "both ended")
        (runner,) = runners()
    assert result_of(platform, 1) == runner
    assert platform.heard[job_id(2)].failure == "app_error"


def fetching(number: int, body: bytes, **more: Any) -> Lease:
    digest = hashlib.sha256(body).hexdigest()
    return lease(number, payload_bytes=len(body), **{"payload_sha256": digest, **more})


async def test_what_was_uploaded_is_a_payload_and_nothing_else(platform: Platform) -> None:
    """Should the platform have let it in: it fails its job, and reaches nobody else's."""
    foreign = [SPLICE, b"}}}} no json", b'{"seconds":"\xff"}', b"[" * 5000]
    bodies = {job_id(number): body for number, body in enumerate(foreign, 2)}
    platform.errand = lambda path: (200, bodies[path.partition("?")[0].rpartition("/")[2]])
    platform.leases = [lease(1, payload={"seconds": 1.0})]
    platform.leases += [fetching(number, body) for number, body in enumerate(foreign, 2)]
    async with working(platform, **ODD) as life:
        await until(lambda: len(platform.heard) == 5, life, "all ended")
        (runner,) = runners()
    assert result_of(platform, 1) == runner
    assert set(platform.heard) == {job_id(number) for number in range(1, 6)}
    assert {platform.heard[job].kind for job in bodies} == {"failed"}


async def test_a_payload_that_came_otherwise_than_it_was_sent_is_fetched_again_later(
    platform: Platform,
) -> None:
    body = b'{"seconds":0.0}'
    platform.errand = lambda path: (200, body)
    platform.leases = [
        fetching(1, body),
        fetching(2, body, payload_sha256="0" * 64),
        fetching(3, body + b" "),
        fetching(4, body, payload_sha256=None),
    ]
    async with working(platform, **ODD) as life:
        await until(lambda: len(platform.heard) == 4, life, "all were reported")
    found = {number: platform.heard[job_id(number)] for number in (1, 2, 3, 4)}
    assert [one.kind for one in found.values()] == ["succeeded", "snoozed", "snoozed", "succeeded"]
    assert found[2].delay_ms == transfers.PUT_OFF_MS


async def test_a_state_that_the_platform_refuses_ends_its_job(platform: Platform) -> None:
    refusal = {"status": 422, "code": "INVALID_REQUEST", "detail": "The state cannot be kept: no."}
    platform.errand = lambda path: (422, msgspec.json.encode(refusal))
    payload = {"written": b'"\\u0000"'.hex(), "where": "checkpoint"}
    platform.leases = [lease(1, "raw", "short", payload)]
    async with working(platform, **ODD) as life:
        await until(lambda: len(platform.heard) == 1, life, "it ended")
    failed = platform.heard[job_id(1)]
    assert (failed.failure, said_of(failed)["type"]) == ("permanent", "CheckpointRefused")


def test_much_that_ends_at_once_goes_in_several_frames() -> None:
    """Far less each than a keeper hears in one."""
    text = b'"%b"' % (b"x" * (12 * MB))
    ends = [ended(str(number), result=Raw(text)) for number in range(4)]
    frames = list(in_frames(ends, [pipe.Progress(job="0", progress=Raw(b"1"))], []))
    assert [one.job for words in frames for one in words.ended] == ["0", "1", "2", "3"]
    assert max(len(msgspec.json.encode(words)) for words in frames) < pipe.WORDS_BYTES_MAX // 4
    assert frames[0].progress
