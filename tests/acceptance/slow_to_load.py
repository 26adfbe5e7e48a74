"""The same jobs, in an app that takes its time to load."""

import time

from tests.acceptance.jobs import app

__all__ = ["app"]

time.sleep(0.7)
