/** One tenant, for operators: its share, its terms, its limits, and its state. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { useLoad, withQuery } from '../../api';
import {
  Badge,
  Button,
  ButtonLink,
  Card,
  type Column,
  Empty,
  Facts,
  Grid,
  Loads,
  Meter,
  Page,
  Row,
  Stat,
  Table,
  Tag,
  Time,
} from '../../components';
import { compact, count, percent, plural } from '../../format';
import { Link, useParams } from '../../router';
import { useMay } from '../../session';
import type { AuditPage, HeldBack, Limits, RegionList, Share, SharePage, Tenant } from '../../types';
import { MoveOf } from '../fleet/moves';
import { AuditTable } from '../platform/audit_table';
import { HistoryCharts, SpanSelect, useSpan } from '../platform/history';
import { ShareBar, TenantState } from './tenants';
import { StateButtons } from './tenant_state';
import { TermsDialog } from './tenant_terms';

export function TenantPage(): JSX.Element {
  const name = useParams()['name'] ?? '';
  const path = `/v1/tenants/${encodeURIComponent(name)}`;
  const tenant = useLoad<Tenant>(path, { tenant: null, every: 15_000 });
  return (
    <Page
      title={name}
      above={<Link to="/ui/tenants">Tenants</Link>}
      about={tenant.data && <About tenant={tenant.data} />}
      actions={tenant.data && <StateButtons tenant={tenant.data} onChanged={tenant.reload} />}
    >
      <Loads of={tenant} lines={8}>
        {(found) => <Shown tenant={found} onChanged={tenant.reload} />}
      </Loads>
    </Page>
  );
}

function About({ tenant }: { tenant: Tenant }): JSX.Element {
  return (
    <span class="row">
      <TenantState tenant={tenant} />
      <Tag>{tenant.tier}</Tag>
      {tenant.state_since && (
        <span>
          since <Time at={tenant.state_since} />
        </span>
      )}
      {tenant.reason && <span class="break">“{tenant.reason}”</span>}
      {tenant.kept_until && (
        <span>
          can be restored until <Time at={tenant.kept_until} />
        </span>
      )}
      {tenant.home_region && <Home tenant={tenant} />}
      {tenant.moving_to !== null && <MoveOf tenant={tenant.name} to={tenant.moving_to} />}
    </span>
  );
}

/** Where its jobs run; said at length, with the way there, where that is not what this page shows. */
function Home({ tenant }: { tenant: Tenant }): JSX.Element {
  const regions = useLoad<RegionList>(tenant.is_home_here ? null : '/v1/regions', { tenant: null });
  const home = regions.data?.regions.find((one) => one.name === tenant.home_region);
  if (tenant.is_home_here) return <span>at home here, in the region {tenant.home_region}</span>;
  const there = home?.urls[0];
  return (
    <>
      <Badge tone="info">Home: {tenant.home_region}</Badge>
      <span class="break">
        Its jobs run in that region, and this page tells of this one alone.{' '}
        {there && <a href={`${there}/ui/tenants/${encodeURIComponent(tenant.name)}`}>Look at it there</a>}
      </span>
    </>
  );
}

function Shown({ tenant, onChanged }: { tenant: Tenant; onChanged: () => void }): JSX.Element {
  const [span, setSpan] = useSpan();
  const as = `tenant=${encodeURIComponent(tenant.name)}`;
  return (
    <>
      {tenant.is_home_here && (
        <Row>
          <ButtonLink href={`/ui/jobs?${as}`}>Jobs</ButtonLink>
          <ButtonLink href={`/ui/failures?${as}`}>Failures</ButtonLink>
          <ButtonLink href={`/ui/schedules?${as}`}>Schedules</ButtonLink>
          <ButtonLink href={`/ui/usage?${as}`}>Usage</ButtonLink>
          <ButtonLink href={`/ui/keys?${as}`}>Keys</ButtonLink>
        </Row>
      )}
      <Shares tenant={tenant} />
      <Grid columns={2}>
        <Terms tenant={tenant} onChanged={onChanged} />
        <InUse tenant={tenant} />
      </Grid>
      <section class="past" aria-label="History">
        <Row class="row-between">
          <h2 class="section-title">History</h2>
          <SpanSelect span={span} onChange={setSpan} />
        </Row>
        <HistoryCharts of="tenant" name={tenant.name} span={span} />
      </section>
      <Acts tenant={tenant} />
    </>
  );
}

const COLUMNS: Column<Share>[] = [
  { name: 'pool', title: 'Pool', cell: (share) => <b>{share.pool}</b> },
  { name: 'waiting', title: 'Waiting', numeric: true, cell: (share) => compact(share.queued) },
  { name: 'running', title: 'Running', numeric: true, cell: (share) => compact(share.running) },
  { name: 'share', title: 'Receives of entitled', cell: (share) => <ShareBar share={share} /> },
  {
    name: 'state',
    title: '',
    cell: (share) => (share.throttled ? <Badge tone="warn">Throttled</Badge> : null),
  },
];

