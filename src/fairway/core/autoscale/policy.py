"""From facts, settings and what is remembered to how many workers a pool should have.

By Little's law the mean of busy slots is the rate of jobs times how long they run, so the flow is
measured by the slots it fills, and needs no estimate; what waits is added as slot-seconds, to be
gone within the rules' time, at most a slot a job. Up at once, but not faster than new workers are
of use. Down slowly, and in two steps: workers to be spared are closed (they get no more jobs), and
once one is closed and idle it may go and is wanted no more. So no busy worker is ever picked, and
none gets a job between the choice and its end. At the maximum nothing is spilt into other pools:
what is missing is told (`short_of`), and an alarm is raised.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, exp
from typing import NamedTuple

from fairway.core.autoscale.facts import (
    Code,
    PoolFacts,
    ScaleDecision,
    ScaleMemory,
    ScaleSettings,
    WorkerLoad,
)
from fairway.core.autoscale.rules import ScaleRules

FAST_SECONDS = 15.0  # the flow that more workers are wanted by
SLOW_PART = 3  # of the time until workers may go: the flow that fewer are wanted by
DOWN_MARGIN = 0.05  # the flow must fit fewer workers with so much to spare
FULL_SHARE = 0.9  # of the slots in use: what waits then waits for slots
SPAN_SECONDS_MAX = 30.0  # looks further apart prove nothing about the time between


class _Aim(NamedTuple):
    workers: int
    code: Code
    is_forced: bool = False  # by people: no patience
    short_of: int = 0


def decide(
    facts: PoolFacts,
    settings: ScaleSettings,
    rules: ScaleRules,
    memory: ScaleMemory,
    now_ms: int,
) -> ScaleDecision:
    """One look. Call it every few seconds, each time with the memory that it answered."""
    known = _noted(facts, rules, memory, now_ms)
    aim = _aim(facts, settings, rules, known, now_ms)
    if aim.workers > known.wanted:
        return _raised(facts, rules, known, aim, now_ms)
    if aim.workers < max(known.wanted, _there(facts, known)):
        return _lowered(facts, settings, rules, known, aim, now_ms)
    return _kept(replace(known, closing=()), aim)


# -- what is remembered ------------------------------------------------------------------------


def _noted(facts: PoolFacts, rules: ScaleRules, memory: ScaleMemory, now_ms: int) -> ScaleMemory:
    span = None if memory.seen_ms is None else (now_ms - memory.seen_ms) / 1000
    is_known = span is not None and 0 <= span <= SPAN_SECONDS_MAX
    fast = slow = float(facts.busy_slots)
    if span is not None and is_known:
        fast = _smooth(memory.fast_slots, fast, span, FAST_SECONDS)
        slow = _smooth(memory.slow_slots, slow, span, rules.down_after_seconds / SLOW_PART)
    limit = rules.quiet_age_seconds
    is_quiet = limit is None or facts.oldest_runnable_age_seconds < limit
    since_ms = memory.quiet_since_ms if is_known else None
    here = {one.name for one in facts.spare}
    return replace(
        memory,
        known_since_ms=memory.known_since_ms if is_known else now_ms,
        leaving=tuple(name for name in memory.leaving if name in here),
        seen_ms=now_ms,
        fast_slots=fast,
        slow_slots=slow,
        quiet_since_ms=(now_ms if since_ms is None else since_ms) if is_quiet else None,
    )


def _smooth(before: float, now: float, span_seconds: float, over_seconds: float) -> float:
    kept = exp(-span_seconds / over_seconds)
    return before * kept + now * (1 - kept)


# -- how many ----------------------------------------------------------------------------------


def _aim(
    facts: PoolFacts, settings: ScaleSettings, rules: ScaleRules, memory: ScaleMemory, now_ms: int
) -> _Aim:
    least, most = settings.minimum_workers, settings.maximum_workers
    override = settings.override_at(now_ms)
    if override is not None:
        return _Aim(min(override.workers, most), "OVERRIDE", is_forced=True)
    more, code = _more(facts, rules, memory)
    short_of = max(more - most, 0)
    if memory.wanted < least:
        return _Aim(min(max(more, least), most), "MINIMUM", True, short_of)
    if memory.wanted > most:
        return _Aim(most, "MAXIMUM", True, short_of)
    if more > memory.wanted:
        return _Aim(min(more, most), code if more <= most else "MAXIMUM", False, short_of)
    fewer = _workers_for(facts, rules, max(memory.fast_slots, memory.slow_slots), 1 + DOWN_MARGIN)
    return _Aim(min(max(fewer, least), memory.wanted), "IDLE")


def _more(facts: PoolFacts, rules: ScaleRules, memory: ScaleMemory) -> tuple[int, Code]:
    """How many the pool could use; no more than there are while nothing waits long enough."""
    is_late = facts.oldest_runnable_age_seconds > rules.up_age_seconds
    if not (is_late or rules.is_ahead):
        return 0, "OLDEST_AGE"
    found = _workers_for(facts, rules, memory.fast_slots)
    is_full = facts.busy_slots >= FULL_SHARE * facts.slots
    if is_late and is_full and facts.workers >= memory.wanted:
        found = max(found, memory.wanted + 1)  # whatever the estimates say
    return found, "OLDEST_AGE" if is_late else "BACKLOG"


def _workers_for(facts: PoolFacts, rules: ScaleRules, flow_slots: float, margin: float = 1) -> int:
    waiting = min(facts.backlog_jobs, facts.backlog_slot_seconds / rules.drain_seconds)
    slots = flow_slots * rules.head_room * margin + waiting
    return ceil(round(slots / facts.slots_per_worker, 6))


# -- up ----------------------------------------------------------------------------------------


def _raised(
    facts: PoolFacts, rules: ScaleRules, memory: ScaleMemory, aim: _Aim, now_ms: int
) -> ScaleDecision:
    memory = replace(memory, closing=())
    if not aim.is_forced and not _is_past(memory.raised_ms, rules.up_cooldown_seconds, now_ms):
        return _kept(memory, aim)
    reason = _why_up(facts, rules, memory, aim)
    stay = aim.workers - memory.wanted  # of those that were about to go
    memory = replace(memory, wanted=aim.workers, raised_ms=now_ms, leaving=memory.leaving[stay:])
    return _kept(memory, aim)._replace(code=aim.code, reason=reason)


def _why_up(facts: PoolFacts, rules: ScaleRules, memory: ScaleMemory, aim: _Aim) -> str:
    change = f"From {memory.wanted} to {aim.workers} workers"
    seen = (
        f"{facts.backlog_jobs} jobs of {facts.backlog_slot_seconds:.1f} slot-seconds could run,"
        f" and {facts.busy_slots} of {facts.slots} slots are in use"
    )
    if aim.code == "OVERRIDE":
        return f"{change}: somebody said so."
    if aim.code == "MINIMUM":
        return f"{change}: so many there are at least."
    if aim.code == "MAXIMUM":
        return f"{change}, the most there may be; {aim.short_of} more are needed: {seen}."
    if aim.code == "OLDEST_AGE":
        age = facts.oldest_runnable_age_seconds
        limit = rules.up_age_seconds
        return f"{change}: the oldest job has waited {age:.1f} s, over {limit:g} s; {seen}."
    return f"{change}: {seen}, {memory.fast_slots:.1f} in the mean of the last seconds."


# -- down --------------------------------------------------------------------------------------


def _lowered(
    facts: PoolFacts,
    settings: ScaleSettings,
    rules: ScaleRules,
    memory: ScaleMemory,
    aim: _Aim,
    now_ms: int,
) -> ScaleDecision:
    """Close some; those that are closed and idle may go."""
    if not aim.is_forced and not _is_quiet(rules, memory, now_ms):
        return _kept(replace(memory, closing=()), aim)
    there = _there(facts, memory)
    if there < memory.wanted and not (aim.is_forced or _is_settled(rules, memory, now_ms)):
        return _kept(replace(memory, closing=()), aim)
    may_step = aim.is_forced or _is_past(memory.lowered_ms, rules.down_cooldown_seconds, now_ms)
    if settings.mode == "dry_run" or there < memory.wanted:
        # Nobody is closed in a dry run; nor for those who are not there.
        left = aim.workers if settings.mode == "dry_run" else max(aim.workers, there)
        left = max(left, memory.wanted - _step(facts, rules, aim))
        return _fewer(facts, rules, memory, aim._replace(workers=left), now_ms, may_step)
    spared = there - aim.workers
    closing = _closing(facts, rules, memory, aim, spared, may_step=may_step)
    empty = {one.name for one in facts.spare if one.is_closed and not one.busy}
    ready = tuple(name for name in closing if name in empty)
    left = min(memory.wanted, there - len(ready))
    memory = replace(
        memory,
        closing=tuple(name for name in closing if name not in empty),
        leaving=(*memory.leaving, *ready),
    )
    return _fewer(facts, rules, memory, aim._replace(workers=left), now_ms, may_step=True)


def _fewer(
    facts: PoolFacts,
    rules: ScaleRules,
    memory: ScaleMemory,
    aim: _Aim,
    now_ms: int,
    may_step: bool,
) -> ScaleDecision:
    if not may_step or aim.workers >= memory.wanted:
        return _kept(memory, aim)
    reason = _why_down(facts, rules, memory, aim)
    memory = replace(memory, wanted=aim.workers, lowered_ms=now_ms)
    return _kept(memory, aim)._replace(code=aim.code, reason=reason)


def _closing(
    facts: PoolFacts,
    rules: ScaleRules,
    memory: ScaleMemory,
    aim: _Aim,
    spared: int,
    *,
    may_step: bool,
) -> tuple[str, ...]:
    """Those that are being emptied, and more of them if it is time: the idlest first."""
    here = {one.name for one in facts.spare}
    kept = [name for name in memory.closing if name in here][:spared]
    most = min(spared, _step(facts, rules, aim))
    if not may_step or len(kept) >= most:
        return tuple(kept)
    taken = {*kept, *memory.leaving}
    others = [one for one in facts.spare if one.name not in taken]
    if rules.needs_idle and not aim.is_forced:
        others = [one for one in others if _is_idle_for(one, rules.down_after_seconds)]
    others.sort(key=lambda one: (one.busy, -one.idle_ms, one.name))
    return (*kept, *(one.name for one in others[: most - len(kept)]))


def _step(facts: PoolFacts, rules: ScaleRules, aim: _Aim) -> int:
    """How many may go at a time. Whoever was idle for long enough is not missed."""
    if aim.is_forced or rules.needs_idle:
        return facts.workers
    return max(int(facts.workers * rules.down_step_share), 1)


def _is_quiet(rules: ScaleRules, memory: ScaleMemory, now_ms: int) -> bool:
    if rules.needs_idle:
        return True
    since_ms, patience = memory.quiet_since_ms, rules.down_after_seconds
    is_quiet = since_ms is not None and _is_past(since_ms, patience, now_ms)
    return is_quiet and _is_past(memory.raised_ms, patience, now_ms)


def _is_settled(rules: ScaleRules, memory: ScaleMemory, now_ms: int) -> bool:
    """Whether those who are not there will not come: after a change of owner workers have yet to
    say hello to the new one, and those just asked for have yet to start. Where quiet is waited for,
    that was long enough."""
    if not rules.needs_idle:
        return True
    patience = rules.up_cooldown_seconds
    known_ms, raised_ms = memory.known_since_ms, memory.raised_ms
    return _is_past(known_ms, patience, now_ms) and _is_past(raised_ms, patience, now_ms)


def _is_idle_for(one: WorkerLoad, seconds: float) -> bool:
    return not one.busy and one.idle_ms >= seconds * 1000


def _why_down(facts: PoolFacts, rules: ScaleRules, memory: ScaleMemory, aim: _Aim) -> str:
    change = f"From {memory.wanted} to {aim.workers} workers"
    if aim.code == "OVERRIDE":
        return f"{change}: somebody said so."
    if aim.code == "MAXIMUM":
        return f"{change}: more there may not be."
    seen = f"{facts.busy_slots} of {facts.slots} slots are in use"
    if rules.needs_idle:
        return f"{change}: they had no job for {rules.down_after_seconds:g} s; {seen}."
    return (
        f"{change}: nothing has waited {rules.quiet_age_seconds:g} s in the last"
        f" {rules.down_after_seconds:g} s; {seen}, {memory.slow_slots:.1f} in the mean."
    )


# -- both --------------------------------------------------------------------------------------


def _there(facts: PoolFacts, memory: ScaleMemory) -> int:
    """Workers that are there to stay."""
    return max(facts.workers - len(memory.leaving), 0)


def _kept(memory: ScaleMemory, aim: _Aim) -> ScaleDecision:
    closed = (*memory.leaving, *memory.closing)
    return ScaleDecision(memory.wanted, None, "", memory.leaving, closed, aim.short_of, memory)


def _is_past(moment_ms: int | None, seconds: float, now_ms: int) -> bool:
    return moment_ms is None or now_ms - moment_ms >= seconds * 1000
