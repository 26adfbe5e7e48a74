/** What people are told of, the worst first; and what was over before. */
import type { JSX } from 'preact';

import { useLoad, usePages } from '../../api';
import { Badge, Card, type Column, Duration, Empty, Loads, LoadsIfThere, Page, Table, Tag, Time } from '../../components';
import { plural } from '../../format';
import type { Alarm, PastAlarm } from '../../types';
import { AlarmRow, Severity, worstFirst } from './alarm_row';

export function AlarmsPage(): JSX.Element {
  const alarms = useLoad<{ items: Alarm[] }>('/v1/alarms', { tenant: null, every: 5000 });
  return (
    <Page
      title="Alarms"
      about="Raised when a number stays beyond its threshold for a while, and over when it has stayed below it."
    >
      <Loads of={alarms}>{({ items }) => <Raised alarms={items} />}</Loads>
      <Past raised={(alarms.data?.items ?? []).length} />
    </Page>
  );
}

function Raised({ alarms }: { alarms: Alarm[] }): JSX.Element {
  if (alarms.length === 0) {
    return (
      <Card>
        <Empty title="No alarm is raised" text="Every number that is watched is where it should be." >
          <Badge tone="ok">All quiet</Badge>
        </Empty>
      </Card>
    );
  }
  const critical = alarms.filter((one) => one.severity === 'critical').length;
  const about = critical ? `${plural(critical, 'critical alarm')} of ${alarms.length}` : plural(alarms.length, 'warning');
  return (
    <Card title="Raised now" about={about} flush>
      {worstFirst(alarms).map((alarm) => (
        <AlarmRow key={`${alarm.name} ${alarm.subject}`} alarm={alarm} />
      ))}
    </Card>
  );
}

const COLUMNS: Column<PastAlarm>[] = [
  { name: 'raised', title: 'Raised', cell: (one) => <Time at={one.raised_at} /> },
  {
    name: 'severity',
    title: 'Severity',
    cell: (one) => <Severity of={one} />,
  },
  {
    name: 'text',
    title: 'What',
    wide: true,
    cell: (one) => (
      <>
        {one.text} <span class="job-id mono">{one.name}</span>
      </>
    ),
  },
  { name: 'subject', title: 'About', minor: true, cell: (one) => one.subject && <Tag>{one.subject}</Tag> },
  { name: 'lasted', title: 'Lasted', numeric: true, cell: (one) => <Lasted one={one} /> },
];

function Lasted({ one }: { one: PastAlarm }): JSX.Element {
  if (one.ended_at === null) return <span class="nowrap">still raised</span>;
  return <Duration seconds={Math.round((Date.parse(one.ended_at) - Date.parse(one.raised_at)) / 1000)} />;
}

interface HistoryReply {
  items: PastAlarm[];
  next_cursor: string | null;
}

/** Asked anew when the number of raised alarms changes. */
function Past({ raised }: { raised: number }): JSX.Element {
  return (
    <Card flush title="History" about="Alarms that were raised, newest first.">
      <PastTable key={raised} />
    </Card>
  );
}

function PastTable(): JSX.Element {
  const found = usePages<HistoryReply, PastAlarm>(
    '/v1/alarms/history?limit=50',
    (reply) => ({ rows: reply.items, next: reply.next_cursor }),
    { tenant: null },
  );
  const missing = <Empty title="This server keeps no history of alarms" text="Only those that are raised now are known." />;
  return (
    <LoadsIfThere of={{ data: found.rows, error: found.error, reload: found.reload }} missing={missing}>
      {(rows) => (
        <Table
          label="Alarms that were raised"
          rows={rows}
          columns={COLUMNS}
          rowKey={(one) => `${one.name} ${one.subject} ${one.raised_at}`}
          empty={<Empty title="None was raised yet" text="What is raised and what is over is written down here." />}
          more={found.more}
          isLoadingMore={found.isLoadingMore}
        />
      )}
    </LoadsIfThere>
  );
}
