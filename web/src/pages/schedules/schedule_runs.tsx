/** What became of a schedule's ticks: whether each made a job, and how that job stands. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { request, useLoad } from '../../api';
import { Badge, Button, Card, type Column, Duration, Empty, Loads, Table, Time } from '../../components';
import { Link } from '../../router';
import type { Job, JobList, Schemas, ScheduleRun } from '../../types';
import { ranSeconds, stateTone } from '../parts/words';

const EVERY_MS = 5000;

const OUTCOMES: Record<string, string> = {
  fired: 'Made a job',
  skipped: 'Skipped: the run before was not over',
  waiting: 'Waits until the run before is over',
};
const CAUSES: Record<string, string> = {
  clock: 'by the clock',
  backfill: 'by a backfill',
  trigger: 'by somebody, now',
};

/** A run and its job, as far as that is known. */
interface Row {
  run: ScheduleRun;
  job: Job | undefined;
}

const COLUMNS: Column<Row>[] = [
  { name: 'tick', title: 'Tick', cell: ({ run }) => <Time at={run.tick} /> },
  {
    name: 'outcome',
    title: 'What came of it',
    cell: ({ run }) => (
      <>
        {OUTCOMES[run.outcome] ?? run.outcome} <span class="muted">{CAUSES[run.cause] ?? run.cause}</span>
      </>
    ),
  },
  { name: 'state', title: 'Its job', cell: (row) => <JobState row={row} /> },
  { name: 'ran', title: 'Ran', numeric: true, minor: true, cell: ({ job }) => job && <Duration seconds={ranSeconds(job)} /> },
  { name: 'recorded', title: 'Recorded', minor: true, cell: ({ run }) => <Time at={run.recorded_at} relative /> },
];

function JobState({ row }: { row: Row }): JSX.Element | null {
  const { run, job } = row;
  if (!run.job) return null;
  return (
    <span class="tags">
      {job && <Badge tone={stateTone(job.state)}>{job.state}</Badge>}{' '}
      <Link to={`/ui/jobs/${run.job}`} class="mono">
        …{run.job.slice(-12)}
      </Link>
    </span>
  );
}

export function Runs(props: { path: string; last: string | null }): JSX.Element {
  return <RunsTable key={props.last ?? ''} path={`${props.path}/runs?limit=50`} />;
}

/** The jobs of these runs, asked for together whenever the runs are. */
function useJobs(runs: readonly ScheduleRun[] | undefined): Map<string, Job> {
  const [jobs, setJobs] = useState(new Map<string, Job>());
  useEffect(() => {
    const ids = (runs ?? []).map((run) => run.job).filter((id): id is string => Boolean(id));
    if (ids.length === 0) return undefined;
    const stop = new AbortController();
    request<Pick<JobList, 'jobs'>>('POST', '/v1/jobs/wait', { ids, all: true }, { signal: stop.signal })
      .then((reply) => setJobs(new Map(reply.jobs.map((job) => [job.id, job]))))
      .catch(() => undefined); // what is not known is not shown; the runs themselves are
    return () => stop.abort();
  }, [runs]);
  return jobs;
}

function RunsTable(props: { path: string }): JSX.Element {
  const [before, setBefore] = useState('');
  const path = before ? `${props.path}&before=${encodeURIComponent(before)}` : props.path;
  const found = useLoad<Schemas['ScheduleRuns']>(path, { every: EVERY_MS });
  const jobs = useJobs(found.data?.runs);
  return (
    <Card title="Runs" flush>
      <Loads of={found}>
        {({ runs, next_before }) => (
          <>
            <Table
              rows={runs.map((run) => ({ run, job: run.job ? jobs.get(run.job) : undefined }))}
              columns={COLUMNS}
              rowKey={({ run }) => run.tick + run.cause}
              tone={({ job }) => (job?.state === 'dead' ? 'bad' : undefined)}
              label="Runs of the schedule"
              empty={<Empty title="No runs yet" text="The first comes with the next tick, or when you run it now." />}
            />
            {(before || next_before) && (
              <nav class="pager" aria-label="Pages of runs">
                <Button disabled={!before} onClick={() => setBefore('')}>
                  Newest
                </Button>
                <Button disabled={!next_before} onClick={() => setBefore(next_before ?? '')}>
                  Older
                </Button>
              </nav>
            )}
          </>
        )}
      </Loads>
    </Card>
  );
}
