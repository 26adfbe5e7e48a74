/** A tenant's own face: what waits, what runs, how soon, and the share it gets of what it is due. */
import type { JSX } from 'preact';

import { ApiError, useLoad } from '../../api';
import { Badge, Card, Chart, type Column, Duration, Empty, Grid, Loading, Meter, Page, Problem, Stat, Table, Tag } from '../../components';
import { compact, percent, plural, rate, seconds } from '../../format';
import { useLive } from '../../live';
import { Link } from '../../router';
import type { FailureGroups, History, Limits, Overview, PoolSight } from '../../types';
import { isKnown, useTenantHistory } from '../parts/history';
import type { Tone } from '../parts/words';

const SLOW_MS = 10_000;

export function HomePage(): JSX.Element {
  const live = useLive();
  // before the first word of the stream, and where it cannot come through
  const asked = useLoad<Overview>(live.overview ? null : '/v1/overview', { every: SLOW_MS });
  const overview = live.overview ?? asked.data;
  return (
    <Page
      title={overview?.tenant ? `Home of ${overview.tenant}` : 'Home'}
      about="Your own jobs only, as they happen."
    >
      <Held />
      {live.state === 'waiting' && overview && (
        <Problem error={new ApiError(503, 'UNAVAILABLE', 'These numbers are not of this moment', live.why ?? '')} />
      )}
      {overview ? <Numbers overview={overview} /> : asked.error ? <Problem error={asked.error} /> : <Loading />}
      <Past />
      <Worst />
    </Page>
  );
}

/** What keeps jobs from starting now is said before any number. */
function Held(): JSX.Element | null {
  const { data } = useLoad<Limits>('/v1/limits', { every: SLOW_MS });
  if (!data || (!data.held.length && !data.reached.length)) return null;
  return (
    <Card title="Held back">
      <ul class="list">
        {data.reached.map((name) => (
          <li key={name}>
            <Badge tone="warn">limit reached</Badge> {name.replaceAll('_', ' ')}
          </li>
        ))}
        {data.held.slice(0, 10).map((one, n) => (
          <li key={n}>
            <Badge tone="warn">{one.reason.replaceAll('_', ' ')}</Badge> {one.detail}{' '}
            {one.type && <Tag>{one.type}</Tag>} {one.pool && <Tag>{one.pool}</Tag>}
          </li>
        ))}
      </ul>
      <p>
        <Link to="/ui/limits">All limits</Link>
      </p>
    </Card>
  );
}

type Key = keyof PoolSight;

/** Null when no pool knows. */
function sum(pools: PoolSight[], key: Key): number | null {
  const known = pools.map((pool) => pool[key]).filter((n): n is number => typeof n === 'number');
  return known.length ? known.reduce((all, n) => all + n, 0) : null;
}

function most(pools: PoolSight[], of: (pool: PoolSight) => number | null | undefined): number | null {
  const known = pools.map(of).filter((n): n is number => typeof n === 'number');
  return known.length ? Math.max(...known) : null;
}

function Numbers(props: { overview: Overview }): JSX.Element {
  const { pools } = props.overview;
  return (
    <>
      <Card>
        <div class="stats stats-row">
        <Stat label="Waiting" value={compact(sum(pools, 'queued'))} hint="jobs in the queue" />
        <Stat label="Running" value={compact(sum(pools, 'running'))} hint="jobs on a slot" />
        <Stat
          label="Oldest waits"
          value={seconds(most(pools, (pool) => pool.oldest_runnable_age_seconds))}
          hint="of those that may start"
        />
        <Stat
          label="Pick-up p99"
          value={seconds(most(pools, (pool) => pool.pickup_seconds?.p99))}
          hint="from due to started, the slowest pool"
        />
        <Stat label="Submitted" value={rate(sum(pools, 'accepted_per_second'))} unit="/s" />
        <Stat label="Ended" value={rate(sum(pools, 'ended_per_second'))} unit="/s" />
        <Stat label="Retried" value={rate(sum(pools, 'retried_per_second'))} unit="/s" />
        <Stat label="Died" value={rate(sum(pools, 'dead_per_second'))} unit="/s" />
        </div>
      </Card>
      <Card title="By pool" flush>
        <Table
          rows={pools}
          columns={COLUMNS}
          rowKey={(pool) => pool.name}
          label="Pools"
          empty={<Empty title="No pool has jobs of yours" text="Submit one, and its pool is here." />}
        />
      </Card>
    </>
  );
}

