"""How a job type says what it waits for, and which keys come of it."""

from __future__ import annotations

from typing import Any

import pytest

from fairway import App, Limit, Rate
from fairway.sdk.handler.codec import InvalidArguments
from fairway.testing import inline
from fairway.wire.key_limits import JobLimit

app = App("limits")


@app.job(concurrency=[Limit(20), Limit("host", 2), Limit("smtp-{host}:{port}", 3)])
def deliver(message: int, host: str, port: int = 25) -> None: ...


@app.job
def plain(message: int) -> None: ...


def limits_of(job: Any, *args: Any, **kwargs: Any) -> list[JobLimit] | None:
    found: list[JobLimit] | None = job.options().request(args, kwargs).limits
    return found


def test_keys_are_made_of_arguments_and_their_defaults() -> None:
    assert limits_of(deliver, 1, "mx") == [
        JobLimit(key="deliver", at_most=20),
        JobLimit(key="deliver/host=mx", at_most=2),
        JobLimit(key="smtp-mx:25", at_most=3),
    ]
    assert limits_of(deliver, 1, host="mx", port=25) == limits_of(deliver, 1, "mx")
    assert limits_of(plain, 1) is None


def test_a_rate_says_how_many_in_which_while() -> None:
    @app.job(name="rated", rate=[Rate("host", 10, "1m"), Rate(5, 0.5)])
    def rated(host: str) -> None: ...

    assert limits_of(rated, "mx") == [
        JobLimit(key="rated/host=mx", count=10, per_seconds=60),
        JobLimit(key="rated", count=5, per_seconds=0.5),
    ]
    wrong: list[tuple[Any, ...]] = [(1,), (1, "2d"), (0, "1s"), (1, 2, "1s"), ("host", "1s")]
    for given in wrong:
        with pytest.raises(ValueError, match=r"a Rate|of a Rate"):
            Rate(*given)


@pytest.mark.parametrize("wrong", [(0,), (True,), ("host",), ("host", 0), ("", 1), (1, 1)])
def test_what_is_no_limit_is_refused(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"a Limit|of a Limit"):
        Limit(*wrong)


def test_a_key_of_an_argument_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="'customer', which is no argument"):
        app.job(name="other", concurrency=Limit("{customer}", 1))(deliver.function)
    with pytest.raises(ValueError, match="at most 4"):
        app.job(name="other", concurrency=[Limit(1)] * 5)(deliver.function)


def test_a_key_that_is_too_long_is_told_to_the_caller() -> None:
    with pytest.raises(InvalidArguments, match="key of a limit is 1 to 255 characters"):
        limits_of(deliver, 1, "x" * 300)


def test_in_tests_limits_hold_nobody_up() -> None:
    with inline():
        deliver.enqueue(1, "mx").result()
