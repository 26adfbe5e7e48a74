/** The shell: who sees which pages, the navigation and the bar above them. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { Account } from './components/account';
import { BrandMark } from './components/brand';
import { Empty, Icon, type IconName, Loading, Page, Toasts } from './components';
import { LiveMark } from './components/live_mark';
import { TenantPicker } from './components/tenant_picker';
import { endLive, useLive } from './live';
import { FleetPage } from './pages/fleet/fleet';
import { AlarmsPage } from './pages/platform/alarms';
import { AuditPage } from './pages/platform/audit';
import { OverviewPage } from './pages/platform/overview';
import { PoolsPage } from './pages/platform/pools';
import { PricesPage } from './pages/platform/prices';
import { RestraintsPage } from './pages/platform/restraints';
import { SignInPage } from './pages/sign_in';
import { TenantPage } from './pages/tenants/tenant';
import { TenantsPage } from './pages/tenants/tenants';
import { WorkersPage } from './pages/platform/workers';
import { tenantRoutes } from './pages/tenant_routes';
import { find, Link, type Route, setTenantPaths, useLocation, useQuery, WithParams } from './router';
import { type Session, sessionStore, useTenant } from './session';
import { useStore } from './store';

const PLATFORM = 'Platform';

const operatorRoutes: Route[] = [
  { path: '/ui/', component: OverviewPage, nav: { label: 'Overview', group: PLATFORM } },
  { path: '/ui/pools', component: PoolsPage, nav: { label: 'Pools', group: PLATFORM } },
  { path: '/ui/workers', component: WorkersPage, nav: { label: 'Workers', group: PLATFORM } },
  { path: '/ui/fleet', component: FleetPage, nav: { label: 'Fleet', group: PLATFORM } },
  { path: '/ui/tenants', component: TenantsPage, nav: { label: 'Tenants', group: PLATFORM } },
  { path: '/ui/tenants/:name', component: TenantPage },
  { path: '/ui/restraints', component: RestraintsPage, nav: { label: 'Restraints', group: PLATFORM } },
  { path: '/ui/alarms', component: AlarmsPage, nav: { label: 'Alarms', group: PLATFORM } },
  { path: '/ui/prices', component: PricesPage, nav: { label: 'Prices', group: PLATFORM } },
  { path: '/ui/audit', component: AuditPage, nav: { label: 'Audit', group: PLATFORM } },
];

const ICONS: Record<string, IconName> = {
  '/ui/': 'overview',
  '/ui/pools': 'pools',
  '/ui/workers': 'workers',
  '/ui/fleet': 'fleet',
  '/ui/tenants': 'tenants',
  '/ui/restraints': 'restraints',
  '/ui/alarms': 'alarms',
  '/ui/prices': 'prices',
  '/ui/audit': 'audit',
  '/ui/jobs': 'jobs',
  '/ui/failures': 'failures',
  '/ui/dead-letters': 'letters',
  '/ui/flows': 'flows',
  '/ui/schedules': 'schedules',
  '/ui/events': 'events',
  '/ui/bulk-actions': 'bulk',
  '/ui/usage': 'usage',
  '/ui/limits': 'limits',
  '/ui/keys': 'keys',
  '/ui/webhooks': 'webhooks',
};

/** Operators have pages of their own where tenants have others: the first that fits is shown. */
function routesFor(session: Session): Route[] {
  if (session.scope === 'tenant') return tenantRoutes;
  const taken = new Set(operatorRoutes.map((route) => route.path));
  return [...operatorRoutes, ...tenantRoutes.filter((route) => !taken.has(route.path))];
}

setTenantPaths((path) => find(operatorRoutes, path) === null && find(tenantRoutes, path) !== null);

export function App(): JSX.Element {
  const session = useStore(sessionStore);
  const { path } = useLocation();
  useEffect(() => endLive, [session?.csrf]);
  if (session === undefined) {
    return (
      <main class="alone">
        <Loading text="Asking who you are…" lines={2} />
      </main>
    );
  }
  if (session === null || path === '/ui/sign-in') return <SignInPage />;
  return <Shell key={session.csrf} session={session} />; // nothing of another's stays
}

