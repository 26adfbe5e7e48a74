/** Jobs that ended without success and that nobody replayed or discarded yet. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useLoad, withQuery } from '../../api';
import { Button, Card, type Column, Confirm, Empty, Loads, Page, toast } from '../../components';
import { useQuery } from '../../router';
import { useMay } from '../../session';
import { JobTable, Pager } from '../jobs/jobs';
import { BulkBar } from '../parts/bulk_bar';
import { FilterBar, filterOf } from '../parts/filter_bar';
import type { Job, JobList } from '../../types';
import { errorLine } from '../parts/words';

const EVERY_MS = 5000;
const PAGE = 50;

export function DeadLettersPage(): JSX.Element {
  const [query] = useQuery();
  const may = useMay('operate');
  const { state: _, ...filter } = filterOf(query);
  const cursor = query.get('cursor');
  const path = withQuery('/v1/dead-letters', { ...filter, limit: PAGE, cursor });
  const found = useLoad<JobList>(path, cursor ? {} : { every: EVERY_MS });
  const types = [...new Set((found.data?.jobs ?? []).map((job) => job.type))].sort();
  const isFiltered = Object.keys(filter).length > 0;
  return (
    <Page
      title="Dead letters"
      about="Kept as long as jobs are. A replay puts the same job back into the queue; a discard takes it off this list."
    >
      <Card>
        <FilterBar names={['type', 'pool', 'tag', 'fingerprint']} types={types} />
        <BulkBar acts={['replay', 'discard']} filter={filter} />
      </Card>
      <Loads of={found}>
        {(page) => (
          <>
            <Card flush>
              <JobTable
                jobs={page.jobs}
                empty={isFiltered ? NO_MATCH : NONE}
                without={['state', 'tags', 'waited']}
                more={[DIED_OF, ...(may ? [doings(found.reload)] : [])]}
              />
            </Card>
            <Pager next={page.next_cursor} />
          </>
        )}
      </Loads>
    </Page>
  );
}

const NO_MATCH = <Empty title="No dead letter matches" text="Take a filter away." />;
const NONE = (
  <Empty title="No dead letters" text="Nothing that is kept has failed for good." />
);
const DIED_OF: Column<Job> = {
  name: 'error',
  title: 'Died of',
  cell: (job) => <span class="error-line">{errorLine(job.error)}</span>,
};

function doings(reload: () => void): Column<Job> {
  return { name: 'actions', title: '', cell: (job) => <Doings job={job} reload={reload} /> };
}

function Doings(props: { job: Job; reload: () => void }): JSX.Element {
  const { job } = props;
  const [asked, setAsked] = useState<'replay' | 'discard'>();
  const replay = async (): Promise<void> => {
    await act('POST', `/v1/dead-letters/${job.id}/replay`, {});
    toast('The job waits again.');
    props.reload();
  };
  const discard = async (): Promise<void> => {
    await act('DELETE', `/v1/dead-letters/${job.id}`);
    toast('The dead letter is off the list.');
    props.reload();
  };
  return (
    <span class="row-actions">
      <Button small onClick={() => setAsked('replay')} label={`Replay ${job.id}`}>
        Replay
      </Button>
      <Button small kind="quiet" onClick={() => setAsked('discard')} label={`Discard ${job.id}`}>
        Discard
      </Button>
      <Confirm
        title={asked === 'discard' ? 'Discard this dead letter?' : 'Replay this dead letter?'}
        open={asked !== undefined}
        onClose={() => setAsked(undefined)}
        action={asked === 'discard' ? 'Discard it' : 'Replay it'}
        kind={asked === 'discard' ? 'danger' : 'primary'}
        onConfirm={asked === 'discard' ? discard : replay}
      >
        <p>
          {asked === 'discard'
            ? 'It leaves this list. The job stays dead and cannot be replayed.'
            : 'The same job goes back to the queue with fresh counters. Open it to change its arguments first.'}
        </p>
      </Confirm>
    </span>
  );
}
