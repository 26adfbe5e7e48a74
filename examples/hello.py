"""The smallest app: one job that greets. `fairway up examples.hello:app` runs its jobs."""

from fairway import CTX, App, Ctx

app = App("hello")


@app.job(name="hello.greet", pool="short")
async def greet(name: str, ctx: Ctx = CTX) -> str:
    return f"Hello, {name}! (attempt {ctx.attempt})"


if __name__ == "__main__":
    handle = greet.enqueue("world")
    print(handle.id, handle.result(timeout=30))
