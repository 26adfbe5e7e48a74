/** Acts on many jobs, and how far each has come. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useLoad } from '../../api';
import { Badge, Button, Card, type Column, Confirm, Empty, Loads, Meter, Page, Table, Time, toast } from '../../components';
import { count, percent, plural } from '../../format';
import { useMay } from '../../session';
import type { BulkAction } from '../../types';
import { filterWords, stateTone } from '../parts/words';

const EVERY_MS = 1000;
const IDLE_MS = 10_000;

export function BulkActionsPage(): JSX.Element {
  const [every, setEvery] = useState(EVERY_MS);
  const found = useLoad<{ actions: BulkAction[] }>('/v1/bulk-actions', { every });
  const isBusy = found.data === undefined || found.data.actions.some((one) => one.state === 'running');
  const wanted = isBusy ? EVERY_MS : IDLE_MS;
  if (wanted !== every) setEvery(wanted);
  return (
    <Page
      title="Bulk actions"
      about="Each goes on by itself in small steps, through crashes and failovers. The newest fifty."
    >
      <Loads of={found}>
        {({ actions }) => (
          <Card flush>
            <Table
              rows={actions}
              columns={[...COLUMNS, doing(found.reload)]}
              rowKey={(one) => one.id}
              label="Bulk actions"
              empty={
                <Empty
                  title="No bulk actions yet"
                  text="Filter jobs or dead letters, and act on all that match: progress is shown here."
                />
              }
            />
          </Card>
        )}
      </Loads>
    </Page>
  );
}

const COLUMNS: Column<BulkAction>[] = [
  {
    name: 'act',
    title: 'What',
    wide: true,
    cell: (one) => (
      <>
        <strong>{one.act}</strong> <span class="muted">{filterWords(one.filter)}</span>
      </>
    ),
  },
  {
    name: 'state',
    title: 'State',
    cell: (one) => (
      <Badge tone={one.state === 'running' ? 'info' : stateTone(one.state)}>{one.state}</Badge>
    ),
  },
  { name: 'progress', title: 'Progress', cell: (one) => <Far action={one} /> },
  { name: 'pace', title: 'At most', numeric: true, minor: true, cell: (one) => `${count(one.per_second)} /s` },
  { name: 'began', title: 'Began', minor: true, cell: (one) => <Time at={one.created_at} relative /> },
  { name: 'ended', title: 'Ended', minor: true, cell: (one) => <Time at={one.finished_at} relative /> },
];

function Far(props: { action: BulkAction }): JSX.Element {
  const { action: one } = props;
  const past = one.done + one.asked_to_stop + one.skipped + one.failed;
  const part = one.matched > 0 ? Math.min(1, past / one.matched) : 1;
  const words = `${count(one.done)} of ${count(one.matched)}`;
  const aside = [
    one.asked_to_stop > 0 && `${count(one.asked_to_stop)} asked to stop`,
    one.skipped > 0 && `${count(one.skipped)} skipped`,
    one.failed > 0 && `${count(one.failed)} failed`,
  ].filter(Boolean);
  return (
    <div class="far">
      <Meter
        part={part}
        tone={one.failed > 0 ? 'warn' : one.state === 'done' ? 'ok' : 'info'}
        label={`${words} done, ${percent(part)}`}
      />
      <span class="num">{words}</span> {aside.length > 0 && <span class="muted">{aside.join(', ')}</span>}
      {one.error && <p class="error-line">{one.error}</p>}
    </div>
  );
}

function doing(reload: () => void): Column<BulkAction> {
  return { name: 'actions', title: '', cell: (one) => <Abort action={one} reload={reload} /> };
}

function Abort(props: { action: BulkAction; reload: () => void }): JSX.Element | null {
  const { action: one } = props;
  const may = useMay('operate');
  const [isAsked, setAsked] = useState(false);
  if (!may || one.state !== 'running') return null;
  const abort = async (): Promise<void> => {
    const after = await act<BulkAction>('POST', `/v1/bulk-actions/${one.id}/abort`);
    toast(`Aborted after ${plural(after.done, 'job')}.`);
    props.reload();
  };
  return (
    <>
      <Button small kind="danger" onClick={() => setAsked(true)}>
        Abort
      </Button>
      <Confirm
        title="Abort this action?"
        open={isAsked}
        onClose={() => setAsked(false)}
        action="Abort it"
        onConfirm={abort}
      >
        <p>What is done stays done ({count(one.done)} so far); nothing further begins.</p>
      </Confirm>
    </>
  );
}
