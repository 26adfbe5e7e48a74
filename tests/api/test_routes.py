"""The table of endpoints: none left out, each says what it is for, and allows what it has."""

from __future__ import annotations

import importlib
import pkgutil
import re

from fairway import api
from fairway.api.dashboard import app_pages
from fairway.api.docs import pages
from fairway.api.endpoint import endpoints_of
from fairway.api.routes import ENDPOINTS, OPERATIONS, allowed_methods
from fairway.wire.messages import BATCH_MAX


def test_no_endpoint_is_left_out_of_the_table() -> None:
    """A module that is not named there would have no routes, however good its handlers are."""
    found = pkgutil.walk_packages(api.__path__, "fairway.api.")
    modules = [importlib.import_module(one.name) for one in found]
    listed = (*ENDPOINTS, *endpoints_of([pages, app_pages]))
    assert [(one.method, one.path) for one in endpoints_of(modules) if one not in listed] == []


def test_every_operation_says_what_it_is_for() -> None:
    for one in OPERATIONS:
        assert one.summary, one.name
        assert one.about, one.name
        assert {part.name for part in one.parameters if part.place == "path"} == {
            *re.findall(r"\{(\w+)\}", one.path)
        }
    (batch,) = [one for one in OPERATIONS if one.name == "submitBatch"]
    assert f"Up to {BATCH_MAX:,} jobs" in batch.about


def test_allowed_methods_come_from_the_table() -> None:
    assert allowed_methods("/v1/jobs") == ["GET", "HEAD", "POST"]
    assert allowed_methods("/v1/jobs/batch") == ["POST"]
    assert allowed_methods("/v1/jobs/x/y") == []
