/** What a tenant used, what a month came to, and what it may spend. */
import type { JSX } from 'preact';

import { useLoad, withQuery } from '../../api';
import { Card, Chart, type Column, type Columns, Empty, Field, Grid, Loads, Page, Row, Select, type Series, Stat, Table, Tag, Time } from '../../components';
import { count } from '../../format';
import { useQuery } from '../../router';
import type { Price, Usage, UsageLine } from '../../types';
import { useWhose } from '../parts/whose';
import { slotTime } from '../parts/words';
import { PriceTable } from './price_table';
import { SpendCapCard } from './spend_cap';
import { StatementCard } from './statement';

const HOUR_MS = 3_600_000;
const SERIES_MAX = 5;
const TONES = ['accent', 'second', 'ok', 'warn', 'bad'] as const;

const SPANS = [
  { value: 'day', label: 'last 24 hours, by hour', by: 'hour', hours: 24 },
  { value: 'week', label: 'last 7 days, by hour', by: 'hour', hours: 7 * 24 },
  { value: 'month', label: 'last 30 days, by day', by: 'day', hours: 30 * 24 },
  { value: 'year', label: 'last 12 months, by month', by: 'month', hours: 365 * 24 },
] as const;
const GROUPS = [
  { value: 'type', label: 'job type' },
  { value: 'pool', label: 'pool' },
  { value: 'pool,type', label: 'pool and job type' },
];

export function UsagePage(): JSX.Element {
  const [query, setQuery] = useQuery();
  const whose = useWhose();
  const span = SPANS.find((one) => one.value === query.get('span')) ?? SPANS[0];
  const group = GROUPS.find((one) => one.value === query.get('group'))?.value ?? 'type';
  const to = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS;
  const asked = {
    ...whose,
    from: new Date(to - span.hours * HOUR_MS).toISOString(),
    to: new Date(to).toISOString(),
    by: span.by,
    group,
  };
  const found = useLoad<Usage>(withQuery('/v1/usage', asked), { tenant: null });
  return (
    <Page
      title="Usage"
      about="Slot-time of runs by the hour they ended in, exact to the microsecond. Runs that the platform cut short are not billed."
    >
      <Grid columns={2}>
        <SpendCapCard />
        <Totals usage={found.data} />
      </Grid>
      <Card
        title="By period"
        actions={
          <a href={withQuery('/v1/usage', { ...asked, format: 'csv' })} download="usage.csv">
            Download CSV
          </a>
        }
      >
        <Row class="filters">
          <Field label="Time">
            <Select value={span.value} choices={SPANS} onChange={(value) => setQuery({ span: value })} />
          </Field>
          <Field label="By">
            <Select value={group} choices={GROUPS} onChange={(value) => setQuery({ group: value })} />
          </Field>
        </Row>
        <Loads of={found}>{(usage) => <Used usage={usage} />}</Loads>
      </Card>
      <StatementCard />
      <Prices />
    </Page>
  );
}

/** The same list for everybody. */
function Prices(): JSX.Element {
  const found = useLoad<{ prices: Price[] }>('/v1/prices', { tenant: null });
  return (
    <Card flush title="Prices" about="By which the statement is made. A pool's own comes before that of every other.">
      <Loads of={found}>{({ prices }) => <PriceTable prices={prices} />}</Loads>
    </Card>
  );
}

function Totals(props: { usage: Usage | undefined }): JSX.Element {
  const total = props.usage?.total;
  return (
    <Card title="In this time">
      <div class="stats stats-few">
        <Stat label="Jobs ended" value={count(total?.jobs)} />
        <Stat label="Runs billed" value={count(total?.attempts)} />
        <Stat label="Slot-time billed" value={slotTime(total?.billed_us)} />
        <Stat label="Not billed" value={slotTime(total?.unbilled_us)} hint="cut short by the platform" />
      </div>
    </Card>
  );
}

function nameOf(line: UsageLine): string {
  return [line.pool, line.type].filter(Boolean).join(' · ') || 'all';
}

const COLUMNS: Column<UsageLine>[] = [
  { name: 'period', title: 'From', cell: (line) => <Time at={line.period} /> },
  { name: 'pool', title: 'Pool', cell: (line) => (line.pool ? <Tag>{line.pool}</Tag> : 'all') },
  { name: 'type', title: 'Job type', wide: true, cell: (line) => <span class="job-type">{line.type ?? 'all'}</span> },
  { name: 'jobs', title: 'Jobs', numeric: true, cell: (line) => count(line.jobs) },
  { name: 'attempts', title: 'Runs', numeric: true, minor: true, cell: (line) => count(line.attempts) },
  { name: 'billed', title: 'Billed', numeric: true, cell: (line) => slotTime(line.billed_us) },
  { name: 'unbilled', title: 'Not billed', numeric: true, minor: true, cell: (line) => slotTime(line.unbilled_us) },
];

function Used(props: { usage: Usage }): JSX.Element {
  const { lines } = props.usage;
  const newest = [...lines].reverse().slice(0, 200);
  const { data, series } = columnsOf(lines);
  return (
    <>
      {data.at.length > 1 && (
        <Chart data={data} series={series} unit="seconds" label="Billed slot-time by period" />
      )}
      <Table
        rows={newest}
        columns={COLUMNS}
        rowKey={(line) => `${line.period} ${nameOf(line)}`}
        label="Usage"
        empty={<Empty title="Nothing was used" text="No run ended in this time. Pick a longer one." />}
      />
      {lines.length > newest.length && (
        <p class="muted">The newest {count(newest.length)} of {count(lines.length)} lines; all are in the CSV.</p>
      )}
    </>
  );
}

/** A line for each of the largest, and one for all others together. */
function columnsOf(lines: UsageLine[]): { data: Columns; series: Series[] } {
  const at = [...new Set(lines.map((line) => line.period))].sort();
  const sums = new Map<string, number>();
  for (const line of lines) {
    sums.set(nameOf(line), (sums.get(nameOf(line)) ?? 0) + line.billed_us);
  }
  const names = [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const shown = names.slice(0, names.length > SERIES_MAX ? SERIES_MAX - 1 : SERIES_MAX);
  const labels = names.length > shown.length ? [...shown, 'all others'] : shown;
  const columns = labels.map(() => at.map(() => 0));
  for (const line of lines) {
    const found = shown.indexOf(nameOf(line));
    const column = columns[found < 0 ? shown.length : found];
    const place = at.indexOf(line.period);
    if (column) column[place] = (column[place] ?? 0) + line.billed_us / 1e6;
  }
  const named = Object.fromEntries(columns.map((column, n) => [`s${n}`, column]));
  return {
    data: { ...named, at: at.map((period) => Date.parse(period) / 1000) },
    series: labels.map((label, n) => ({ key: `s${n}`, label, tone: TONES[n] ?? 'muted' })),
  };
}
