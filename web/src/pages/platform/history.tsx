/** Charts of the minutes and hours that are kept, of a pool, a tenant or a job type. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';

import { useLoad, withQuery } from '../../api';
import { Card, Chart, type ChartMark, type Columns, Grid, Loads, Select } from '../../components';
import type { History, Known } from '../../types';
import { MarkList, useMarks } from './marks';

const SPANS = [
  { value: '3600', label: 'Last hour' },
  { value: '21600', label: 'Last 6 hours' },
  { value: '86400', label: 'Last day' },
  { value: '604800', label: 'Last week' },
  { value: '2592000', label: 'Last 30 days' },
] as const;
const MINUTES_UP_TO = 86_400; // of a longer span, hours are enough for the eye

export function useSpan(): [string, (span: string) => void] {
  return useState<string>('3600');
}

export function SpanSelect(props: { span: string; onChange: (span: string) => void }): JSX.Element {
  return <Select label="Span of time" value={props.span} choices={SPANS} onChange={props.onChange} />;
}

/** Asked anew each minute: the span's ends move with the clock. */
function usePath(of: string, name: string | null, span: string): string {
  const [now, setNow] = useState(() => Math.floor(Date.now() / 60_000));
  useEffect(() => {
    const timer = setInterval(() => setNow(Math.floor(Date.now() / 60_000)), 15_000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Number(span);
  return withQuery('/v1/history', {
    of,
    name,
    from: new Date(now * 60_000 - seconds * 1000).toISOString(),
    to: new Date(now * 60_000).toISOString(),
    step: seconds <= MINUTES_UP_TO ? 'minute' : 'hour',
  });
}

const SHOWN_AT_LEAST = 15;

/** Without the time before anything was kept, as on the first day of a server. */
export function trimmed(history: History): History {
  const first = history.at.findIndex((_, i) =>
    [history.accepted, history.queued, history.slots, history.started].some((column) => column[i] != null),
  );
  const from = Math.max(0, Math.min((first < 0 ? 0 : first) - 1, history.at.length - SHOWN_AT_LEAST));
  if (from === 0) return history;
  const cut = Object.entries(history).map(([name, value]: [string, unknown]) => [
    name,
    Array.isArray(value) ? value.slice(from) : value,
  ]);
  return Object.fromEntries(cut) as History;
}

interface Flow extends Columns {
  accepted: Known[];
  succeeded: Known[];
  failed: Known[];
  dead: Known[];
}

function perSecond(history: History): Flow {
  const each = (column: Known[]): Known[] =>
    column.map((n) => (n === null ? null : n / history.step_seconds));
  return {
    at: history.at,
    accepted: each(history.accepted),
    succeeded: each(history.succeeded),
    failed: each(history.failed),
    dead: each(history.dead),
  };
}

function withTarget(history: History, target: Known | undefined): Columns {
  const line = history.at.map(() => target ?? null);
  return { ...history, target: line } as Columns;
}

export interface HistoryChartsProps {
  of: 'pool' | 'tenant' | 'type';
  name: string | null;
  /** What the oldest waiting job is held against. */
  target?: Known | undefined;
  span: string;
  /** Whose key asks, where an operator looks for a tenant. */
  tenant?: string | null;
}

export function HistoryCharts(props: HistoryChartsProps): JSX.Element {
  const path = usePath(props.of, props.name, props.span);
  const loaded = useLoad<History>(path, { tenant: props.tenant ?? null });
  const marks = useMarks(props.span, props.of === 'tenant' ? props.name : null);
  const kept = useKept(loaded.data, `${props.of} ${props.name ?? ''} ${props.span}`);
  return (
    <Loads of={{ ...loaded, data: kept }} lines={8}>
      {(history) => (
        <>
          <Charts history={history} marks={marks.marks} {...props} />
          {props.of === 'pool' && <MarkList {...marks} />}
        </>
      )}
    </Loads>
  );
}

/** The last answer, while the same thing is asked anew. */
function useKept(data: History | undefined, key: string): History | undefined {
  const [kept, setKept] = useState<{ key: string; data: History }>();
  useEffect(() => {
    if (data !== undefined) setKept({ key, data });
  }, [data, key]);
  return data ?? (kept?.key === key ? kept.data : undefined);
}

function Charts(props: HistoryChartsProps & { history: History; marks: ChartMark[] }): JSX.Element {
  const history = useMemo(() => trimmed(props.history), [props.history]);
  const flow = useMemo(() => perSecond(history), [history]);
  const aged = useMemo(() => withTarget(history, props.target), [history, props.target]);
  const isOfPool = props.of === 'pool';
  return (
    <Grid columns={2}>
      <Card title="In and out">
        <Chart
          data={flow}
          marks={props.marks}
          unit="per_second"
          label="Jobs in and out a second"
          series={[
            { key: 'accepted', label: 'In', tone: 'accent', fill: true },
            { key: 'succeeded', label: 'Succeeded', tone: 'ok' },
            { key: 'failed', label: 'Failed', tone: 'bad' },
          ]}
        />
      </Card>
      {isOfPool ? (
        <Card title="Oldest waiting job">
          <Chart
            data={aged}
            marks={props.marks}
            unit="seconds"
            label="Age of the oldest job that could run"
            series={[
              { key: 'oldest_age_seconds', label: 'Age', tone: 'accent', fill: true },
              ...(props.target ? [{ key: 'target', label: 'Target', tone: 'muted', dashed: true } as const] : []),
            ]}
          />
        </Card>
      ) : (
        <Card title="Tried again, and dead">
          <Chart
            data={history}
            marks={props.marks}
            label="Jobs tried again, and jobs that died"
            series={[
              { key: 'retried', label: 'Tried again', tone: 'warn' },
              { key: 'dead', label: 'Dead', tone: 'bad' },
            ]}
          />
        </Card>
      )}
      <Card title="Waiting and running">
        <Chart
          data={history}
          marks={props.marks}
          label="Jobs that wait and run"
          series={[
            { key: 'queued', label: 'Waiting', tone: 'accent', fill: true },
            { key: 'running', label: 'Running', tone: 'second' },
            ...(isOfPool ? [{ key: 'slots', label: 'Slots', tone: 'muted', dashed: true } as const] : []),
          ]}
        />
      </Card>
      <Card title="Pick-up and run time">
        <Chart
          data={history}
          marks={props.marks}
          unit="seconds"
          label="Time until jobs start, and how long they run"
          series={[
            { key: 'pickup_p50', label: 'Pick-up p50', tone: 'accent' },
            { key: 'pickup_p99', label: 'p99', tone: 'warn' },
            { key: 'run_p50', label: 'Run p50', tone: 'second' },
            { key: 'run_p99', label: 'p99', tone: 'muted' },
          ]}
        />
      </Card>
    </Grid>
  );
}
