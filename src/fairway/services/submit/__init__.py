"""Accepting jobs: from a checked request to rows on disk.

Here: admission (rate limits, quotas), the group commit of submissions, idempotent answers.
Not here: large payloads (`object_storage/`); telling the owner what arrived (`dispatch/`).
"""
