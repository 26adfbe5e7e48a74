/** One pool: the workers it has, those it wants, and what it goes by. */
import type { JSX } from 'preact';

import { Badge, Button, Meter, Time, type Tone } from '../../components';
import { brief, count, percent, plural } from '../../format';
import { Link } from '../../router';
import { useMay } from '../../session';
import type { ScaledPool } from '../../types';

const MODES: Record<ScaledPool['mode'], [Tone, string, string]> = {
  on: ['ok', 'On', 'What is decided is done.'],
  dry_run: ['info', 'Dry run', 'What is decided is written down, and nobody acts on it.'],
  off: ['muted', 'Off', 'Nothing is decided.'],
};

export function ScaleCard(props: { pool: ScaledPool; onOverride: () => void; onEnd: () => void }): JSX.Element {
  const { pool } = props;
  const [tone, word, title] = MODES[pool.mode];
  return (
    <section class="card pool-card">
      <header class="pool-head">
        <h2>
          <Link to={`/ui/pools?pool=${encodeURIComponent(pool.pool)}`}>{pool.pool}</Link>
        </h2>
        <Badge tone={tone} title={title}>
          {word}
        </Badge>
      </header>
      <div class="headline">
        <div class="stat-value headline-value">
          {count(pool.workers)}
          {pool.wanted_workers !== pool.workers && <Arrow to={pool.wanted_workers} />}
          <span class="stat-unit"> {pool.wanted_workers === 1 ? 'worker' : 'workers'}</span>
        </div>
        <div class="stat-hint">{wantsInWords(pool)}</div>
      </div>
      {pool.mode !== 'off' && <Bounds pool={pool} />}
      <dl class="pool-facts pool-facts-three">
        <Fact name="Busy" value={`${count(pool.busy_workers)} of ${count(pool.workers)}`} />
        <Fact name="Slots" value={count(pool.slots)} />
        <Fact name="In use" value={percent(pool.utilisation)} />
        <Fact name="Backlog" title="Slot-time that the waiting jobs will take" value={brief(pool.backlog_slot_seconds)} />
        <Fact
          name="Closed"
          title="Workers that get no more jobs: they end what they run, and are ended"
          value={count(pool.closed_workers)}
        />
        <Fact name="Oldest job" title="That could run" value={brief(pool.oldest_runnable_age_seconds)} />
      </dl>
      <Override {...props} />
    </section>
  );
}

function Arrow({ to }: { to: number }): JSX.Element {
  return (
    <>
      <span class="sr-only"> now, wanted: </span>
      <span class="scale-arrow" aria-hidden="true">
        {' → '}
      </span>
      {count(to)}
    </>
  );
}

function wantsInWords(pool: ScaledPool): string {
  if (pool.mode === 'off') return 'started and ended by people';
  const more = pool.wanted_workers - pool.workers;
  if (more === 0) return 'as many as it wants';
  return more > 0 ? `wants ${plural(more, 'more', 'more')}` : `could do with ${plural(-more, 'fewer', 'fewer')}`;
}

/** Where it stands between the fewest and the most it may have; the mark is what it wants. */
function Bounds({ pool }: { pool: ScaledPool }): JSX.Element {
  const most = Math.max(pool.maximum_workers, 1);
  const words = `${plural(pool.workers, 'worker')}, wanted ${count(pool.wanted_workers)}, from ${count(pool.minimum_workers)} to ${count(pool.maximum_workers)}`;
  return (
    <div class="pool-use">
      <Meter
        part={pool.workers / most}
        mark={pool.wanted_workers / most}
        tone={pool.wanted_workers >= pool.maximum_workers ? 'warn' : 'info'}
        label={words}
      />
      <span class="stat-hint">
        {count(pool.minimum_workers)} at least, {count(pool.maximum_workers)} at most
        {pool.wanted_workers >= pool.maximum_workers && ' · it wants all it may have'}
      </span>
    </div>
  );
}

function Fact(props: { name: string; value: string; title?: string }): JSX.Element {
  return (
    <div title={props.title}>
      <dt>{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  );
}

function Override(props: { pool: ScaledPool; onOverride: () => void; onEnd: () => void }): JSX.Element | null {
  const { mode, override, pool } = props.pool;
  const may = useMay('operate') && mode !== 'off'; // nobody would act on it
  if (override === null && !may) return null;
  return (
    <div class="scale-foot">
      {override !== null && (
        <p>
          <Badge tone="warn">Override</Badge> {plural(override.workers, 'worker')} until <Time at={override.until} />
          {override.by && <span class="muted break">, by {override.by}</span>}
        </p>
      )}
      {may && (
        <div class="actions">
          <Button small label={override === null ? `Override ${pool}` : `Change the override of ${pool}`} onClick={props.onOverride}>
            {override === null ? 'Override…' : 'Change…'}
          </Button>
          {override !== null && (
            <Button small label={`End the override of ${pool}`} onClick={props.onEnd}>
              End
            </Button>
          )}
        </div>
      )}
    </div>
  );
}
