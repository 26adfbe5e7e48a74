/** Pools side by side, and one of them closer: its terms, its past, holding it back. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useLoad, withQuery } from '../../api';
import {
  Badge,
  Button,
  Card,
  type Column,
  Confirm,
  Duration,
  Empty,
  Facts,
  Loads,
  Meter,
  Page,
  Row,
  Table,
  Tag,
  toast,
} from '../../components';
import { compact, count, percent, rate, seconds } from '../../format';
import { useLive } from '../../live';
import { useQuery } from '../../router';
import { useMay } from '../../session';
import type { Overview, Pause, Pool, PoolSight } from '../../types';
import { ageTone, ageWord, loadTone } from './health';
import { HistoryCharts, SpanSelect, useSpan } from './history';
import { drains, Held } from './pool_card';
import { PoolDialog } from './pool_dialog';

/** A pool as it is set and as it is seen; one of the two may not be known yet. */
interface Both {
  name: string;
  terms: Pool;
  sight: PoolSight | undefined;
}

const COLUMNS: Column<Both>[] = [
  { name: 'pool', title: 'Pool', cell: ({ name }) => name },
  {
    name: 'state',
    title: 'Oldest job',
    cell: ({ sight }) =>
      sight ? (
        <Badge tone={ageTone(sight)} title={`Target ${seconds(sight.slo_seconds)}`}>
          {sight.oldest_runnable_age_seconds === null
            ? ageWord(sight)
            : `${seconds(sight.oldest_runnable_age_seconds)} · ${ageWord(sight).toLowerCase()}`}
        </Badge>
      ) : (
        <Badge tone="muted">Not known</Badge>
      ),
  },
  { name: 'waiting', title: 'Waiting', numeric: true, cell: ({ sight }) => compact(sight?.queued) },
  {
    name: 'use',
    title: 'Slots in use',
    cell: ({ sight }) => (
      <span class="meter-cell">
        <Meter
          part={sight?.utilisation}
          tone={loadTone(sight?.utilisation ?? null)}
          label={`${count(sight?.running)} of ${count(sight?.slots)} slots in use`}
        />
        <span class="num">
          {count(sight?.running)} / {count(sight?.slots)}
        </span>
      </span>
    ),
  },
  { name: 'in', title: 'In /s', numeric: true, cell: ({ sight }) => rate(sight?.accepted_per_second) },
  { name: 'out', title: 'Out /s', numeric: true, cell: ({ sight }) => rate(sight?.ended_per_second) },
  {
    name: 'failed',
    title: 'Failed /s',
    numeric: true,
    minor: true,
    cell: ({ sight }) => rate(sight?.failed_per_second),
  },
  {
    name: 'pickup',
    title: 'Pick-up p99',
    numeric: true,
    cell: ({ sight }) => <Duration seconds={sight?.pickup_seconds?.p99} />,
  },
  {
    name: 'drain',
    title: 'Drains in',
    numeric: true,
    minor: true,
    cell: ({ sight }) => (sight ? drains(sight) : <Duration seconds={null} />),
  },
];

export function PoolsPage(): JSX.Element {
  const pools = useLoad<{ pools: Pool[] }>('/v1/pools', { tenant: null, every: 30_000 });
  const first = useLoad<Overview>('/v1/overview', { tenant: null });
  const overview = useLive().overview ?? first.data;
  const [query, setQuery] = useQuery();
  const [isAdding, setAdding] = useState(false);
  const mayOperate = useMay('operate');
  const both = (pools.data?.pools ?? []).map((terms) => ({
    name: terms.name,
    terms,
    sight: overview?.pools.find((one) => one.name === terms.name),
  }));
  const picked = both.find((one) => one.name === query.get('pool')) ?? both[0];
  return (
    <Page
      title="Pools"
      about="Three by how long jobs run, and those that you add for a kind of machine."
      actions={mayOperate && <Button onClick={() => setAdding(true)}>Add a pool</Button>}
    >
      <Card flush>
        <Loads of={pools}>
          {() => (
            <Table
              label="Pools"
              rows={both}
              columns={COLUMNS}
              rowKey={({ name }) => name}
              empty={<Empty title="No pools" text="The server has not told of any yet." />}
              onRow={({ name }) => setQuery({ pool: name })}
              isCurrent={({ name }) => name === picked?.name}
            />
          )}
        </Loads>
      </Card>
      {picked && <Closer key={picked.name} pool={picked} onChanged={pools.reload} />}
      {isAdding && <PoolDialog onClose={() => setAdding(false)} onDone={pools.reload} />}
    </Page>
  );
}

