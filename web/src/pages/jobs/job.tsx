/** One job: how it stands, why, what it was given, what it said, and what can be done about it. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { useLoad, usePages } from '../../api';
import { Badge, Button, Card, Code, Copy, Duration, Facts, Grid, Json, Loads, Meter, Page, Tabs, Tag, Time } from '../../components';
import { bytes, count, percent } from '../../format';
import { Link, useParams, useQuery } from '../../router';
import { JobActions } from './actions';
import { JobTable } from './jobs';
import { Logs } from './logs';
import { ErrorDetails, Timeline } from './timeline';
import { WhyCard } from './why_card';
import { asCurl, asPython } from '../parts/copy_as';
import { follow } from '../parts/follow';
import type { Job, JobList } from '../../types';
import { isFinal, progressOf, ranSeconds, stateTone } from '../parts/words';

const TABS = [
  { key: 'timeline', title: 'Timeline' },
  { key: 'data', title: 'Input and output' },
  { key: 'logs', title: 'Logs' },
  { key: 'copy', title: 'Copy as' },
];

export function JobPage(): JSX.Element {
  const id = useParams().id ?? '';
  return <OneJob key={id} id={id} />;
}

function OneJob({ id }: { id: string }): JSX.Element {
  const first = useLoad<Job>(`/v1/jobs/${encodeURIComponent(id)}`);
  const { job: told, isLive, again } = useFollowed(id);
  const job = told ?? first.data;
  const changed = (): void => {
    first.reload();
    again();
  };
  return (
    <Page
      title={job?.type ?? 'Job'}
      above={<Link to="/ui/jobs">Jobs</Link>}
      about={
        <>
          <span class="mono">{id}</span> <Copy text={id} label="Copy the job's id" />
        </>
      }
      actions={job && <JobActions job={job} onDone={changed} />}
    >
      <Loads of={{ ...first, data: job }}>{(seen) => <Seen job={seen} isLive={isLive} />}</Loads>
    </Page>
  );
}

/** The job as the server tells it, change by change, until it has ended. */
function useFollowed(id: string): { job: Job | undefined; isLive: boolean; again: () => void } {
  const [job, setJob] = useState<Job>();
  const [isLive, setLive] = useState(false);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const stop = follow(`/v1/jobs/${encodeURIComponent(id)}/events`, {
      isLive: setLive,
      tell: (said) => {
        const news = JSON.parse(said.data) as Job;
        setJob(news);
        if (!isFinal(news.state)) return;
        setLive(false);
        stop();
      },
    });
    return stop;
  }, [id, turn]);
  return { job, isLive, again: () => setTurn((n) => n + 1) };
}

function Seen(props: { job: Job; isLive: boolean }): JSX.Element {
  const { job } = props;
  const [query, setQuery] = useQuery();
  const tab = query.get('view') ?? 'timeline';
  const isOver = isFinal(job.state);
  const started = { key: 'started', title: 'Started by it', count: job.children };
  return (
    <>
      <Grid columns={2}>
        <Card
          title="State"
          actions={
            <span class="muted" role="status">
              {props.isLive ? 'live' : isOver ? 'final' : 'connecting…'}
            </span>
          }
        >
          <p class="job-state">
            <Badge tone={stateTone(job.state)}>{job.state}</Badge>
          </p>
          <ProgressBar job={job} />
          <JobFacts job={job} />
          {Object.keys(job.metadata).length > 0 && (
            <>
              <h3>Metadata</h3>
              <Facts items={Object.entries(job.metadata)} />
            </>
          )}
        </Card>
        {isOver ? <Ended job={job} /> : <WhyCard id={job.id} />}
      </Grid>
      <Card>
        <Tabs
          tabs={job.children > 0 ? [...TABS, started] : TABS}
          current={tab}
          onPick={(view) => setQuery({ view })}
          label="About the job"
        />
        <div class="tab-panel" role="tabpanel" aria-label="About the job">
          {tab === 'timeline' && <Timeline job={job} />}
          {tab === 'data' && <Data job={job} />}
          {tab === 'logs' && <Logs key={job.id} id={job.id} isOver={isOver} />}
          {tab === 'copy' && <CopyAs job={job} />}
          {tab === 'started' && <Children id={job.id} />}
        </div>
      </Card>
    </>
  );
}

function ProgressBar(props: { job: Job }): JSX.Element | null {
  const said = props.job.progress;
  if (said === null || said === undefined) return null;
  const progress = progressOf(said);
  if (!progress) return <Json value={said} label="Progress" />;
  const { done, total, text } = progress;
  const words = total === null ? `${count(done)} done` : `${count(done)} of ${count(total)}, ${percent(done / total)}`;
  return (
    <div class="progress" role="status">
      <p>
        {words} {text && <span class="muted">{text}</span>}
      </p>
      {total !== null && <Meter part={done / total} label={`Progress: ${words}`} />}
    </div>
  );
}