function Shares({ tenant }: { tenant: Tenant }): JSX.Element {
  const path = tenant.state === 'active' ? withQuery('/v1/shares', { tenant: tenant.name }) : null;
  const shares = useLoad<SharePage>(path, { tenant: null, every: 3000 });
  return (
    <Card title="Share of the slots" about="What it receives, and what its weight entitles it to among those with work." flush>
      {tenant.state !== 'active' ? (
        <Empty title="None of its jobs starts" text={`It is ${tenant.state}.`} />
      ) : !tenant.is_home_here ? (
        <Empty title="None of its jobs starts here" text={`Its home is the region ${tenant.home_region}.`} />
      ) : (
        <Loads of={shares}>
          {({ items }) => (
            <Table
              label="Shares by pool"
              rows={items}
              columns={COLUMNS}
              rowKey={(share) => share.pool}
              empty={<Empty title="It has no work now" text="Shares are told while jobs wait or run." />}
            />
          )}
        </Loads>
      )}
    </Card>
  );
}

function Terms({ tenant, onChanged }: { tenant: Tenant; onChanged: () => void }): JSX.Element {
  const [isChanging, setChanging] = useState(false);
  const mayAdmin = useMay('admin');
  const reserved = Object.entries(tenant.reserved).filter(([, slots]) => slots > 0);
  return (
    <Card
      title="Terms"
      actions={
        mayAdmin &&
        tenant.state !== 'deleted' && (
          <Button small onClick={() => setChanging(true)}>
            Change
          </Button>
        )
      }
    >
      <Facts
        items={[
          ['Weight', count(tenant.weight)],
          ['Tier', tenant.tier],
          ['Floor', percent(tenant.floor_per_mille / 1000)],
          ['Cap in a pool', tenant.cap === null ? 'no cap' : plural(tenant.cap, 'job')],
          ['Submits', `${count(tenant.rate_per_second)} /s, ${count(tenant.burst)} at once`],
          ['May wait', plural(tenant.depth_limit, 'job')],
          [
            'Reserved slots',
            reserved.length
              ? reserved.map(([pool, slots]) => (
                  <Tag key={pool}>
                    {pool} {count(slots)}
                  </Tag>
                ))
              : 'none',
          ],
        ]}
      />
      {isChanging && <TermsDialog tenant={tenant} onClose={() => setChanging(false)} onDone={onChanged} />}
    </Card>
  );
}

function InUse({ tenant }: { tenant: Tenant }): JSX.Element {
  const path = `/v1/tenants/${encodeURIComponent(tenant.name)}/limits`;
  const limits = useLoad<Limits>(path, { tenant: null, every: 5000 });
  return (
    <Card title="Limits in use">
      <Loads of={limits}>{(found) => <Used limits={found} />}</Loads>
    </Card>
  );
}

function Used({ limits }: { limits: Limits }): JSX.Element {
  const depth = limits.depth_limit ? limits.depth / limits.depth_limit : 0;
  const left = limits.burst ? limits.jobs_left / limits.burst : 0;
  const refused = Object.entries(limits.refused);
  return (
    <>
      <div class="stats">
        <Stat label="Waiting" value={compact(limits.depth)} unit={`of ${compact(limits.depth_limit)}`}>
          <Meter part={depth} tone={depth > 0.8 ? 'warn' : 'ok'} label={`${percent(depth)} of the line is used`} />
        </Stat>
        <Stat label="May submit now" value={compact(limits.jobs_left)} unit={`of ${compact(limits.burst)}`}>
          <Meter part={left} tone={left < 0.2 ? 'warn' : 'ok'} label={`${percent(left)} of the burst is left`} />
        </Stat>
      </div>
      <Row>
        {limits.reached.map((name) => (
          <Badge key={name} tone="warn">
            {REACHED[name] ?? name} reached
          </Badge>
        ))}
        {limits.reached.length === 0 && <Badge tone="ok">No limit is reached</Badge>}
        {refused.map(([code, n]) => (
          <Tag key={code}>
            {compact(n)} × {code}
          </Tag>
        ))}
      </Row>
      {limits.held.length > 0 && <HeldList held={limits.held} />}
    </>
  );
}

const REACHED: Record<string, string> = {
  rate_per_second: 'Submit rate',
  depth_limit: 'Length of the line',
  cap: 'Cap',
};

export function HeldList({ held }: { held: readonly HeldBack[] }): JSX.Element {
  return (
    <ul class="lines">
      {held.map((one) => (
        <li key={`${one.reason} ${one.type ?? ''} ${one.pool ?? ''}`}>
          <Badge tone="warn">{one.reason.replaceAll('_', ' ')}</Badge>{' '}
          {one.type && <Tag>{one.type}</Tag>} {one.pool && <Tag>{one.pool}</Tag>}{' '}
          <span class="muted">{one.detail}</span>
        </li>
      ))}
    </ul>
  );
}

function Acts({ tenant }: { tenant: Tenant }): JSX.Element {
  const acts = useLoad<AuditPage>(withQuery('/v1/audit', { subject: tenant.name, limit: 8 }), { tenant: null });
  return (
    <Card
      flush
      title="Last changes"
      actions={<Link to={`/ui/audit?subject=${encodeURIComponent(tenant.name)}`}>All of them</Link>}
    >
      <Loads of={acts}>{({ entries }) => <AuditTable entries={entries} />}</Loads>
    </Card>
  );
}
