/** A tenant's jobs, newest first: filtered, live, and acted on by the thousand. */
import type { ComponentChild, JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';

import { useLoad, withQuery } from '../../api';
import { Badge, Button, Card, Check, type Column, Duration, Empty, Loads, Page, Table, Tag, Time } from '../../components';
import { useQuery } from '../../router';
import { BulkBar } from '../parts/bulk_bar';
import { FilterBar, filterOf } from '../parts/filter_bar';
import type { Job, JobList } from '../../types';
import { ranSeconds, stateTone, waitedSeconds } from '../parts/words';

const EVERY_MS = 2000;
const PAGE = 50;

export function JobsPage(): JSX.Element {
  const [query] = useQuery();
  const [wantsLive, setLive] = useState(true);
  const filter = filterOf(query);
  const isLive = wantsLive && !query.has('cursor'); // an older page stays where it is
  const path = withQuery('/v1/jobs', { ...filter, limit: PAGE, cursor: query.get('cursor') });
  const found = useLoad<JobList>(path, isLive ? { every: EVERY_MS } : {});
  const { seen, isHeld, hold } = useHeld(path, found.data);
  const types = [...new Set((found.data?.jobs ?? []).map((job) => job.type))].sort();
  return (
    <Page
      title="Jobs"
      about="Newest first. What you filter stays in the address, so it can be sent to others."
      actions={
        <>
          {isLive && isHeld && <span class="muted">held while you point at the list</span>}
          <Check label="Live" checked={isLive} onChange={setLive} />
        </>
      }
    >
      <Card>
        <FilterBar names={['state', 'type', 'pool', 'tag']} types={types} />
        <BulkBar acts={['cancel', 'replay', 'discard']} filter={filter} />
      </Card>
      <Loads of={{ ...found, data: seen }}>
        {(page) => (
          <>
            <div onPointerEnter={() => hold(true)} onPointerLeave={() => hold(false)}>
              <Card flush>
                <JobTable jobs={page.jobs} empty={emptyWords(Object.keys(filter).length > 0)} />
              </Card>
            </div>
            <Pager next={page.next_cursor} />
          </>
        )}
      </Loads>
    </Page>
  );
}

/** A list that does not move below the pointer: while it is held, what was seen of a path stays. */
function useHeld<T>(path: string, data: T | undefined): {
  seen: T | undefined;
  isHeld: boolean;
  hold: (isHeld: boolean) => void;
} {
  const last = useRef<{ path: string; data: T | undefined }>({ path, data });
  const [isHeld, hold] = useState(false);
  const { path: of, data: seen } = last.current;
  if (!isHeld || of !== path || seen === undefined) last.current = { path, data };
  return { seen: last.current.data, isHeld, hold };
}

/** Pages by their place in the list, which new jobs above it do not move. */
export function Pager(props: { next: string | null }): JSX.Element | null {
  const [query, setQuery] = useQuery();
  const isLater = query.has('cursor');
  if (!isLater && !props.next) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <Button disabled={!isLater} onClick={() => setQuery({ cursor: null })}>
        Newest
      </Button>
      <Button disabled={!props.next} onClick={() => setQuery({ cursor: props.next })}>
        Older
      </Button>
    </nav>
  );
}

function emptyWords(isFiltered: boolean): JSX.Element {
  return isFiltered ? (
    <Empty title="No job matches" text="Take a filter away, or look further back in time." />
  ) : (
    <Empty
      title="No jobs yet"
      text="Submit one by POST /v1/jobs or with the SDK: it is here within two seconds."
    />
  );
}

const COLUMNS: Column<Job>[] = [
  {
    name: 'type',
    title: 'Job',
    wide: true,
    cell: (job) => (
      <>
        <span class="job-type">{job.type}</span>
        <span class="job-id mono">{job.id}</span>
      </>
    ),
  },
  {
    name: 'state',
    title: 'State',
    cell: (job) => <Badge tone={stateTone(job.state)}>{job.state}</Badge>,
  },
  { name: 'pool', title: 'Pool', cell: (job) => <Tag>{job.pool}</Tag>, minor: true },
  { name: 'created', title: 'Submitted', cell: (job) => <Time at={job.created_at} /> },
  {
    name: 'waited',
    title: 'Waited',
    numeric: true,
    minor: true,
    cell: (job) => <Duration seconds={waitedSeconds(job)} />,
  },
  {
    name: 'ran',
    title: 'Ran',
    numeric: true,
    cell: (job) => <Duration seconds={ranSeconds(job)} />,
  },
  { name: 'attempts', title: 'Attempts', numeric: true, minor: true, cell: (job) => job.attempts },
  {
    name: 'tags',
    title: 'Tags',
    minor: true,
    cell: (job) => (
      <span class="tags">
        {job.tags.map((tag) => (
          <Tag key={tag}>{tag}</Tag>
        ))}
      </span>
    ),
  },
];

export function JobTable(props: {
  jobs: Job[];
  empty: ComponentChild;
  /** Names of columns that say nothing here. */
  without?: string[];
  more?: Column<Job>[];
}): JSX.Element {
  const columns = COLUMNS.filter((column) => !props.without?.includes(column.name));
  return (
    <Table
      rows={props.jobs}
      columns={[...columns, ...(props.more ?? [])]}
      rowKey={(job) => job.id}
      href={(job) => `/ui/jobs/${job.id}`}
      tone={(job) => (job.state === 'dead' ? 'bad' : undefined)}
      empty={props.empty}
      label="Jobs"
    />
  );
}