function Shell({ session }: { session: Session }): JSX.Element {
  const { path } = useLocation();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  useEffect(() => {
    const shut = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') setOpen(false);
    };
    addEventListener('keydown', shut);
    return () => removeEventListener('keydown', shut);
  }, []);
  return (
    <div class={`shell${isOpen ? ' shell-open' : ''}`}>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <aside class="side" id="side">
        <Brand />
        <Navigation session={session} path={path} />
      </aside>
      <div class="side-shade" onClick={() => setOpen(false)} />
      <div class="column">
        <header class="bar">
          <button
            type="button"
            class="bar-menu"
            aria-label={isOpen ? 'Close the navigation' : 'Open the navigation'}
            aria-expanded={isOpen}
            aria-controls="side"
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name={isOpen ? 'close' : 'menu'} />
          </button>
          {session.scope === 'operator' ? <TenantPicker /> : <TenantName name={session.tenant} />}
          <span class="bar-gap" />
          <LiveMark />
          <Account session={session} />
        </header>
        <main class="main" id="main" tabIndex={-1}>
          <Shown session={session} path={path} />
        </main>
      </div>
      <Toasts />
    </div>
  );
}

function Brand(): JSX.Element {
  return (
    <Link to="/ui/" class="brand">
      <BrandMark />
      <span>Fairway</span>
    </Link>
  );
}

function TenantName({ name }: { name: string | null }): JSX.Element {
  return <span class="bar-tenant">{name}</span>;
}

function Navigation({ session, path }: { session: Session; path: string }): JSX.Element {
  const routes = routesFor(session).filter((route) => route.nav !== undefined);
  const tenant = useTenant();
  const alarms = useLive().overview?.alarms?.length ?? 0;
  const groups = [...new Set(routes.map((route) => route.nav?.group ?? ''))];
  return (
    <nav class="nav" aria-label="Main">
      {groups.map((group) => (
        <section key={group} class="nav-group">
          <h2 class="nav-head">
            {group}
            {group !== PLATFORM && session.scope === 'operator' && tenant !== null && ` of ${tenant}`}
          </h2>
          <ul>
            {routes
              .filter((route) => route.nav?.group === group)
              .map((route) => (
                <li key={route.path}>
                  <Link to={route.path} class="nav-link" current={isAt(route.path, path)}>
                    <Icon name={iconOf(route, session)} />
                    {route.nav?.label}
                    {route.path === '/ui/alarms' && alarms > 0 && (
                      <span class="nav-count">
                        {alarms}
                        <span class="sr-only"> raised</span>
                      </span>
                    )}
                  </Link>
                </li>
              ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

function iconOf(route: Route, session: Session): IconName {
  if (route.path === '/ui/' && session.scope === 'tenant') return 'home';
  return ICONS[route.path] ?? 'page';
}

function isAt(pattern: string, path: string): boolean {
  return path === pattern || (pattern !== '/ui/' && path.startsWith(`${pattern}/`));
}

function Shown({ session, path }: { session: Session; path: string }): JSX.Element {
  const found = find(routesFor(session), path);
  const tenant = useTenant();
  if (found === null) {
    return (
      <Page title="There is no such page">
        <Empty title={path} text="Pick one from the navigation." />
      </Page>
    );
  }
  const { route, params } = found;
  if (tenant === null && !operatorRoutes.includes(route)) return <PickFirst route={route} />;
  const Shows = route.component;
  return (
    <WithParams params={params}>
      <Shows key={operatorRoutes.includes(route) ? path : `${path} ${tenant ?? ''}`} />
    </WithParams>
  );
}

/** Pages about a tenant's things need a tenant. */
function PickFirst({ route }: { route: Route }): JSX.Element {
  const [, setQuery] = useQuery();
  return (
    <Page title={route.nav?.label ?? 'Pick a tenant'}>
      <Empty title="Whose?" text="This page is about one tenant's things. Pick the tenant first.">
        <TenantPicker onPick={(name) => setQuery({ tenant: name })} isLarge />
      </Empty>
    </Page>
  );
}
