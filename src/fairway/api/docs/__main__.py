"""`python -m fairway.api.docs`: the OpenAPI document on the standard output.

It needs no server and no database; the types of the dashboard are made from it (`make web`).
"""

from __future__ import annotations

import sys

import msgspec

from fairway.api.docs.openapi import document

if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(document()))
