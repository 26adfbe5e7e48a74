/** What a tenant may do, how close it is, what was refused, and what holds its jobs. */
import type { JSX } from 'preact';

import { useLoad } from '../../api';
import { Badge, Card, type Column, Empty, Facts, Grid, Loads, Meter, Page, Table, Tag } from '../../components';
import { bytes, count, percent } from '../../format';
import type { HeldBack, Limits } from '../../types';
import type { Tone } from '../parts/words';

const EVERY_MS = 2000;
const NEAR = 0.8;

export function LimitsPage(): JSX.Element {
  const found = useLoad<Limits>('/v1/limits', { every: EVERY_MS });
  return (
    <Page title="Limits" about="What you may do, and how close you are. An operator can change them.">
      <Loads of={found}>
        {(limits) => (
          <>
            <Grid columns={2}>
              <HowClose limits={limits} />
              <Terms limits={limits} />
            </Grid>
            <Holds held={limits.held} />
            <Refused refused={limits.refused} />
          </>
        )}
      </Loads>
    </Page>
  );
}

function HowClose(props: { limits: Limits }): JSX.Element {
  const { limits } = props;
  const used = Math.max(0, limits.burst - limits.jobs_left);
  return (
    <Card title="How close">
      <Close
        label="Jobs at once"
        used={used}
        most={limits.burst}
        isReached={limits.reached.includes('rate_per_second')}
        about={`${count(limits.jobs_left)} may come at once now; ${count(limits.rate_per_second)} a second are given back.`}
      />
      <Close
        label="Jobs that wait"
        used={limits.depth}
        most={limits.depth_limit}
        isReached={limits.reached.includes('depth_limit')}
        about="One more than this gets a 429."
      />
      <p>
        <strong>Jobs that run at once in a pool: </strong>
        {limits.cap === null ? 'no limit but your share' : `${count(limits.cap)} at most`}{' '}
        {limits.reached.includes('cap') && <Badge tone="warn">reached</Badge>}
      </p>
    </Card>
  );
}

function Close(props: {
  label: string;
  used: number;
  most: number;
  isReached: boolean;
  about: string;
}): JSX.Element {
  const part = props.most > 0 ? props.used / props.most : 1;
  const tone: Tone = props.isReached ? 'bad' : part >= NEAR ? 'warn' : 'ok';
  const words = `${count(props.used)} of ${count(props.most)}`;
  return (
    <div class="close-to">
      <p>
        <strong>{props.label}: </strong>
        <span class="num">{words}</span> <span class="muted">({percent(part)})</span>{' '}
        {props.isReached && <Badge tone="bad">reached</Badge>}
      </p>
      <Meter part={part} tone={tone} label={`${props.label}: ${words}`} />
      <p class="muted">{props.about}</p>
    </div>
  );
}

function Terms(props: { limits: Limits }): JSX.Element {
  const { limits } = props;
  return (
    <Card title="Terms">
      <Facts
        items={[
          ['Tier', <Tag>{limits.tier}</Tag>],
          ['Weight', `${count(limits.weight)} beside other tenants' weights`],
          ['Rate', `${count(limits.rate_per_second)} jobs a second, over time`],
          ['Burst', `${count(limits.burst)} jobs at once`],
          ['Payload of a job', `${bytes(limits.payload_bytes_max)}, ${count(limits.payload_values_max)} values`],
          ['Batch', `${count(limits.batch_jobs_max)} jobs, ${count(limits.batch_values_max)} values`],
        ]}
      />
    </Card>
  );
}

const HELD: Column<HeldBack>[] = [
  {
    name: 'reason',
    title: 'Why',
    cell: (one) => <Badge tone="warn">{one.reason.replaceAll('_', ' ')}</Badge>,
  },
  { name: 'detail', title: 'In words', wide: true, cell: (one) => one.detail },
  { name: 'type', title: 'Job type', cell: (one) => one.type ?? 'every' },
  { name: 'pool', title: 'Pool', cell: (one) => one.pool ?? 'every' },
  { name: 'whose', title: 'Whose', minor: true, cell: (one) => (one.for_everybody ? 'everybody' : 'yours') },
];

function Holds(props: { held: HeldBack[] }): JSX.Element {
  return (
    <Card title="What keeps jobs from starting now" flush>
      <Table
        rows={props.held}
        columns={HELD}
        rowKey={(one) => `${one.reason} ${one.type ?? ''} ${one.pool ?? ''}`}
        label="Holds"
        empty={<Empty title="Nothing holds your jobs" text="Pauses, open circuits and throttles show up here." />}
      />
    </Card>
  );
}

type Refusal = [code: string, times: number];

const REFUSALS: Column<Refusal>[] = [
  {
    name: 'code',
    title: 'Code',
    cell: ([code]) => (
      <a href={`/problems/${encodeURIComponent(code.toLowerCase().replaceAll('_', '-'))}`} target="_blank" rel="noreferrer">
        {code}
      </a>
    ),
  },
  { name: 'times', title: 'Submissions refused', numeric: true, cell: ([, times]) => count(times) },
];

function Refused(props: { refused: Record<string, number> }): JSX.Element {
  const rows = Object.entries(props.refused).sort((a, b) => b[1] - a[1]);
  return (
    <Card title="Refused since this server started" flush>
      <Table
        rows={rows}
        columns={REFUSALS}
        rowKey={([code]) => code}
        label="Refusals"
        empty={<Empty title="Nothing was refused" text="Each code here leads to the page that explains it." />}
      />
    </Card>
  );
}
