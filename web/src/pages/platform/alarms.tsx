/** What people are told of, the worst first. */
import type { JSX } from 'preact';

import { useLoad } from '../../api';
import { Badge, Card, Empty, Loads, Page } from '../../components';
import { plural } from '../../format';
import type { Alarm } from '../../types';
import { AlarmRow, worstFirst } from './alarm_row';

export function AlarmsPage(): JSX.Element {
  const alarms = useLoad<{ items: Alarm[] }>('/v1/alarms', { tenant: null, every: 5000 });
  return (
    <Page
      title="Alarms"
      about="Raised when a number stays beyond its threshold for a while, and over when it has stayed below it."
    >
      <Loads of={alarms}>{({ items }) => <Raised alarms={items} />}</Loads>
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
