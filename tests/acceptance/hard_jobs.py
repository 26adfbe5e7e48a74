"""Jobs that want too much, will not stop, or stop as they should. All of them are bounded."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time

from tests.acceptance.jobs import Signature, new_run, sign, signed_nap

from fairway import CTX, App, Ctx, HandBack, Limits

app = App("hard")

MB = 1 << 20

nap = app.job(name="nap", pool="short")(signed_nap)


# -- over a limit --------------------------------------------------------------------------------


@app.job(name="memory.one", pool="medium", limits=Limits(memory="300MB"), timeout="30s")
def memory_of_one() -> int:
    """Takes up to 600 MB in one process."""
    taken = [bytearray(20 * MB) for _ in range(30)]
    return len(taken)


@app.job(name="memory.many", pool="medium", limits=Limits(memory="300MB"), timeout="30s")
def memory_of_many() -> int:
    """Takes up to 600 MB in four processes, each of which is well within the limit."""
    hold = "import time; x = bytearray(150 << 20); time.sleep(20)"
    children = [subprocess.Popen([sys.executable, "-c", hold]) for _ in range(4)]
    return sum(child.wait() for child in children)


@app.job(name="fork", pool="medium", limits=Limits(processes=24), timeout="30s")
def fork() -> None:
    """Starts up to sixty processes that do nothing for a while."""
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(15)
            os._exit(0)
    time.sleep(15)


@app.job(name="cpu", pool="medium", limits=Limits(cpu="1s"), timeout="60s")
def cpu() -> None:
    while True:
        pass


@app.job(name="cpu.children", pool="medium", limits=Limits(cpu="2s"), timeout="60s")
def cpu_of_children() -> None:
    """Each child is within the limit; together they are not."""
    spin = "import time\nwhile time.process_time() < 1.5: pass"
    for _ in range(8):
        subprocess.run([sys.executable, "-c", spin], check=True)


@app.job(name="disk", pool="medium", limits=Limits(file_size="1MB"), timeout="30s")
def disk() -> None:
    """Writes up to four megabytes."""
    with tempfile.TemporaryFile() as file:
        for _ in range(4):
            file.write(bytes(MB))
            file.flush()


@app.job(name="files", pool="medium", limits=Limits(open_files=64), timeout="30s")
def files() -> None:
    held = [open(os.devnull) for _ in range(200)]  # noqa: SIM115  (they are to stay open)
    raise AssertionError(f"opened {len(held)} files")


@app.job(name="runaway", pool="long", runaway_after="1s")
def runaway() -> None:
    while True:
        pass


@app.job(name="busy", pool="long", runaway_after="1s")
def busy(ctx: Ctx = CTX) -> int:
    """As much processor time as the runaway, with a word now and then."""
    for step in range(12):
        ends = time.process_time() + 0.25
        while time.process_time() < ends:
            pass
        ctx.progress(step, 12)
    return 12


# -- past the time limit -------------------------------------------------------------------------


@app.job(name="late.loop", pool="short", mode="loop", timeout="0.5s")
def late_in_the_loop() -> None:
    while True:
        pass


@app.job(name="late.coroutine", pool="short", timeout="0.5s")
async def late_coroutine() -> None:
    """Does not let itself be cancelled."""
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            continue


@app.job(name="late.thread", pool="medium", timeout="0.5s")
def late_in_a_thread() -> None:
    time.sleep(30)


@app.job(name="late.deaf", pool="short", mode="loop", timeout="0.5s")
def late_and_deaf() -> int:
    """A long call into C that hears no signal: nobody in this process can do anything."""
    return sum(range(6_000_000_000))


@app.job(name="late.process", pool="long", timeout="0.5s")
def late_in_a_process() -> None:
    """Holds the interpreter, so that the runner cannot even say that it is late."""
    ctypes.PyDLL(None).sleep(30)


@app.job(name="late.family", pool="long", timeout="1s")
def late_family(ctx: Ctx = CTX) -> None:
    """Leaves a daemon in a session of its own behind, and says where."""
    forever = [sys.executable, "-c", "import time; time.sleep(60)"]
    daemon = subprocess.Popen(forever, start_new_session=True)
    sign(f"daemon {daemon.pid}", new_run(), ctx)
    time.sleep(30)


@app.job(name="leaves.daemon", pool="long")
def leaves_a_daemon() -> int:
    forever = [sys.executable, "-c", "import time; time.sleep(60)"]
    return subprocess.Popen(forever, start_new_session=True).pid


# -- asked to stop -------------------------------------------------------------------------------


@app.job(name="stop.coroutine", pool="medium")
async def stop_coroutine(ctx: Ctx = CTX) -> None:
    sign("begin", new_run(), ctx)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        sign("tidied", new_run(), ctx)
        raise


@app.job(name="stop.thread", pool="medium")
def stop_thread(ctx: Ctx = CTX) -> None:
    _until_asked(ctx)


@app.job(name="stop.process", pool="long")
def stop_process(ctx: Ctx = CTX) -> None:
    ctx.progress(1, 2, "half way")
    _until_asked(ctx)


def _until_asked(ctx: Ctx) -> None:
    sign("begin", new_run(), ctx)
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        if ctx.should_stop():
            sign("draining" if ctx.draining() else "tidied", new_run(), ctx)
            raise HandBack
        time.sleep(0.02)


@app.job(name="deaf.thread", pool="medium", cancel_grace="1s")
def deaf_thread(ctx: Ctx = CTX) -> None:
    sign("begin", new_run(), ctx)
    time.sleep(60)


@app.job(name="deaf.process", pool="long", cancel_grace="1s")
def deaf_process(ctx: Ctx = CTX) -> None:
    sign("begin", new_run(), ctx)
    time.sleep(60)


# -- dying ---------------------------------------------------------------------------------------


@app.job(name="die.kill", pool="long")
def die_kill(ctx: Ctx = CTX) -> None:
    sign("begin", new_run(), ctx)
    os.kill(os.getpid(), signal.SIGKILL)


@app.job(name="die.segfault", pool="long")
def die_segfault(ctx: Ctx = CTX) -> None:
    sign("begin", new_run(), ctx)
    ctypes.string_at(0)


@app.job(name="spin", pool="short", mode="thread")
def spin(seconds: float, ctx: Ctx = CTX) -> Signature:
    """Works all the while and lets nobody in, as far as Python allows."""
    run = new_run()
    sign("begin", run, ctx)
    sys.setswitchinterval(5.0)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        pass
    sys.setswitchinterval(0.005)
    return sign("end", run, ctx)