function Closer({ pool, onChanged }: { pool: Both; onChanged: () => void }): JSX.Element {
  const [span, setSpan] = useSpan();
  const [isChanging, setChanging] = useState(false);
  const mayOperate = useMay('operate');
  const { terms, sight } = pool;
  const isBuiltIn = terms.fits_seconds !== null || ['short', 'medium', 'long'].includes(pool.name);
  return (
    <section class="past" aria-label={`Pool ${pool.name}`}>
      <Row class="row-between">
        <h2 class="section-title">{pool.name}</h2>
        <Row>
          {sight && <Held pool={sight} />}
          <SpanSelect span={span} onChange={setSpan} />
          {mayOperate && !isBuiltIn && <Button onClick={() => setChanging(true)}>Change terms</Button>}
          {mayOperate && <PausePool name={pool.name} />}
        </Row>
      </Row>
      <HistoryCharts of="pool" name={pool.name} target={sight?.slo_seconds ?? terms.pickup_target_seconds} span={span} />
      <Card title="Terms" about="How its jobs are run.">
        <Facts
          items={[
            ['Pick-up target', seconds(terms.pickup_target_seconds)],
            ['Fits runs up to', terms.fits_seconds === null ? 'any length' : seconds(terms.fits_seconds)],
            ['Slots a worker offers', count(terms.slots)],
            ['Lease', `${terms.lease_mode}, ${seconds(terms.lease_seconds)}`],
            ['Runs in', terms.run_mode ?? 'loop or thread'],
            ['Checkpoints', terms.checkpoint],
            ['Attempts', count(terms.attempts)],
            ['Floors may claim', percent(terms.reserved_per_mille / 1000)],
            [
              'Workers need',
              terms.labels.length ? terms.labels.map((label) => <Tag key={label}>{label}</Tag>) : 'no labels',
            ],
          ]}
        />
      </Card>
      {isChanging && <PoolDialog pool={terms} onClose={() => setChanging(false)} onDone={onChanged} />}
    </section>
  );
}

/** Holds back what waits there; what runs, runs on. */
function PausePool({ name }: { name: string }): JSX.Element {
  const pauses = useLoad<{ pauses: Pause[] }>('/v1/pauses', { tenant: null, every: 10_000 });
  const [isAsking, setAsking] = useState(false);
  const isPaused = (pauses.data?.pauses ?? []).some((one) => one.pool === name && !one.tenant && !one.type);
  const change = async (): Promise<void> => {
    if (isPaused) await act('DELETE', withQuery('/v1/pauses', { pool: name }));
    else await act('POST', '/v1/pauses', { pool: name });
    toast(isPaused ? `Pool ${name} runs again.` : `Pool ${name} is paused.`);
    pauses.reload();
  };
  const verb = isPaused ? 'Resume' : 'Pause';
  return (
    <>
      {isPaused && <Badge tone="warn">Paused</Badge>}
      <Button kind={isPaused ? 'primary' : 'danger'} onClick={() => setAsking(true)}>
        {verb} pool
      </Button>
      <Confirm
        title={`${verb} the pool ${name}?`}
        open={isAsking}
        onClose={() => setAsking(false)}
        action={`${verb} pool`}
        kind={isPaused ? 'primary' : 'danger'}
        onConfirm={change}
      >
        <p>
          {isPaused
            ? 'Jobs that wait there may start again at once.'
            : 'Jobs are still accepted there, and none starts until you resume it. What runs, runs on.'}
        </p>
      </Confirm>
    </>
  );
}
