/** The workers that the platform hears: what they run, and asking one to drain. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useLoad } from '../../api';
import {
  Badge,
  Button,
  Card,
  Code,
  type Column,
  Confirm,
  Dialog,
  Duration,
  Empty,
  Facts,
  Loads,
  Meter,
  Page,
  Search,
  Stat,
  Table,
  Tag,
  toast,
} from '../../components';
import { count, plural } from '../../format';
import { useQuery } from '../../router';
import { useMay } from '../../session';
import type { Worker } from '../../types';

function total(slots: Record<string, number>): number {
  return Object.values(slots).reduce((sum, n) => sum + n, 0);
}

function State({ worker }: { worker: Worker }): JSX.Element {
  if (worker.draining) return <Badge tone="info">Draining</Badge>;
  if (worker.silent) return <Badge tone="warn">Silent</Badge>;
  if (worker.closed_seconds != null)
    return (
      <span title={worker.closed_because ?? ''}>
        <Badge tone="info">Closed</Badge> <Duration seconds={worker.closed_seconds} />
      </span>
    );
  return <Badge tone="ok">Live</Badge>;
}

/** Running and offered, pool by pool. */
function Slots({ worker }: { worker: Worker }): JSX.Element {
  return (
    <span class="slots">
      {Object.entries(worker.slots).map(([pool, slots]) => {
        const running = worker.running[pool] ?? 0;
        return (
          <span key={pool} class="slots-pool">
            <span>{pool}</span>
            <Meter part={slots ? running / slots : 0} label={`${running} of ${slots} slots in use in ${pool}`} />
            <span class="num">
              {running} / {slots}
            </span>
          </span>
        );
      })}
    </span>
  );
}

function columns(mayDrain: boolean, onDrain: (worker: Worker) => void): Column<Worker>[] {
  return [
    { name: 'worker', title: 'Worker', cell: (worker) => <b class="break">{worker.name}</b> },
    { name: 'state', title: 'State', cell: (worker) => <State worker={worker} /> },
    { name: 'slots', title: 'Running of slots', cell: (worker) => <Slots worker={worker} /> },
    { name: 'whose', title: 'Runs jobs of', cell: (worker) => worker.tenant ?? <span class="muted">everybody</span> },
    { name: 'build', title: 'Build', minor: true, cell: (worker) => (worker.build ? <Tag>{worker.build}</Tag> : '–') },
    {
      name: 'heard',
      title: 'Last heard',
      numeric: true,
      minor: true,
      cell: (worker) => <Duration seconds={worker.silent_seconds} />,
    },
    {
      name: 'actions',
      title: '',
      cell: (worker) =>
        mayDrain &&
        !worker.draining && (
          <Button small label={`Drain ${worker.name}`} onClick={() => onDrain(worker)}>
            Drain
          </Button>
        ),
    },
  ];
}

export function WorkersPage(): JSX.Element {
  const workers = useLoad<{ workers: Worker[] }>('/v1/workers', { tenant: null, every: 3000 });
  const [query, setQuery] = useQuery();
  const [draining, setDraining] = useState<Worker>();
  const [shown, setShown] = useState<Worker>();
  const mayDrain = useMay('operate');
  const searched = (query.get('q') ?? '').toLowerCase();
  const fits = (worker: Worker): boolean =>
    [worker.name, worker.build, worker.tenant ?? '', ...Object.keys(worker.slots)].some((text) =>
      text.toLowerCase().includes(searched),
    );
  return (
    <Page
      title="Workers"
      about="Each life of each worker that the platform hears."
      actions={<Search label="Search workers" value={query.get('q') ?? ''} onSearch={(q) => setQuery({ q })} />}
    >
      <Loads of={workers}>
        {({ workers: all }) => (
          <>
            <Summary workers={all} />
            <Card flush>
              <Table
                label="Workers"
                rows={all.filter(fits)}
                columns={columns(mayDrain, setDraining)}
                rowKey={(worker) => worker.life}
                onRow={setShown}
                tone={(worker) => (worker.silent ? 'warn' : undefined)}
                empty={all.length === 0 ? <None /> : <Empty title="No worker fits your search" />}
              />
            </Card>
          </>
        )}
      </Loads>
      <Confirm
        title={`Drain ${draining?.name ?? ''}?`}
        open={draining !== undefined}
        onClose={() => setDraining(undefined)}
        action="Drain worker"
        kind="primary"
        onConfirm={async () => {
          if (draining === undefined) return;
          await act('POST', `/v1/workers/${encodeURIComponent(draining.life)}/drain`);
          toast(`${draining.name} was asked to drain.`);
          workers.reload();
        }}
      >
        <p>
          It takes no more jobs, asks those it runs to checkpoint and hand themselves back, waits as long as its
          own grace allows, and ends. No job uses an attempt for it.
        </p>
      </Confirm>
      <Dialog title={shown?.name ?? ''} open={shown !== undefined} onClose={() => setShown(undefined)} wide>
        {shown && <Closer worker={workers.data?.workers.find((one) => one.life === shown.life) ?? shown} />}
      </Dialog>
    </Page>
  );
}

function Summary({ workers }: { workers: Worker[] }): JSX.Element {
  const running = workers.reduce((sum, one) => sum + total(one.running), 0);
  const slots = workers.reduce((sum, one) => sum + total(one.slots), 0);
  const draining = workers.filter((one) => one.draining).length;
  const closed = workers.filter((one) => one.closed_seconds != null).length;
  const builds = new Set(workers.map((one) => one.build).filter(Boolean)).size;
  return (
    <Card>
      <div class="stats">
        <Stat label="Workers" value={count(workers.length)} hint={`${count(draining)} draining, ${count(closed)} closed`} />
        <Stat label="Jobs running" value={count(running)} unit={`of ${count(slots)} slots`} />
        <Stat label="Builds" value={count(builds)} hint={buildsInWords(builds)} />
      </div>
    </Card>
  );
}

function buildsInWords(builds: number): string {
  if (builds === 0) return 'no worker says its own';
  return builds > 1 ? 'more than one is out' : 'all the same';
}

function Closer({ worker }: { worker: Worker }): JSX.Element {
  const limits = Object.entries(worker.limits);
  return (
    <>
      <Facts
        items={[
          ['State', <State worker={worker} />],
          ['Life', <code>{worker.life}</code>],
          ['Build', worker.build || 'not said'],
          ['Runs jobs of', worker.tenant ?? 'everybody'],
          ['Last heard', <Duration seconds={worker.silent_seconds} />],
          ['Runs now', plural(total(worker.running), 'job')],
        ]}
      />
      <Slots worker={worker} />
      <h3 class="small-title">What holds jobs to their limits there</h3>
      {limits.length === 0 ? (
        <p class="muted">It has not said.</p>
      ) : (
        <Facts items={limits.map(([limit, by]) => [limit, by] as const)} />
      )}
    </>
  );
}

function None(): JSX.Element {
  return (
    <Empty title="No worker is there" text="Jobs are accepted and wait. Start one where your code is:">
      <Code text="fairway worker yourmodule:app --pool short --slots 50" label="Command" />
    </Empty>
  );
}
