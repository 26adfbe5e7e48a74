/** Tenants: who gets which share of the slots now, and all of them by name. */
import type { ComponentChild, JSX } from 'preact';
import { useState } from 'preact/hooks';

import { useLoad, usePages, withQuery } from '../../api';
import {
  Badge,
  Button,
  Card,
  type Column,
  Empty,
  Loads,
  Loading,
  Meter,
  Page,
  Problem,
  Row,
  Search,
  Select,
  Table,
  Tabs,
  type Tone,
} from '../../components';
import { compact, count, percent } from '../../format';
import { useQuery } from '../../router';
import { useMay } from '../../session';
import type { Share, SharePage, Tenant, TenantPage as Reply, Tier } from '../../types';
import { shareTone } from '../platform/health';
import { NewTenant } from './new_tenant';

const STATES: Record<Tenant['state'], [Tone, string]> = {
  active: ['ok', 'Active'],
  suspended: ['warn', 'Suspended'],
  deleted: ['muted', 'Deleted'],
};

export function TenantState({ tenant }: { tenant: Tenant }): JSX.Element {
  const [tone, word] = STATES[tenant.state];
  return (
    <Badge tone={tone} {...(tenant.reason ? { title: tenant.reason } : {})}>
      {word}
    </Badge>
  );
}

export function hrefOfTenant(name: string): string {
  return `/ui/tenants/${encodeURIComponent(name)}`;
}

/** Who waited for nothing was due nothing: what it got was nobody else's. */
function sharesInWords(received: number | null, entitled: number | null): ComponentChild {
  if (received === null && entitled === null) return <span class="muted">not known yet</span>;
  if (entitled === 0) return <>{percent(received)} <span class="muted">lent, none due</span></>;
  return <>{percent(received)} <span class="muted">of {percent(entitled)}</span></>;
}

/** Received as a bar, entitled as a mark on it. */
export function ShareBar({ share }: { share: Pick<Share, 'share_received' | 'share_entitled' | 'queued'> }): JSX.Element {
  const { share_received: received, share_entitled: entitled } = share;
  return (
    <span class="meter-cell">
      <Meter
        part={received}
        mark={entitled}
        tone={shareTone(received, entitled, share.queued)}
        label={`Receives ${percent(received)}, entitled to ${percent(entitled)}`}
      />
      <span class="num share-words">{sharesInWords(received, entitled)}</span>
    </span>
  );
}

export function TenantsPage(): JSX.Element {
  const [query, setQuery] = useQuery();
  const [isAdding, setAdding] = useState(false);
  const mayAdmin = useMay('admin');
  const view = query.get('view') === 'all' ? 'all' : 'shares';
  return (
    <Page
      title="Tenants"
      about="Each gets slot-time by its weight; what nobody else needs is lent to whoever has work."
      actions={
        mayAdmin && (
          <Button kind="primary" onClick={() => setAdding(true)}>
            Add a tenant
          </Button>
        )
      }
    >
      <Tabs
        label="Views of tenants"
        tabs={[
          { key: 'shares', title: 'Shares now' },
          { key: 'all', title: 'All tenants' },
        ]}
        current={view}
        onPick={(key) => setQuery({ view: key === 'all' ? key : null })}
      />
      {view === 'all' ? <AllTenants /> : <Shares />}
      {isAdding && <NewTenant onClose={() => setAdding(false)} />}
    </Page>
  );
}

const SHARE_COLUMNS: Column<Share>[] = [
  { name: 'tenant', title: 'Tenant', cell: (share) => share.tenant },
  { name: 'pool', title: 'Pool', cell: (share) => share.pool },
  { name: 'weight', title: 'Weight', numeric: true, minor: true, cell: (share) => count(share.weight) },
  { name: 'waiting', title: 'Waiting', numeric: true, cell: (share) => compact(share.queued) },
  { name: 'running', title: 'Running', numeric: true, minor: true, cell: (share) => compact(share.running) },
  { name: 'share', title: 'Receives of entitled', cell: (share) => <ShareBar share={share} /> },
  {
    name: 'state',
    title: '',
    cell: (share) => (share.throttled ? <Badge tone="warn">Throttled</Badge> : null),
  },
];

