"""What is the host's fault and never the author's."""

from __future__ import annotations


class SandboxUnavailable(Exception):
    """The host cannot hold a stranger's program, or could not this time. Worth another try."""
