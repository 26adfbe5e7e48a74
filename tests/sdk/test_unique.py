"""How a job type says that one of a kind is enough, and what makes two jobs the same."""

from __future__ import annotations

from typing import Any

import pytest

from fairway import App, BatchRefused, Conflict, Debounce, Unique, testing
from fairway.wire.unique import UniqueRequest

app = App("unique")


@app.job(unique=Unique())
def report(customer: str, month: int = 1) -> None: ...


@app.job(unique=Unique(by="customer", within="1h", while_=["queued"], on_conflict="return"))
def reindex(customer: str, reason: str) -> None: ...


@app.job(debounce=Debounce("10s", by="customer", most="1m"))
def index(customer: str, n: int) -> int:
    return n


@app.job(unique=Unique(by="customer", on_conflict="replace"))
def sync(customer: str, n: int) -> int:
    return n


@app.job
def plain(customer: str) -> None: ...


def wanted(job: Any, *args: Any, **kwargs: Any) -> UniqueRequest | None:
    found: UniqueRequest | None = job.options().request(args, kwargs).unique
    return found


def test_all_arguments_make_the_kind_in_whatever_way_they_are_given() -> None:
    assert wanted(report, "a") == wanted(report, month=1, customer="a")
    assert wanted(report, "a") != wanted(report, "a", 2)
    assert wanted(report, "a") != wanted(report, "b")
    assert wanted(plain, "a") is None


def test_or_one_of_them() -> None:
    assert wanted(reindex, "a", "new") == wanted(reindex, "a", "old")
    assert wanted(reindex, "a", "new") == UniqueRequest(
        key="reindex/customer=a",
        within_seconds=3600,
        while_states=["queued"],
        on_conflict="return",
    )


def test_a_debounced_job_replaces_and_waits() -> None:
    request = index.options().request(("a", 1), {})
    assert request.delay_seconds == 10
    assert request.unique == UniqueRequest(
        key="index/customer=a",
        within_seconds=86410,
        while_states=["scheduled"],
        on_conflict="replace",
        delay_most_seconds=60,
    )
    by_all = app.job(name="short", debounce="10s")(plain.function).options().request(("a",), {})
    assert by_all.unique is not None
    assert by_all.unique.delay_most_seconds is None
    with pytest.raises(ValueError, match="debounced"):
        index.options(delay="1s")
    with pytest.raises(ValueError, match="either unique= or debounce="):
        app.job(name="both", debounce="1s", unique=Unique())(plain.function)


@pytest.mark.parametrize("wrong", [("0s",), ("2d",), ("10s", "5s"), ("10s", "2d")])
def test_how_long_a_job_is_put_off(wrong: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="Debounce"):
        Debounce(wrong[0], most=wrong[1] if wrong[1:] else None)


async def test_in_tests_the_last_of_many_runs() -> None:
    with testing.manual() as mode:
        handles = [await index.aenqueue("a", n) for n in range(3)]
        other = await index.aenqueue("b", 7)
        testing.clock.advance("9s")
        handles += await index.aenqueue_many([("a", 4), ("a", 5)])
        testing.clock.advance("9s")
        assert dict(await testing.adrain()) == {"succeeded": 1}
        assert await other.aresult() == 7
        await testing.adrain(with_scheduled=True)
        assert await handles[-1].aresult() == 5
        assert [one.state.label for one in mode.enqueued].count("cancelled") == 4


async def test_in_tests_a_steady_stream_still_runs() -> None:
    with testing.manual():
        handles = []
        for n in range(20):
            handles.append(await index.aenqueue("a", n))
            testing.clock.advance("5s")
            await testing.adrain()
        ran = [n for n, one in enumerate(handles) if (await one.astatus()).state == "succeeded"]
        assert ran == [11]  # of calls 0 s to 55 s, when a minute was over


async def test_in_tests_the_second_of_a_kind() -> None:
    with testing.manual():
        first = await report.aenqueue("a")
        with pytest.raises(Conflict):
            await report.aenqueue("a")
        with pytest.raises(BatchRefused):
            await report.aenqueue_many([("a",), ("b",)])
        there = await reindex.aenqueue("a", "x")
        assert (await reindex.aenqueue("a", "y")).id == there.id
        old, young = await sync.aenqueue_many([("a", 1), ("a", 2)])
        await testing.adrain()
        assert (await old.astatus()).state == "cancelled"
        assert await young.aresult() == 2
        assert (await report.aenqueue("a")).id != first.id


@pytest.mark.parametrize(
    "wrong",
    [
        {"within": 0},
        {"within": "90d"},
        {"while_": ["soon"]},
        {"on_conflict": "shout"},
        {"on_conflict": "replace", "while_": ["running"]},
    ],
)
def test_what_is_not_understood_is_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Unique"):
        Unique(**wrong)


def test_a_key_of_an_argument_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="'tenant', which is no argument"):
        app.job(name="other", unique=Unique(by="tenant"))(plain.function)
