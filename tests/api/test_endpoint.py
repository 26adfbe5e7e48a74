"""What stands above a handler, with its name and docstring, is all that is said of an endpoint."""

from __future__ import annotations

import sys

import pytest

from fairway.api.app import _route
from fairway.api.endpoint import (
    OF_ACTING,
    OF_EVERY_BODY,
    OF_EVERY_COOKIE,
    OF_EVERY_KEY,
    Endpoint,
    Reply,
    endpoints_of,
    path,
    query,
)
from fairway.wire.bulk import WaitForJobs


@Endpoint("POST /v1/things/{id}", keys=("tenant",), body=WaitForJobs, problems=("NOT_FOUND",))
async def stop_all_things() -> None:
    """Stop them

    All of them, at
    once.

    Or none.
    """


@Endpoint("GET /v1/things")
class ListThings:
    """List things"""


def test_an_endpoint_is_its_handler() -> None:
    stop, listed = endpoints_of([sys.modules[__name__]])
    assert (stop.method, stop.path, stop.name) == ("POST", "/v1/things/{id}", "stopAllThings")
    assert stop.summary == "Stop them"
    assert stop.about == "All of them, at once.\n\nOr none."
    assert stop.handler is stop_all_things
    assert not stop.is_hot
    assert (listed.name, listed.about, listed.is_hot) == ("listThings", "", True)


def test_what_every_body_and_every_key_may_meet_is_added() -> None:
    stop, listed = endpoints_of([sys.modules[__name__]])
    assert stop.all_problems == (
        *(*OF_EVERY_BODY, "NOT_FOUND", *OF_EVERY_KEY),
        *(*OF_ACTING, *OF_EVERY_COOKIE),
    )
    assert listed.all_problems == ()


def test_a_path_is_always_filled_in_a_shell_and_a_query_only_when_told() -> None:
    assert path("id", "An id.", "7").shell == "7"
    assert path("id", "An id.", "7", "$ID").shell == "$ID"
    assert query("limit", "How many.", "50").shell == ""


async def sell_things(platfrom: object) -> None:
    """Sell them"""


def test_a_handler_that_asks_for_what_nobody_can_give_is_refused_at_birth() -> None:
    with pytest.raises(KeyError, match="platfrom"):
        _route(Endpoint("POST /v1/sales", handler=sell_things))


def test_the_one_good_reply_is_all_of_them() -> None:
    sold, gone = Reply(200, "Sold."), Reply(204, "Gone.")
    assert Endpoint("POST /v1/sales", reply=sold).replies == (sold,)
    assert Endpoint("POST /v1/sales", replies=(sold, gone)).replies == (sold, gone)