function JobFacts(props: { job: Job }): JSX.Element {
  const { job } = props;
  const ran = ranSeconds(job);
  return (
    <Facts
      items={[
        ['Pool', <Tag>{job.pool}</Tag>],
        ['Priority', job.priority],
        ['Attempts', `${count(job.attempts)}, deliveries ${count(job.deliveries)}`],
        ['Submitted', <Time at={job.created_at} />],
        job.execute_at !== null && ['Due', <Time at={job.execute_at} />],
        job.started_at !== null && ['Last run began', <Time at={job.started_at} />],
        job.finished_at !== null && ['Ended', <Time at={job.finished_at} />],
        ran !== null && [job.state === 'running' ? 'Runs for' : 'Ran', <Duration seconds={ran} />],
        job.late_seconds !== null && ['Late by', <Duration seconds={job.late_seconds} />],
        job.not_after !== null && [
          'Last moment to start',
          <>
            <Time at={job.not_after} /> (then: {job.on_late})
          </>,
        ],
        job.timeout_seconds !== null && ['Time limit', <Duration seconds={job.timeout_seconds} />],
        ['Billed', <Duration seconds={job.billable_seconds} />],
        job.unbilled_seconds > 0 && ['Not billed', <Duration seconds={job.unbilled_seconds} />],
        job.checkpoint !== null && ['Checkpoint', <CheckpointWords job={job} />],
        job.parent_id !== null && [
          'Started by',
          <Link to={`/ui/jobs/${job.parent_id}`} class="mono">
            {job.parent_id}
          </Link>,
        ],
        job.tags.length > 0 && ['Tags', job.tags.map((tag) => <Tag key={tag}>{tag}</Tag>)],
      ]}
    />
  );
}

function CheckpointWords(props: { job: Job }): JSX.Element | null {
  const saved = props.job.checkpoint;
  if (!saved) return null;
  return (
    <>
      number {saved.number}, {bytes(saved.size_bytes)}, saved <Time at={saved.saved_at} relative />;
      the next run begins there
    </>
  );
}

function Ended(props: { job: Job }): JSX.Element {
  const { job } = props;
  const failures = Object.entries(job.failures);
  return (
    <Card title="How it ended">
      {job.error ? <ErrorDetails error={job.error} open /> : <p>{endWords(job)}</p>}
      {failures.length > 0 && (
        <p class="muted">
          Failed runs: {failures.map(([name, times]) => `${name} ${count(times)}`).join(', ')}.
        </p>
      )}
      {job.fingerprint && (
        <p>
          <Link to={`/ui/dead-letters?fingerprint=${job.fingerprint}`}>
            Others that died of the same
          </Link>
        </p>
      )}
      {job.state === 'succeeded' && <Output job={job} />}
    </Card>
  );
}

function endWords(job: Job): string {
  if (job.state === 'succeeded') return 'The handler returned.';
  if (job.state === 'cancelled') return 'Somebody cancelled it.';
  if (job.state === 'expired') return 'Its last moment to start had passed before it could.';
  return 'It ended without success, and no error was recorded.';
}

function Data(props: { job: Job }): JSX.Element {
  const { job } = props;
  return (
    <Grid columns={2}>
      <section>
        <h3>Input</h3>
        {job.payload_bytes === null ? (
          <Json value={job.payload ?? {}} label="Input" />
        ) : (
          <Large what="payload" job={job} size={job.payload_bytes} />
        )}
      </section>
      <section>
        <h3>Output</h3>
        <Output job={job} />
        {job.error && (
          <>
            <h3>Error of the last failed run</h3>
            <ErrorDetails error={job.error} open />
          </>
        )}
      </section>
    </Grid>
  );
}

function Output(props: { job: Job }): JSX.Element {
  const { job } = props;
  if (job.result_bytes !== null) return <Large what="result" job={job} size={job.result_bytes} />;
  if (job.state !== 'succeeded') return <p class="muted">There is none before it succeeds.</p>;
  return <Json value={job.result} label="Output" />;
}

function Large(props: { what: 'payload' | 'result'; job: Job; size: number }): JSX.Element {
  return (
    <p class="muted">
      {bytes(props.size)}, too large for this page. Ask for it by{' '}
      <code>
        GET /v1/jobs/{props.job.id}/{props.what}
      </code>
      .
    </p>
  );
}

function Children(props: { id: string }): JSX.Element {
  const found = usePages<JobList, Job>(`/v1/jobs/${props.id}/children`, (reply) => ({
    rows: reply.jobs,
    next: reply.next_cursor,
  }));
  return (
    <Loads of={{ data: found.rows, error: found.error, reload: found.reload }}>
      {(jobs) => (
        <>
          <JobTable jobs={jobs} empty="What it started is gone: jobs are kept for a while only." />
          {found.more && (
            <Button busy={found.isLoadingMore} onClick={found.more}>
              Show more
            </Button>
          )}
        </>
      )}
    </Loads>
  );
}

function CopyAs(props: { job: Job }): JSX.Element {
  const texts: [string, string][] = [
    ['curl', asCurl(props.job, location.origin)],
    ['Python', asPython(props.job, location.origin)],
  ];
  return (
    <>
      <p class="muted">
        Each submits a new job like this one, with the key in <code>FAIRWAY_API_KEY</code>.
        {props.job.payload_bytes !== null && ' Its input is too large to be shown: it is left empty.'}
      </p>
      {texts.map(([name, text]) => (
        <section key={name} class="copy-as">
          <h3>
            {name} <Copy text={text} label={`Copy as ${name}`} word="Copy" />
          </h3>
          <Code text={text} label={`As ${name}`} />
        </section>
      ))}
    </>
  );
}