function Shares(): JSX.Element {
  const [query, setQuery] = useQuery();
  const pool = query.get('pool') ?? '';
  const shares = useLoad<SharePage>('/v1/shares', { tenant: null, every: 5000 });
  return (
    <Loads of={shares}>
      {({ items, next }) => {
        const pools = [...new Set(items.map((one) => one.pool))];
        return (
          <Card
            flush
            title="Who has work, or had some in the last minute"
            about={next === null ? 'The largest first.' : 'The largest hundred; the others are under All tenants.'}
            actions={
              pools.length > 1 && (
                <Select
                  label="Pool"
                  value={pool}
                  choices={[{ value: '', label: 'Every pool' }, ...pools.map((name) => ({ value: name, label: name }))]}
                  onChange={(value) => setQuery({ pool: value })}
                />
              )
            }
          >
            <Table
              label="Shares of tenants"
              rows={items.filter((one) => pool === '' || one.pool === pool)}
              columns={SHARE_COLUMNS}
              rowKey={(share) => `${share.tenant} ${share.pool}`}
              href={(share) => hrefOfTenant(share.tenant)}
              empty={<Empty title="Nobody has work now" text="Tenants come here when they have jobs that wait or run." />}
            />
          </Card>
        );
      }}
    </Loads>
  );
}

const COLUMNS: Column<Tenant>[] = [
  { name: 'tenant', title: 'Tenant', cell: (tenant) => tenant.name },
  { name: 'state', title: 'State', cell: (tenant) => <TenantState tenant={tenant} /> },
  { name: 'tier', title: 'Tier', cell: (tenant) => tenant.tier },
  { name: 'weight', title: 'Weight', numeric: true, cell: (tenant) => count(tenant.weight) },
  {
    name: 'cap',
    title: 'Cap a pool',
    numeric: true,
    minor: true,
    cell: (tenant) => (tenant.cap === null ? <span class="muted">none</span> : count(tenant.cap)),
  },
  { name: 'rate', title: 'Submits /s', numeric: true, minor: true, cell: (tenant) => compact(tenant.rate_per_second) },
  { name: 'depth', title: 'May wait', numeric: true, minor: true, cell: (tenant) => compact(tenant.depth_limit) },
];

/** Only where there are several regions. */
const HOME: Column<Tenant> = {
  name: 'home',
  title: 'Home',
  cell: (tenant) => (tenant.is_home_here ? tenant.home_region : <span class="muted">{tenant.home_region}</span>),
};

function columnsFor(rows: Tenant[]): Column<Tenant>[] {
  const [tenant, state, ...rest] = COLUMNS;
  return tenant && state && rows.some((one) => one.home_region) ? [tenant, state, HOME, ...rest] : COLUMNS;
}

const STATE_CHOICES = [
  { value: '', label: 'Not deleted' },
  { value: 'active', label: 'Active' },
  { value: 'suspended', label: 'Suspended' },
  { value: 'deleted', label: 'Deleted' },
];

function AllTenants(): JSX.Element {
  const [query, setQuery] = useQuery();
  const tiers = useLoad<{ tiers: Tier[] }>('/v1/tiers', { tenant: null });
  const wanted = { q: query.get('q'), state: query.get('state'), tier: query.get('tier'), limit: 100 };
  const found = usePages<Reply, Tenant>(
    withQuery('/v1/tenants', wanted),
    (reply) => ({ rows: reply.tenants, next: reply.next_cursor }),
    { tenant: null },
  );
  const tierChoices = (tiers.data?.tiers ?? []).map((tier) => ({ value: tier.name, label: tier.name }));
  return (
    <>
      <Row>
        <Search label="Search tenants" value={query.get('q') ?? ''} onSearch={(q) => setQuery({ q: q.toLowerCase() })} />
        <Select
          label="State"
          value={query.get('state') ?? ''}
          choices={STATE_CHOICES}
          onChange={(state) => setQuery({ state })}
        />
        <Select
          label="Tier"
          value={query.get('tier') ?? ''}
          choices={[{ value: '', label: 'Every tier' }, ...tierChoices]}
          onChange={(tier) => setQuery({ tier })}
        />
      </Row>
      <Card flush>
        {found.error && <Problem error={found.error} onRetry={found.reload} />}
        {found.loading && <Loading />}
        {found.rows && (
          <Table
            label="Tenants"
            rows={found.rows}
            columns={columnsFor(found.rows)}
            rowKey={(tenant) => tenant.id}
            href={(tenant) => hrefOfTenant(tenant.name)}
            tone={(tenant) => (tenant.state === 'active' ? undefined : 'muted')}
            more={found.more}
            isLoadingMore={found.isLoadingMore}
            empty={<Empty title="No tenant fits" text="Search for a part of a name, or add the first tenant." />}
          />
        )}
      </Card>
    </>
  );
}
