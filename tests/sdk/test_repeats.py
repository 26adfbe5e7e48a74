"""Cancel and replay, when the reply to the first try is lost: the repeat is no refusal."""

from __future__ import annotations

import pytest
from tests.sdk.tiny_server import TinyServer

from fairway import App, Job
from fairway.core.errors import Conflict, NotFound

ScoreJob = Job[[str, str], None]
LOSE_SECOND = ("as it should", "drop")  # the look at the job, and then the replay


@pytest.fixture
def score(app: App) -> ScoreJob:
    @app.job(pool="medium")
    async def score(cv_id: str, rubric: str) -> None:
        return None

    return score


async def test_a_cancel_whose_reply_is_lost_is_a_cancel(
    score: ScoreJob, server: TinyServer
) -> None:
    handle = await score.aenqueue("cv1", "r1")
    server.moods.append("drop")
    assert (await handle.acancel()).state == "cancelled"
    assert [path.split()[0] for path in server.paths()[-3:]] == ["DELETE", "DELETE", "GET"]


async def test_a_cancel_that_came_too_late_says_so_on_a_repeat_as_well(
    score: ScoreJob, server: TinyServer
) -> None:
    handle = await score.aenqueue("cv1", "r1")
    server.finish(handle.id, "succeeded")
    server.moods.append("drop")
    with pytest.raises(Conflict, match="succeeded"):
        await handle.acancel()


async def test_a_cancel_of_a_job_that_is_cancelled_is_refused_at_the_first_try(
    score: ScoreJob, server: TinyServer
) -> None:
    handle = await score.aenqueue("cv1", "r1")
    await handle.acancel()
    with pytest.raises(Conflict):
        await handle.acancel()


async def test_a_replay_whose_reply_is_lost_is_a_replay(
    score: ScoreJob, server: TinyServer
) -> None:
    handle = await score.aenqueue("cv1", "r1")
    server.finish(handle.id, "dead")
    server.moods.extend(LOSE_SECOND)
    assert (await handle.areplay()).state == "queued"
    assert len([path for path in server.paths() if path.endswith("/replay")]) == 2


async def test_a_replay_of_a_job_that_never_died_is_refused_on_a_repeat_as_well(
    score: ScoreJob, server: TinyServer
) -> None:
    handle = await score.aenqueue("cv1", "r1")
    server.moods.extend(LOSE_SECOND)
    with pytest.raises(NotFound):
        await handle.areplay()
