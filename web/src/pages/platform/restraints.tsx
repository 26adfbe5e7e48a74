/** What keeps jobs from starting: pauses by people, throttles, circuits and quarantines by itself. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useLoad, withQuery } from '../../api';
import {
  Badge,
  Button,
  Card,
  type Column,
  Confirm,
  Duration,
  Empty,
  Grid,
  Loads,
  Page,
  Stat,
  Table,
  Tag,
  Time,
  toast,
} from '../../components';
import { TenantPicker } from '../../components/tenant_picker';
import { count } from '../../format';
import { useLive } from '../../live';
import { Link } from '../../router';
import { useMay, useTenant } from '../../session';
import type { Limits, Overview, Pause, Restraints, Share, SharePage } from '../../types';
import { PauseDialog } from './pause_dialog';
import { ShareBar, hrefOfTenant } from '../tenants/tenants';
import { HeldList } from '../tenants/tenant';

export function RestraintsPage(): JSX.Element {
  const tenant = useTenant();
  return (
    <Page
      title="Restraints"
      about="What keeps jobs from starting. None of it loses a job: they wait, and use no attempts."
    >
      <Counts />
      <Pauses />
      <Throttles />
      {tenant === null ? <Whose /> : <OfTenant key={tenant} tenant={tenant} />}
    </Page>
  );
}

function Counts(): JSX.Element {
  const first = useLoad<Overview>('/v1/overview', { tenant: null });
  const held: Partial<Record<string, number>> = (useLive().overview ?? first.data)?.restraints ?? {};
  const tone = (n: number | null | undefined): { tone?: 'warn' } => (n ? { tone: 'warn' } : {});
  return (
    <Card>
      <div class="stats">
        <Stat
          label="Open circuits"
          value={count(held['circuit'])}
          hint="a dependency is away; a few jobs probe it"
          {...tone(held['circuit'])}
        />
        <Stat
          label="Quarantines"
          value={count(held['quarantine'])}
          hint="a type mostly fails: two tries a job"
          {...tone(held['quarantine'])}
        />
        <Stat
          label="Throttles"
          value={count(held['throttle'])}
          hint="slowed down, so that others get their share"
          {...tone(held['throttle'])}
        />
      </div>
    </Card>
  );
}

function wordsOf(pause: Pause): string {
  const parts = [
    pause.tenant ? `tenant ${pause.tenant}` : '',
    pause.type ? `type ${pause.type}` : '',
    pause.pool ? `pool ${pause.pool}` : '',
  ];
  return parts.filter(Boolean).join(', ');
}

function pauseColumns(mayResume: boolean, onResume: (pause: Pause) => void): Column<Pause>[] {
  const every = <span class="muted">every</span>;
  return [
    { name: 'state', title: 'State', cell: () => <Badge tone="warn">Paused</Badge> },
    { name: 'tenant', title: 'Tenant', cell: (pause) => (pause.tenant ? <Link to={hrefOfTenant(pause.tenant)}>{pause.tenant}</Link> : every) },
    { name: 'type', title: 'Job type', cell: (pause) => (pause.type ? <Tag>{pause.type}</Tag> : every) },
    { name: 'pool', title: 'Pool', cell: (pause) => pause.pool ?? every },
    {
      name: 'actions',
      title: '',
      numeric: true,
      cell: (pause) =>
        mayResume && (
          <Button small label={`Resume ${wordsOf(pause)}`} onClick={() => onResume(pause)}>
            Resume
          </Button>
        ),
    },
  ];
}

function Pauses(): JSX.Element {
  const pauses = useLoad<{ pauses: Pause[] }>('/v1/pauses', { tenant: null, every: 10_000 });
  const [resuming, setResuming] = useState<Pause>();
  const [isPausing, setPausing] = useState(false);
  const mayOperate = useMay('operate');
  return (
    <Card
      flush
      title="Pauses"
      about="By people. Jobs that match all that is named are accepted and wait."
      actions={mayOperate && <Button onClick={() => setPausing(true)}>Pause…</Button>}
    >
      <Loads of={pauses}>
        {({ pauses: rows }) => (
          <Table
            label="Pauses"
            rows={rows}
            columns={pauseColumns(mayOperate, setResuming)}
            rowKey={wordsOf}
            empty={<Empty title="Nothing is paused" />}
          />
        )}
      </Loads>
      <Confirm
        title={`Resume ${resuming ? wordsOf(resuming) : ''}?`}
        open={resuming !== undefined}
        onClose={() => setResuming(undefined)}
        action="Resume"
        kind="primary"
        onConfirm={async () => {
          await act('DELETE', withQuery('/v1/pauses', { ...resuming }), undefined, { tenant: null });
          toast('It runs again.');
          pauses.reload();
        }}
      >
        <p>Jobs that wait for it may start at once.</p>
      </Confirm>
      {isPausing && <PauseDialog onClose={() => setPausing(false)} onDone={pauses.reload} />}
    </Card>
  );
}

const THROTTLES: Column<Share>[] = [
  { name: 'tenant', title: 'Tenant', cell: (share) => share.tenant },
  { name: 'pool', title: 'Pool', cell: (share) => share.pool },
  { name: 'waiting', title: 'Waiting', numeric: true, cell: (share) => count(share.queued) },
  { name: 'share', title: 'Receives of entitled', cell: (share) => <ShareBar share={share} /> },
];

function Throttles(): JSX.Element {
  const shares = useLoad<SharePage>('/v1/shares', { tenant: null, every: 5000 });
  return (
    <Card flush title="Throttled tenants" about="Held back for a while by a throttle or a cap; among the hundred with most work.">
      <Loads of={shares}>
        {({ items }) => (
          <Table
            label="Throttled tenants"
            rows={items.filter((one) => one.throttled)}
            columns={THROTTLES}
            rowKey={(share) => `${share.tenant} ${share.pool}`}
            href={(share) => hrefOfTenant(share.tenant)}
            empty={<Empty title="Nobody is throttled" />}
          />
        )}
      </Loads>
    </Card>
  );
}

function Whose(): JSX.Element {
  return (
    <Card title="Circuits and quarantines">
      <Empty
        title="Whose?"
        text="They belong to one tenant's jobs of one type. Pick the tenant to see which, and to lift a quarantine."
      >
        <TenantPicker isLarge />
      </Empty>
    </Card>
  );
}

type Circuit = Restraints['circuits'][number];
type Quarantine = Restraints['quarantines'][number];

const CIRCUITS: Column<Circuit>[] = [
  { name: 'type', title: 'Job type', cell: (one) => <b class="break">{one.type}</b> },
  { name: 'dependency', title: 'Cannot reach', cell: (one) => <Tag>{one.dependency}</Tag> },
  { name: 'since', title: 'Open since', cell: (one) => <Time at={one.opened_at} /> },
  { name: 'probe', title: 'Next probe in', numeric: true, cell: (one) => <Duration seconds={one.next_probe_seconds} /> },
];

function quarantineColumns(mayLift: boolean, onLift: (one: Quarantine) => void): Column<Quarantine>[] {
  return [
    { name: 'type', title: 'Job type', cell: (one) => <b class="break">{one.type}</b> },
    { name: 'since', title: 'Since', cell: (one) => <Time at={one.since} /> },
    {
      name: 'actions',
      title: '',
      numeric: true,
      cell: (one) =>
        mayLift && (
          <Button small label={`Lift the quarantine of ${one.type}`} onClick={() => onLift(one)}>
            Lift
          </Button>
        ),
    },
  ];
}

function OfTenant({ tenant }: { tenant: string }): JSX.Element {
  const found = useLoad<Restraints>('/v1/restraints', { tenant, every: 5000 });
  const limits = useLoad<Limits>(`/v1/tenants/${encodeURIComponent(tenant)}/limits`, { tenant: null, every: 5000 });
  const [lifting, setLifting] = useState<Quarantine>();
  const mayLift = useMay('operate');
  return (
    <>
      <Grid columns={2}>
        <Card flush title={`Circuits of ${tenant}`}>
          <Loads of={found}>
            {({ circuits }) => (
              <Table
                label="Circuits"
                rows={circuits}
                columns={CIRCUITS}
                rowKey={(one) => `${one.type} ${one.dependency}`}
                empty={<Empty title="No circuit is open" />}
              />
            )}
          </Loads>
        </Card>
        <Card flush title={`Quarantines of ${tenant}`}>
          <Loads of={found}>
            {({ quarantines }) => (
              <Table
                label="Quarantines"
                rows={quarantines}
                columns={quarantineColumns(mayLift, setLifting)}
                rowKey={(one) => one.type}
                empty={<Empty title="No type is in quarantine" />}
              />
            )}
          </Loads>
        </Card>
      </Grid>
      <Card title={`All that holds jobs of ${tenant}`}>
        <Loads of={limits}>
          {({ held }) => (held.length ? <HeldList held={held} /> : <Empty title="Nothing holds its jobs back" />)}
        </Loads>
      </Card>
      <Confirm
        title={`Lift the quarantine of ${lifting?.type ?? ''}?`}
        open={lifting !== undefined}
        onClose={() => setLifting(undefined)}
        action="Lift quarantine"
        kind="primary"
        onConfirm={async () => {
          await act('DELETE', `/v1/quarantines/${encodeURIComponent(lifting?.type ?? '')}`, undefined, { tenant });
          toast('The quarantine is lifted.');
          found.reload();
        }}
      >
        <p>Its jobs have all their attempts again. Lift it when the handler is mended.</p>
      </Confirm>
    </>
  );
}
