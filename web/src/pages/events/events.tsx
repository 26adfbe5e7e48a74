/** A tenant's event log, newest first, with what comes as it comes. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { act, asApiError, request, useAct, useLoad, withQuery, type ApiError } from '../../api';
import { Badge, Button, Card, Check, type Column, Dialog, Empty, Facts, Field, Json, Loading, Page, Problem, Row, Select, Table, Time, toast } from '../../components';
import { count } from '../../format';
import { Link, useQuery } from '../../router';
import { useMay } from '../../session';
import type { EventPage, TenantEvent } from '../../types';
import { follow } from '../parts/follow';
import { eventTone, eventWords, GROUPS } from './event_words';

const PAGE = 50;
const SHOWN_MAX = 1000;
const ASKED = ['kind', 'type', 'job'] as const;

/** A place in the log; of a tenant in several shards a text, with a place in each. */
type Place = number | string;

interface Log {
  events: TenantEvent[];
  /** Where an older page goes on; null when there is none. */
  older: Place | null;
  /** Where the log ended when it was read: what comes after it comes by a stream. */
  end: Place;
}

/** Each shard numbers its own events. */
function keyOf(one: TenantEvent): string {
  return `${one.part ?? 0}.${one.position}`;
}

export function EventsPage(): JSX.Element {
  const [query, setQuery] = useQuery();
  const wanted = Object.fromEntries(ASKED.map((name) => [name, query.get(name)]));
  return (
    <Page
      title="Events"
      about="What the platform told you, and what became of your jobs where you asked for it. Kept for some days."
      actions={<JobEvents />}
    >
      <Card>
        <form class="filters" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
          <Field label="Kind">
            <Select value={wanted['kind'] ?? ''} choices={choicesOf(wanted['kind'] ?? '')} onChange={(kind) => setQuery({ kind })} />
          </Field>
          <Box name="type" label="Job type" hint="email.send" />
          <Box name="job" label="Job" hint="a job's id" />
          <Button
            kind="quiet"
            disabled={!ASKED.some((name) => query.get(name))}
            onClick={() => setQuery({ kind: null, type: null, job: null })}
          >
            Clear filters
          </Button>
        </form>
      </Card>
      <Followed key={JSON.stringify(wanted)} wanted={wanted} />
    </Page>
  );
}

/** A kind that came with the address is among the choices, whatever it is. */
function choicesOf(kind: string): { value: string; label: string }[] {
  const isKnown = GROUPS.some((one) => one.value === kind);
  return isKnown ? GROUPS : [...GROUPS, { value: kind, label: kind }];
}

function Box(props: { name: 'type' | 'job'; label: string; hint: string }): JSX.Element {
  const [query, setQuery] = useQuery();
  return (
    <Field label={props.label}>
      <input
        class="input"
        type="search"
        name={props.name}
        value={query.get(props.name) ?? ''}
        placeholder={props.hint}
        autocomplete="off"
        spellcheck={false}
        onChange={(event) => setQuery({ [props.name]: event.currentTarget.value.trim() })}
      />
    </Field>
  );
}

/** Whether what becomes of jobs is written down, too. */
function JobEvents(): JSX.Element | null {
  const found = useLoad<{ job_events: boolean }>('/v1/events/settings');
  const may = useMay('operate');
  const { busy, error, run } = useAct();
  if (!found.data) return null;
  const isOn = found.data.job_events;
  const change = async (): Promise<void> => {
    if (!(await run(() => act('PUT', '/v1/events/settings', { job_events: !isOn })))) return;
    toast(isOn ? 'Only notices are written down from now on.' : 'What becomes of your jobs is written down from now on.');
    found.reload();
  };
  return (
    <Row>
      {error && <Problem error={error} />}
      <Badge tone={isOn ? 'ok' : 'muted'}>{isOn ? 'Jobs and notices' : 'Notices only'}</Badge>
      {may && (
        <Button busy={busy} onClick={() => void change()}>
          {isOn ? 'Leave jobs out' : 'Write jobs down, too'}
        </Button>
      )}
    </Row>
  );
}

