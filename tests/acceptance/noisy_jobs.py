"""A job that makes every kind of noise that ends up in its worker's log."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import warnings

from fairway import CTX, App, Ctx

app = App("noisy")
tasks: list[asyncio.Task[None]] = []


class Stubborn:
    def __del__(self) -> None:
        raise ValueError("not in here")


async def fail() -> None:
    raise ValueError("nobody waits for me")


def end() -> None:
    raise KeyError("a thread ends")


@app.job(name="noise", pool="short", attempts=1)
async def noise(ctx: Ctx = CTX) -> None:
    warnings.warn("an old way", UserWarning, stacklevel=1)
    logging.getLogger("some.library").warning("of a library")
    ctx.log.info("of the handler")
    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    stubborn = Stubborn()
    del stubborn
    tasks.append(asyncio.create_task(fail()))
    await asyncio.sleep(0.05)
    tasks.clear()
    gc.collect()
    raise RuntimeError("and then it fails")


@app.job(name="calm", pool="short")
async def calm() -> None:
    return
