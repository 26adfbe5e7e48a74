/** One flow: how its jobs stand, what went wrong, and each of them. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useLoad, withQuery } from '../../api';
import { Badge, Button, Card, Confirm, Copy, Facts, Grid, Loads, Page, Time, toast } from '../../components';
import { plural } from '../../format';
import { Link, useParams, useQuery } from '../../router';
import { useMay } from '../../session';
import type { Flow, JobList } from '../../types';
import { JobTable, Pager } from '../jobs/jobs';
import { ErrorDetails } from '../jobs/timeline';
import { stateTone } from '../parts/words';
import { FlowBar, leftOf } from './flow_bar';

const EVERY_MS = 2000;

export function FlowPage(): JSX.Element {
  const id = useParams()['id'] ?? '';
  const path = `/v1/flows/${encodeURIComponent(id)}`;
  const found = useLoad<Flow>(path, { every: EVERY_MS });
  return (
    <Page
      title={found.data ? `A ${found.data.kind} of ${plural(found.data.total, 'job')}` : 'Flow'}
      above={<Link to="/ui/flows">Flows</Link>}
      about={
        <>
          <span class="mono">{id}</span> <Copy text={id} label="Copy the flow's id" />
        </>
      }
      actions={found.data && <Doings flow={found.data} path={path} reload={found.reload} />}
    >
      <Loads of={found}>
        {(flow) => (
          <Grid columns={2}>
            <Standing flow={flow} />
            <Wrong flow={flow} />
          </Grid>
        )}
      </Loads>
      <Members path={`${path}/jobs`} />
    </Page>
  );
}

function JobLink({ id }: { id: string }): JSX.Element {
  return (
    <Link to={`/ui/jobs/${id}`} class="mono break">
      {id}
    </Link>
  );
}

function Standing({ flow }: { flow: Flow }): JSX.Element {
  return (
    <Card title="State">
      <p class="job-state">
        <Badge tone={stateTone(flow.state)}>{flow.state}</Badge>
      </p>
      <FlowBar flow={flow} />
      <Facts
        items={[
          ['Kind', flow.kind === 'chain' ? 'chain: one after the other' : 'group: all at once'],
          ['Submitted', <Time at={flow.created_at} />],
          flow.finished_at !== null && ['Ended', <Time at={flow.finished_at} />],
          flow.callback !== null && ['Callback', <JobLink id={flow.callback} />],
          flow.callback !== null && ['It starts', flow.on_all === 'ended' ? 'when all have ended' : 'when all have succeeded'],
        ]}
      />
    </Card>
  );
}

function Wrong({ flow }: { flow: Flow }): JSX.Element {
  return (
    <Card title="What went wrong last">
      {flow.failed_job === null ? (
        <p class="muted">Nothing did.</p>
      ) : (
        <>
          {flow.error ? <ErrorDetails error={flow.error} /> : <p>No error was recorded.</p>}
          <Facts items={[['Of the job', <JobLink id={flow.failed_job} />]]} />
        </>
      )}
    </Card>
  );
}

function Members({ path }: { path: string }): JSX.Element {
  const [query] = useQuery();
  const cursor = query.get('cursor');
  const found = useLoad<JobList>(withQuery(path, { cursor, limit: 50 }), cursor ? {} : { every: EVERY_MS });
  return (
    <Card title="Its jobs" about="The last of them first." flush>
      <Loads of={found}>
        {({ jobs, next_cursor }) => (
          <>
            <JobTable jobs={jobs} empty="Its jobs are gone: they are kept for a while only." />
            <Pager next={next_cursor} />
          </>
        )}
      </Loads>
    </Card>
  );
}

function Doings(props: { flow: Flow; path: string; reload: () => void }): JSX.Element | null {
  const { flow, path, reload } = props;
  const may = useMay('operate');
  const [asked, setAsked] = useState<'cancel' | 'replay'>();
  if (!may) return null;
  const cancel = async (): Promise<void> => {
    await act('DELETE', path);
    toast('What has not ended is cancelled, or asked to stop.');
    reload();
  };
  const replay = async (): Promise<void> => {
    const { replayed } = await act<{ replayed: number }>('POST', `${path}/replay`);
    toast(`${plural(replayed, 'job waits', 'jobs wait')} again.`);
    reload();
  };
  return (
    <>
      {flow.failed > 0 && (
        <Button kind="primary" onClick={() => setAsked('replay')}>
          Replay what failed…
        </Button>
      )}
      {(leftOf(flow) > 0 || flow.state === 'running') && (
        <Button kind="danger" onClick={() => setAsked('cancel')}>
          Cancel flow…
        </Button>
      )}
      <Confirm
        title={asked === 'replay' ? 'Replay what failed?' : 'Cancel this flow?'}
        open={asked !== undefined}
        onClose={() => setAsked(undefined)}
        action={asked === 'replay' ? 'Replay' : 'Cancel the flow'}
        kind={asked === 'replay' ? 'primary' : 'danger'}
        onConfirm={asked === 'replay' ? replay : cancel}
      >
        <p>
          {asked === 'replay'
            ? 'Its dead letters go back to the queue with fresh counters; a callback that waits for all to succeed may still start.'
            : 'Its callback first, then every job that has not ended: what waits is cancelled at once, what runs is asked to stop.'}
        </p>
      </Confirm>
    </>
  );
}
