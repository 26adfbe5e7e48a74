"""The newsletter's jobs, and those that docs/FLOWS.md takes for granted, for one worker."""

from __future__ import annotations

from typing import Any

from examples.newsletter.jobs import app

from fairway import App, Job


@app.job
async def fetch(url: str) -> str:
    return f"page of {url}"


@app.job
async def parse(page: str) -> list[str]:
    return page.split()


@app.job
async def store(words: list[str], table: str) -> int:
    return len(words)


@app.job
async def resize(image: str) -> str:
    return f"small {image}"


@app.job
async def publish(album: str) -> str:
    return album


@app.job
async def report(day: str) -> str:
    return day


def handed_in_by(caller: App) -> dict[str, Job[..., Any]]:
    """The same jobs, of a program that hands them in."""
    jobs = (fetch, parse, store, resize, publish, report)
    return {job.name: caller.job(name=job.name)(job.function) for job in jobs}