const COLUMNS: Column<PoolSight>[] = [
  { name: 'name', title: 'Pool', cell: (pool) => <Tag>{pool.name}</Tag> },
  { name: 'queued', title: 'Waiting', numeric: true, cell: (pool) => compact(pool.queued) },
  { name: 'running', title: 'Running', numeric: true, cell: (pool) => compact(pool.running) },
  {
    name: 'oldest',
    title: 'Oldest',
    numeric: true,
    cell: (pool) => <Duration seconds={pool.oldest_runnable_age_seconds} />,
  },
  {
    name: 'pickup',
    title: 'Pick-up p50 / p99',
    numeric: true,
    cell: (pool) => `${seconds(pool.pickup_seconds?.p50)} / ${seconds(pool.pickup_seconds?.p99)}`,
  },
  {
    name: 'rates',
    title: 'In / out',
    numeric: true,
    minor: true,
    cell: (pool) => `${rate(pool.accepted_per_second)} / ${rate(pool.ended_per_second)} per s`,
  },
  { name: 'share', title: 'Share received of entitled', cell: (pool) => <ShareOf pool={pool} /> },
];

function ShareOf(props: { pool: PoolSight }): JSX.Element {
  const { share_received: got, share_entitled: due } = props.pool;
  if (typeof got !== 'number' || typeof due !== 'number') {
    return <span class="muted">no work of late</span>;
  }
  const top = Math.max(got, due, 1e-9);
  const tone: Tone = got >= due * 0.9 ? 'ok' : got >= due * 0.5 ? 'warn' : 'bad';
  const words = `${percent(got)} of the pool, entitled to ${percent(due)}`;
  return (
    <span class="share">
      <Meter part={got / top} mark={due / top} tone={tone} label={words} />
      <span class="num">
        {percent(got)} of {percent(due)}
      </span>
    </span>
  );
}

function Past(): JSX.Element | null {
  const history = useTenantHistory();
  if (!history) return null;
  if (!isKnown(history)) {
    return (
      <Card title="The last hour">
        <Empty title="No history yet" text="The first points come within a minute or two of your first jobs." />
      </Card>
    );
  }
  return (
    <Grid columns={2}>
      <PastCard history={history} title="In and out" keys={[['accepted', 'submitted', 'accent'], ['succeeded', 'succeeded', 'ok'], ['dead', 'dead', 'bad']]} />
      <PastCard history={history} title="Waiting and running" keys={[['queued', 'waiting', 'accent'], ['running', 'running', 'second']]} />
      <PastCard history={history} title="Pick-up" unit="seconds" keys={[['pickup_p50', 'p50', 'accent'], ['pickup_p99', 'p99', 'warn']]} />
      <PastCard history={history} title="Run time" unit="seconds" keys={[['run_p50', 'p50', 'accent'], ['run_p99', 'p99', 'warn']]} />
    </Grid>
  );
}

function PastCard(props: {
  history: History;
  title: string;
  unit?: 'count' | 'seconds';
  keys: [string, string, 'accent' | 'ok' | 'bad' | 'warn' | 'second'][];
}): JSX.Element {
  return (
    <Card title={props.title} about="By the minute, over the last hour.">
      <Chart
        data={props.history}
        unit={props.unit ?? 'count'}
        label={`${props.title} over the last hour`}
        series={props.keys.map(([key, label, tone]) => ({ key, label, tone }))}
      />
    </Card>
  );
}

function Worst(): JSX.Element | null {
  const { data } = useLoad<FailureGroups>('/v1/dead-letters/groups', { every: SLOW_MS });
  if (!data?.groups.length) return null;
  const all = data.types.reduce((total, one) => total + one.count, 0);
  return (
    <Card title="Dead letters">
      <p>
        {plural(all, 'job')} ended without success, most of <span class="job-type">{data.types[0]?.type}</span>.{' '}
        <Link to="/ui/failures">See why, and replay them</Link>
      </p>
    </Card>
  );
}
