"""The jobs of a newsletter."""

from examples.newsletter import mail

from fairway import App, Exponential, FlowHandle, JobDeath, Rate, Retry, Unique, chain, group

app = App("newsletter")
again = Retry(5, on=(ConnectionError,), backoff=Exponential("1s", most="10m", jitter=0.5))


@app.job(name="news.render", pool="medium")
def render(issue: int, reader: str) -> str:
    return mail.render(issue, reader)


@app.schedule("0 9 * * MON-FRI", tz="Europe/Lisbon")
@app.job(name="news.report", priority=8)
def report(beginning: str = "") -> int:
    return mail.count(beginning)


@app.job(name="news.send", retry=again, rate=Rate(100, "1s"), unique=Unique(on_conflict="return"))
def send(issue: int, reader: str) -> None:
    mail.send(issue, reader)


@app.on_death
def failed(death: JobDeath) -> None:
    mail.tell_us(f"{death.type}: {death.error['message']}")


def proof(issue: int, editor: str) -> FlowHandle:
    return chain(render.s(issue, editor), report.s()).enqueue()


def prepare(issue: int, readers: list[str]) -> FlowHandle:
    pages = [render.s(issue, one) for one in readers]
    return group(pages, then=report.s(f"issue {issue}")).enqueue()


def deliver(issue: int, readers: list[str]) -> None:
    send.enqueue_many([(issue, one) for one in readers])
