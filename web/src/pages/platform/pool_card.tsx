/** One pool at this moment: the age of its oldest job against its promise, then the rest. */
import type { JSX } from 'preact';

import { Badge, Meter, Sparkline, Tag } from '../../components';
import { brief, compact, count, percent, rate, seconds } from '../../format';
import { Link } from '../../router';
import type { Known, Overview, PoolSight } from '../../types';
import { ageTone, ageWord, heldCount, loadTone } from './health';

export function PoolCard(props: { pool: PoolSight; past: readonly Overview[] }): JSX.Element {
  const { pool } = props;
  const tone = ageTone(pool);
  const waiting = props.past.map((one) => one.pools.find((p) => p.name === pool.name)?.queued ?? null);
  return (
    <section class="card pool-card">
      <header class="pool-head">
        <h2>
          <Link to={`/ui/pools?pool=${encodeURIComponent(pool.name)}`}>{pool.name}</Link>
        </h2>
        <Badge tone={tone}>{ageWord(pool)}</Badge>
      </header>
      <div class={`headline stat-${tone}`}>
        <div class="stat-value headline-value">{seconds(pool.oldest_runnable_age_seconds ?? (pool.queued ? null : 0))}</div>
        <div class="stat-hint">
          oldest job that could run
          {pool.slo_seconds !== null && <> · target {seconds(pool.slo_seconds)}</>}
        </div>
      </div>
      <div class="pool-use">
        <Meter part={pool.utilisation} tone={loadTone(pool.utilisation)} label={slotsInWords(pool)} />
        <span class="stat-hint">
          {pool.slots === 0
            ? 'No worker serves it'
            : `${count(pool.running)} of ${count(pool.slots)} slots · ${percent(pool.utilisation)}`}
        </span>
      </div>
      <dl class="pool-facts">
        <Fact name="Waiting" value={compact(pool.queued)} />
        <Fact name="In" value={rate(pool.accepted_per_second)} unit="/s" />
        <Fact name="Out" value={rate(pool.ended_per_second)} unit="/s" />
        <Fact name="Drains in" value={drains(pool)} />
        <Fact name="Pick-up p50" value={brief(pool.pickup_seconds?.p50)} />
        <Fact name="Pick-up p99" value={brief(pool.pickup_seconds?.p99)} />
        <Fact name="Total p99" title="From due to its end" value={brief(pool.end_to_end_seconds?.p99)} />
        <Fact name="Failed" value={rate(pool.failed_per_second)} unit="/s" isBad={isSome(pool.failed_per_second)} />
      </dl>
      <Held pool={pool} />
      {waiting.length > 2 && (
        <Sparkline values={waiting} label={`Waiting jobs over the last minutes; now ${count(pool.queued)}`} height={28} width={240} />
      )}
    </section>
  );
}

function Fact(props: { name: string; value: string; unit?: string; title?: string; isBad?: boolean }): JSX.Element {
  return (
    <div title={props.title}>
      <dt>{props.name}</dt>
      <dd class={props.isBad ? 'bad-text' : undefined}>
        {props.value}
        {props.unit && <span class="stat-unit"> {props.unit}</span>}
      </dd>
    </div>
  );
}

/** How near it is to its knee, and jobs that wait for another reason than slots. */
export function Held({ pool }: { pool: PoolSight }): JSX.Element | null {
  if (heldCount(pool) === 0 && !pool.near_knee) return null;
  return (
    <div class="row">
      {pool.near_knee && (
        <Badge tone="warn" title="A little more work would make all of it wait.">
          Near the knee
        </Badge>
      )}
      {Object.entries(pool.held ?? {})
        .filter(([, n]) => n)
        .map(([why, n]) => (
          <Tag key={why}>
            {compact(n)} {HELD[why] ?? why}
          </Tag>
        ))}
    </div>
  );
}

const HELD: Record<string, string> = {
  paused: 'paused',
  throttled: 'throttled',
  circuit: 'behind an open circuit',
};

export function drains(pool: PoolSight): string {
  if (pool.queued === 0) return 'empty';
  const { accepted_per_second: comes, ended_per_second: goes } = pool;
  if (pool.drain_seconds === null && comes !== null && goes !== null && comes > goes) return 'grows';
  return brief(pool.drain_seconds);
}

function slotsInWords(pool: PoolSight): string {
  return `${count(pool.running)} of ${count(pool.slots)} slots in use`;
}

function isSome(n: Known): boolean {
  return n !== null && n > 0;
}