/** The newest page, what comes after it by a stream, and older pages on request. */
function useLog(wanted: Record<string, string | null>, isFollowed: boolean): {
  log: Log | undefined;
  error: ApiError | undefined;
  isLive: boolean;
  isBusy: boolean;
  more: () => void;
} {
  const [log, setLog] = useState<Log>();
  const [error, setError] = useState<ApiError>();
  const [isLive, setLive] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const read = async (after: Place | null): Promise<void> => {
    setBusy(true);
    try {
      const path = withQuery('/v1/events', { ...wanted, order: 'newest', limit: PAGE, after });
      const page = await request<EventPage>('GET', path);
      const older = page.has_more ? page.cursor : null;
      setLog((old) => ({
        events: joined(after === null ? [] : (old?.events ?? []), page.events),
        older,
        end: after === null || old === undefined ? page.end : old.end,
      }));
      setError(undefined);
    } catch (problem) {
      setError(asApiError(problem));
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => void read(null), []);
  const isRead = log !== undefined;
  useEffect(() => {
    if (!isRead || !isFollowed) return undefined;
    return follow(withQuery('/v1/events/stream', { ...wanted, after: log.end }), {
      isLive: setLive,
      tell: (told) => {
        if (told.event === 'gap') return; // what is gone is not shown by older pages either
        const event = JSON.parse(told.data) as TenantEvent;
        const end = event.cursor ?? event.position; // who stops to follow goes on from there
        setLog((old) => old && { ...old, end, events: joined([event], old.events) });
      },
    });
  }, [isRead, isFollowed]);
  return { log, error, isLive: isLive && isFollowed, isBusy, more: () => void read(log?.older ?? null) };
}

/** Newest first, each once, and no more than a page can hold. */
function joined(newer: TenantEvent[], older: TenantEvent[]): TenantEvent[] {
  const seen = new Map([...newer, ...older].map((one) => [keyOf(one), one]));
  return [...seen.values()].sort(byNewest).slice(0, SHOWN_MAX);
}

/** In one log by position; of several shards by time. */
function byNewest(a: TenantEvent, b: TenantEvent): number {
  if (a.part == null || b.part == null) return b.position - a.position;
  return Date.parse(b.at) - Date.parse(a.at) || b.position - a.position;
}

function positionWords(one: TenantEvent): string {
  return one.part == null ? count(one.position) : `${count(one.position)} in shard ${one.part}`;
}

const COLUMNS: Column<TenantEvent>[] = [
  { name: 'at', title: 'When', cell: (one) => <Time at={one.at} /> },
  { name: 'kind', title: 'Kind', cell: (one) => <Badge tone={eventTone(one.kind)}>{one.kind}</Badge> },
  {
    name: 'subject',
    title: 'About',
    wide: true,
    cell: (one) => (
      <>
        <span class="job-type">{one.subject}</span>
        <span class="job-id">{eventWords(one)}</span>
      </>
    ),
  },
  {
    name: 'job',
    title: 'Job',
    minor: true,
    cell: (one) =>
      one.job && (
        <Link to={`/ui/jobs/${one.job}`} class="mono">
          …{one.job.slice(-12)}
        </Link>
      ),
  },
  { name: 'position', title: 'Position', numeric: true, minor: true, cell: positionWords },
];

function Followed({ wanted }: { wanted: Record<string, string | null> }): JSX.Element {
  const [isFollowed, setFollowed] = useState(true);
  const [shown, setShown] = useState<TenantEvent>();
  const { log, error, isLive, isBusy, more } = useLog(wanted, isFollowed);
  const isFiltered = Object.values(wanted).some(Boolean);
  return (
    <Card
      flush
      title="The log"
      about={
        <span role="status">{isLive ? 'Live: events come as they happen.' : isFollowed ? 'Connecting…' : 'Held: nothing moves.'}</span>
      }
      actions={<Check label="Live" checked={isFollowed} onChange={setFollowed} />}
    >
      {error && <Problem error={error} />}
      {!log && !error && <Loading lines={8} />}
      {log && (
        <Table
          label="Events"
          rows={log.events}
          columns={COLUMNS}
          rowKey={keyOf}
          onRow={setShown}
          tone={(one) => (eventTone(one.kind) === 'bad' ? 'bad' : undefined)}
          empty={isFiltered ? NO_MATCH : NONE}
          more={log.older === null || log.events.length >= SHOWN_MAX ? null : more}
          isLoadingMore={isBusy}
        />
      )}
      {log && log.events.length === 0 && log.older !== null && (
        <div class="table-more">
          <Button busy={isBusy} onClick={more}>
            Look further back
          </Button>
        </div>
      )}
      <Dialog title={shown?.kind ?? ''} open={shown !== undefined} onClose={() => setShown(undefined)} wide>
        {shown && <Closer event={shown} />}
      </Dialog>
    </Card>
  );
}

const NO_MATCH = <Empty title="No event matches" text="Take a filter away, or wait: what comes is shown at once." />;
const NONE = (
  <Empty
    title="Nothing has happened yet"
    text="Notices of the platform come here by themselves. To read what becomes of each job as well, let it be written down."
  />
);

export function Closer({ event }: { event: TenantEvent }): JSX.Element {
  return (
    <>
      <p>{eventWords(event)}</p>
      <Facts
        items={[
          ['When', <Time at={event.at} />],
          ['Position', positionWords(event)],
          ['About', <span class="break">{event.subject}</span>],
          event.job !== null && [
            'Job',
            <Link to={`/ui/jobs/${event.job}`} class="mono">
              {event.job}
            </Link>,
          ],
        ]}
      />
      <h3 class="small-title">Its facts</h3>
      <Json value={event.data} label="Facts" />
    </>
  );
}
