"""A job whose error tells what it should keep to itself, as libraries' errors do."""

from __future__ import annotations

import logging

from fairway import App

app = App("leaky")


@app.job(name="leaky", pool="short", attempts=1)
async def leaky(password: str, note: str) -> None:
    logging.getLogger("library").warning("connecting with %s", {"password": password})
    raise ConnectionError(f"refused: {{'user': 'app', 'password': '{password}'}}")
