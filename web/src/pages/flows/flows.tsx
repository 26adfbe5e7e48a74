/** Chains and groups of jobs: how far each has come. */
import type { JSX } from 'preact';

import { useLoad, withQuery } from '../../api';
import { Badge, Card, type Column, Empty, Field, Loads, Page, Select, Table, Time } from '../../components';
import { useQuery } from '../../router';
import type { Flow, FlowPage } from '../../types';
import { Pager } from '../jobs/jobs';
import { stateTone } from '../parts/words';
import { FlowBar } from './flow_bar';

const EVERY_MS = 3000;
const STATES = [
  { value: '', label: 'any state' },
  ...['running', 'succeeded', 'failed', 'cancelled'].map((value) => ({ value, label: value })),
];
const KINDS = [
  { value: '', label: 'groups and chains' },
  { value: 'group', label: 'groups' },
  { value: 'chain', label: 'chains' },
];

export function FlowsPage(): JSX.Element {
  const [query, setQuery] = useQuery();
  const [state, kind, cursor] = ['state', 'kind', 'cursor'].map((name) => query.get(name));
  const path = withQuery('/v1/flows', { state, kind, cursor, limit: 50 });
  const found = useLoad<FlowPage>(path, cursor ? {} : { every: EVERY_MS });
  return (
    <Page
      title="Flows"
      about="Jobs that were made together: all of a group at once and then its callback, those of a chain one after the other."
    >
      <Card>
        <form class="filters" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
          <Field label="State">
            <Select value={state ?? ''} choices={STATES} onChange={(value) => setQuery({ state: value, cursor: null })} />
          </Field>
          <Field label="Kind">
            <Select value={kind ?? ''} choices={KINDS} onChange={(value) => setQuery({ kind: value, cursor: null })} />
          </Field>
        </form>
      </Card>
      <Loads of={found}>
        {({ flows, next_cursor }) => (
          <>
            <Card flush>
              <Table
                label="Flows"
                rows={flows}
                columns={COLUMNS}
                rowKey={(flow) => flow.id}
                href={(flow) => `/ui/flows/${flow.id}`}
                tone={(flow) => (flow.state === 'failed' ? 'bad' : undefined)}
                empty={state || kind || cursor ? NO_MATCH : NONE}
              />
            </Card>
            <Pager next={next_cursor} />
          </>
        )}
      </Loads>
    </Page>
  );
}

const NO_MATCH = <Empty title="No flow matches here" text="Take a filter away, or look at older ones." />;
const NONE = (
  <Empty
    title="No flows yet"
    text="Submit jobs that belong together by POST /v1/flows, or with group() and chain() of the SDK."
  />
);

const COLUMNS: Column<Flow>[] = [
  {
    name: 'flow',
    title: 'Flow',
    cell: (flow) => (
      <>
        <span class="nowrap">{flow.kind}</span>
        <span class="job-id mono nowrap" title={flow.id}>
          …{flow.id.slice(-12)}
        </span>
      </>
    ),
  },
  { name: 'state', title: 'State', cell: (flow) => <Badge tone={stateTone(flow.state)}>{flow.state}</Badge> },
  { name: 'far', title: 'Jobs', wide: true, cell: (flow) => <FlowBar flow={flow} /> },
  { name: 'made', title: 'Submitted', cell: (flow) => <Time at={flow.created_at} /> },
  { name: 'ended', title: 'Ended', minor: true, cell: (flow) => <Time at={flow.finished_at} /> },
];
