/** Dead letters by cause: what fails, how often, and one click to try all of it again. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { useLoad } from '../../api';
import { Badge, Button, ButtonLink, Card, Chart, Empty, Facts, Loads, Page, Time } from '../../components';
import { count, plural } from '../../format';
import { hrefOf, Link } from '../../router';
import { useMay } from '../../session';
import type { Act, FailureGroup, FailureGroups, History } from '../../types';
import { ErrorDetails } from '../jobs/timeline';
import { BulkDialog } from '../parts/bulk_bar';
import { isKnown, TypeSpark, useTenantHistory } from '../parts/history';

const EVERY_MS = 5000;
const SPARKS_MAX = 8; // a history is asked for each type that has one

export function FailuresPage(): JSX.Element {
  const found = useLoad<FailureGroups>('/v1/dead-letters/groups', { every: EVERY_MS });
  const history = useTenantHistory();
  return (
    <Page
      title="Failures"
      about="Dead letters with the same job type, error, message and place in the code are one group."
    >
      <Loads of={found}>{(seen) => <Groups found={seen} />}</Loads>
      {history && isKnown(history) && <Past history={history} />}
    </Page>
  );
}

function Past(props: { history: History }): JSX.Element {
  return (
    <Card title="Runs that went wrong" about="By the minute, over the last hour.">
      <Chart
        data={props.history}
        label="Failed runs over the last hour"
        series={[
          { key: 'failed', label: 'failed', tone: 'warn' },
          { key: 'retried', label: 'retried', tone: 'muted' },
          { key: 'dead', label: 'dead', tone: 'bad', fill: true },
        ]}
      />
    </Card>
  );
}

function Groups(props: { found: FailureGroups }): JSX.Element {
  const { groups, types } = props.found;
  const sparked = types.slice(0, SPARKS_MAX).map((one) => one.type);
  if (!groups.length) {
    return (
      <Card>
        <Empty
          title="Nothing has failed for good"
          text="Jobs that end without success after all their attempts are grouped here by cause, as long as jobs are kept."
        />
      </Card>
    );
  }
  const all = types.reduce((sum, one) => sum + one.count, 0);
  return (
    <>
      <p class="muted">
        {plural(all, 'dead letter')} of {plural(types.length, 'job type')} in{' '}
        {plural(groups.length, 'group')}. <Link to="/ui/dead-letters">See each of them</Link>
      </p>
      {groups.map((group) => (
        <Group key={group.fingerprint} group={group} hasSpark={sparked.includes(group.type)} />
      ))}
    </>
  );
}

function Group(props: { group: FailureGroup; hasSpark: boolean }): JSX.Element {
  const { group } = props;
  const may = useMay('operate');
  const [asked, setAsked] = useState<Act>();
  const many = `${group.count_is_exact ? '' : 'over '}${count(group.count)}`;
  return (
    <Card
      class="failure-group"
      title={
        <>
          <Badge tone="bad">{many}</Badge> <span class="job-type">{group.type}</span>
        </>
      }
      actions={
        <>
          {props.hasSpark && <TypeSpark type={group.type} />}
          <ButtonLink href={hrefOf(`/ui/dead-letters?fingerprint=${group.fingerprint}`)}>
            Look
          </ButtonLink>
          {may && (
            <>
              <Button kind="primary" onClick={() => setAsked('replay')}>
                Replay group…
              </Button>
              <Button onClick={() => setAsked('discard')}>Discard…</Button>
            </>
          )}
        </>
      }
    >
      {group.error ? <ErrorDetails error={group.error} /> : <p>No error was recorded.</p>}
      <Facts
        items={[
          ['Last death', <Time at={group.last_died_at} relative />],
          [
            'Newest job',
            <Link to={`/ui/jobs/${group.last_job}`} class="mono">
              {group.last_job}
            </Link>,
          ],
          ['Cause', <span class="mono">{group.fingerprint}</span>],
        ]}
      />
      {asked && (
        <BulkDialog
          act={asked}
          filter={{ fingerprint: group.fingerprint }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </Card>
  );
}
