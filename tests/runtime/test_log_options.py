"""How a program is told what to log."""

from __future__ import annotations

import logging

import pytest

from fairway.core.errors import InvalidRequest
from fairway.runtime.log_options import LogOptions, choose


def test_flags_go_over_the_environment_and_into_it() -> None:
    environment = {"FAIRWAY_LOG_LEVEL": "error", "FAIRWAY_LOG_FORMAT": "json"}
    assert choose(environment, None, None) == LogOptions(logging.ERROR, True)
    assert choose(environment, "debug", "text") == LogOptions(logging.DEBUG, False)
    assert LogOptions.of(environment) == LogOptions(logging.DEBUG, False), "for its children"


def test_a_word_that_is_none() -> None:
    with pytest.raises(InvalidRequest, match="FAIRWAY_LOG_LEVEL is 'loud'; choose one of debug"):
        LogOptions.of({"FAIRWAY_LOG_LEVEL": "Loud"})
