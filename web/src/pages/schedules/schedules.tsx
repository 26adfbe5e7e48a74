/** Recurring schedules: what comes when, in words, and what can be done about it. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { usePages } from '../../api';
import { Badge, Button, Card, type Column, Empty, Loads, Page, Table, Tag, Time } from '../../components';
import { ago } from '../../format';
import { useGoOn } from '../../router';
import { useMay } from '../../session';
import { ScheduleDialog } from './schedule_dialog';
import type { Schedule } from '../../types';

const PATH = '/v1/schedules?limit=100';

export function SchedulesPage(): JSX.Element {
  const may = useMay('operate');
  const goOn = useGoOn();
  const [isMaking, setMaking] = useState(false);
  const found = usePages<{ schedules: Schedule[]; next_cursor: string | null }, Schedule>(
    PATH,
    (reply) => ({ rows: reply.schedules, next: reply.next_cursor }),
  );
  const make = may && (
    <Button kind="primary" onClick={() => setMaking(true)}>
      New schedule
    </Button>
  );
  return (
    <Page title="Schedules" about="Each tick of a schedule makes one job." actions={make}>
      <Loads of={{ data: found.rows, error: found.error, reload: found.reload }}>
        {(rows) => (
          <Card flush>
            <Table
              rows={rows}
              columns={COLUMNS}
              rowKey={(one) => one.name}
              href={(one) => `/ui/schedules/${encodeURIComponent(one.name)}`}
              tone={(one) => (one.paused ? 'muted' : undefined)}
              more={found.more}
              isLoadingMore={found.isLoadingMore}
              label="Schedules"
              empty={
                <Empty
                  title="No schedules yet"
                  text="Make one here, or declare it in code with @app.schedule: jobs that come again and again, by cron or by interval."
                />
              }
            />
          </Card>
        )}
      </Loads>
      {isMaking && (
        <ScheduleDialog
          onClose={() => setMaking(false)}
          onSaved={(name) => goOn(`/ui/schedules/${encodeURIComponent(name)}`)}
        />
      )}
    </Page>
  );
}

/** When it comes next, in words. */
export function nextWords(one: Schedule): JSX.Element {
  const next = one.next_runs[0];
  if (one.paused) return <span class="muted">never while paused</span>;
  if (!next) return <span class="muted">it has come to its end</span>;
  return (
    <>
      {ago(next)} <span class="muted">(<Time at={next} />)</span>
    </>
  );
}

const COLUMNS: Column<Schedule>[] = [
  { name: 'name', title: 'Name', cell: (one) => <strong class="nowrap">{one.name}</strong> },
  { name: 'when', title: 'When', wide: true, cell: (one) => one.description },
  { name: 'type', title: 'Job type', cell: (one) => <span class="job-type">{one.type}</span> },
  { name: 'pool', title: 'Pool', minor: true, cell: (one) => <Tag>{one.pool}</Tag> },
  { name: 'next', title: 'Next run', cell: nextWords },
  {
    name: 'state',
    title: 'State',
    cell: (one) =>
      one.paused ? <Badge tone="warn">paused</Badge> : <Badge tone="ok">active</Badge>,
  },
  { name: 'source', title: 'Declared by', minor: true, cell: (one) => one.source || 'hand' },
];
