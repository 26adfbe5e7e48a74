"""Tests of jobs without a server: modes, assertions, single runs. See `fairway.sdk.testing`."""

from fairway.sdk.testing.assertions import all_enqueued, assert_enqueued, refute_enqueued
from fairway.sdk.testing.memory import MemoryDoor
from fairway.sdk.testing.modes import adrain, clock, drain, inline, manual
from fairway.sdk.testing.perform import Performed, aperform, perform
from fairway.sdk.testing.record import Enqueued, LogLine

__all__ = [
    "Enqueued",
    "LogLine",
    "MemoryDoor",
    "Performed",
    "adrain",
    "all_enqueued",
    "aperform",
    "assert_enqueued",
    "clock",
    "drain",
    "inline",
    "manual",
    "perform",
    "refute_enqueued",
]
