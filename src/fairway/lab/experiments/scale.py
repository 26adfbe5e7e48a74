"""`fairway lab scale`: one worker, then two, three, four. What does each one more bring?

Each size is offered a fifth more than it can do, so that its slots are never idle; what it
completes is its capacity. The universal scalability law says what is lost, and to what.
"""

from __future__ import annotations

from typing import Any

from fairway.lab.experiments.steps import SLOTS, Step, StepSetup, complaints, run_step, scaled
from fairway.lab.measure.scalability import Law, fit
from fairway.lab.platform import POOL, lab_platform
from fairway.lab.report.content import Drawing, Finding, Report, Table, number
from fairway.lab.report.plots import BLUE, GREEN, GREY, ORANGE, from_zero

WORKERS_MAX = 4
HOLD_SERVICES = 22
OVERLOAD = 1.2
SPEEDUP_AIM = 3.8


async def run(setup: StepSetup) -> Report:
    steps: list[Step] = []
    async with lab_platform() as platform:
        for count in range(1, WORKERS_MAX + 1):
            await platform.start_worker(f"worker-{count}", {POOL: SLOTS})
            rate = OVERLOAD * count * setup.theory
            steps.append(await run_step(platform, setup, rate, HOLD_SERVICES))
    return report(setup, steps)


def report(setup: StepSetup, steps: list[Step]) -> Report:
    rates = [step.point(setup.service).completed for step in steps]
    law = fit(list(enumerate(rates, start=1)))
    speedup = rates[-1] / rates[0]
    lost = sum(len(step.load.lost) for step in steps)
    return Report(
        name="scale",
        title="What one more worker brings",
        question=f"One to {WORKERS_MAX} workers with {SLOTS} slots each, always offered more than"
        " they can do. How close to linear is it?",
        found=f"{WORKERS_MAX} workers do {speedup:.2f} times the work of one"
        f" ({speedup / WORKERS_MAX:.1%} efficiency).",
        answer="The law's fit puts contention at"
        f" {law.contention:.2%} and the price of agreeing at {law.coherence:.3%}.",
        data=_data(setup, rates, law) | {"lost": lost},
        findings=[
            Finding(
                f"{WORKERS_MAX} workers against one",
                f"{speedup:.2f}×",
                f"≥ {SPEEDUP_AIM}×",
                speedup >= SPEEDUP_AIM,
            ),
            Finding("efficiency", f"{speedup / WORKERS_MAX:.1%}"),
            Finding("contention σ", f"{law.contention:.2%}", "what must wait in line"),
            Finding("coherence κ", f"{law.coherence:.3%}", "what agreeing costs, per pair"),
            Finding("accepted and lost", str(lost), "0", lost == 0),
        ],
        drawings=[
            Drawing(
                "scale",
                "Left: capacity by number of workers, the fitted law and a straight"
                " line. Right: what each worker does, against one alone.",
                lambda figure: _draw(figure, rates, law),
                (9.6, 3.8),
            ),
        ],
        tables=[_table(setup, rates)],
        notes=[
            "X(n) = rate·n / (1 + σ(n−1) + κn(n−1)); least squares, nothing below zero.",
            "The jobs wait, they do not compute: the workers share two cores without hurting each"
            " other, so this measures the platform's part, not the machine's.",
            *scaled(setup),
        ],
        doubts=complaints(steps),
    )


def _data(setup: StepSetup, rates: list[float], law: Law) -> dict[str, Any]:
    return {
        "experiment": "scale",
        "workers": list(range(1, len(rates) + 1)),
        "completed_per_s": rates,
        "speedup": [rate / rates[0] for rate in rates],
        "efficiency": [rate / rates[0] / n for n, rate in enumerate(rates, start=1)],
        "speedup_at_4": rates[-1] / rates[0],
        "law": {
            "rate": law.rate,
            "contention": law.contention,
            "coherence": law.coherence,
            "peak_workers": law.peak,
        },
        "slots": SLOTS,
        "service_s": setup.service,
        "speed": setup.speed,
        "seed": setup.seed,
    }


def _draw(figure: Any, rates: list[float], law: Law) -> None:
    left, right = figure.subplots(1, 2)
    workers = list(range(1, len(rates) + 1))
    fine = [1 + n / 20 * (len(rates) - 1) for n in range(21)]
    left.plot(
        [0, len(rates)],
        [0, len(rates) * rates[0]],
        color=GREY,
        linestyle=(0, (3, 3)),
        linewidth=1.3,
        label="straight line",
    )
    left.plot(fine, [law.at(n) for n in fine], color=ORANGE, linewidth=1.4, label="fitted law")
    left.plot(workers, rates, "o", color=BLUE, markersize=7, label="measured")
    left.set(title="Jobs a second", xlabel="workers", xticks=workers, xlim=(0, len(rates) + 0.3))
    left.legend(loc="upper left")
    from_zero(left)
    shares = [100 * rate / rates[0] / n for n, rate in zip(workers, rates, strict=True)]
    bars = right.bar(workers, shares, color=GREEN, width=0.55)
    right.bar_label(bars, fmt="%.1f %%", fontsize=8.5, padding=3)
    right.set(title="Efficiency, in percent", xlabel="workers", xticks=workers)
    right.grid(axis="x", visible=False)
    from_zero(right, 115)


def _table(setup: StepSetup, rates: list[float]) -> Table:
    rows = [
        [
            str(n),
            number(n * setup.theory, "/s"),
            number(rate, "/s"),
            f"{rate / rates[0]:.2f}×",
            f"{rate / rates[0] / n:.1%}",
        ]
        for n, rate in enumerate(rates, start=1)
    ]
    return Table(
        "Size by size", ["workers", "theory", "completed", "against one", "efficiency"], rows
    )
