"""The error of a program whose servers give no answer."""

from __future__ import annotations

from fairway.core.errors import Unavailable


class Unreachable(Unavailable):
    """The server gave no answer."""

    code = "UNREACHABLE"
