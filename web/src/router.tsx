/** Addresses below /ui: which page is shown, its parameters, and going elsewhere without a load.
 *
 * Plain `<a href="/ui/…">` is enough anywhere: clicks on such links are taken by the router.
 */
import { createContext, type ComponentChildren, type ComponentType, type JSX } from 'preact';
import { useContext, useState } from 'preact/hooks';

import { Store, useStore } from './store';

export interface Nav {
  label: string;
  group: string;
}

export interface Route {
  /** Such as /ui/jobs/:id. */
  path: string;
  component: ComponentType;
  nav?: Nav;
}

export interface Place {
  path: string;
  query: URLSearchParams;
}

export type Params = Record<string, string>;

const place = new Store<Place>(here());
const ParamsContext = createContext<Params>({});

/** Says of a path whether its page is about one tenant; set once by the app. */
let isOfTenant: (path: string) => boolean = () => false;

export function setTenantPaths(test: (path: string) => boolean): void {
  isOfTenant = test;
}

function here(): Place {
  return { path: tidy(location.pathname), query: new URLSearchParams(location.search) };
}

function tidy(path: string): string {
  return path === '/ui' ? '/ui/' : path.length > 4 ? path.replace(/\/+$/, '') : path;
}

/** The parameters of a path that fits a pattern, else null. */
export function match(pattern: string, path: string): Params | null {
  const wanted = tidy(pattern).split('/');
  const given = tidy(path).split('/');
  if (wanted.length !== given.length) return null;
  const params: Params = {};
  for (let i = 0; i < wanted.length; i += 1) {
    const want = wanted[i] ?? '';
    const got = given[i] ?? '';
    if (want.startsWith(':')) {
      if (got === '') return null;
      params[want.slice(1)] = decoded(got);
    } else if (want !== got) {
      return null;
    }
  }
  return params;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray percent sign is part of the name
  }
}

export function find<R extends { path: string }>(
  routes: readonly R[],
  path: string,
): { route: R; params: Params } | null {
  for (const route of routes) {
    const params = match(route.path, path);
    if (params !== null) return { route, params };
  }
  return null;
}

/** The tenant that an operator has picked, from ?tenant=. */
export function pickedTenant(): string | null {
  return place.get().query.get('tenant') || null;
}

/** The tenant that requests of the page that is shown are made for; null on operators' pages. */
export function tenantOfPage(): string | null {
  return isOfTenant(place.get().path) ? pickedTenant() : null;
}

/** A path with the picked tenant kept in it. */
export function hrefOf(to: string): string {
  const url = new URL(to, location.origin);
  const tenant = pickedTenant();
  if (tenant !== null && url.pathname.startsWith('/ui') && !url.searchParams.has('tenant')) {
    url.searchParams.set('tenant', tenant);
  }
  return url.pathname + url.search + url.hash;
}

export function navigate(to: string, options: { replace?: boolean } = {}): void {
  const href = hrefOf(to);
  if (options.replace) history.replaceState(null, '', href);
  else history.pushState(null, '', href);
  place.set(here());
  if (!options.replace) scrollTo(0, 0);
}

/** Which page it is, and whose: what is asked of it does not matter. */
function whereabouts(): string {
  return `${place.get().path} ${pickedTenant() ?? ''}`;
}

/** To go on from a page when something is done: nowhere, if the reader left it or picked another
 * tenant meanwhile. */
export function useGoOn(): (to: string) => void {
  const [from] = useState(whereabouts);
  return (to) => {
    if (whereabouts() === from) navigate(to);
  };
}

/** Changes the query of the page that is shown: null or '' takes a name out. */
export function setQuery(changes: Record<string, string | null>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  history.replaceState(null, '', location.pathname + (text ? `?${text}` : ''));
  place.set(here());
}

export function useLocation(): Place {
  return useStore(place);
}

/** The query of the page that is shown, and a function that changes it. */
export function useQuery(): [URLSearchParams, typeof setQuery] {
  return [useStore(place).query, setQuery];
}

export function useParams(): Params {
  return useContext(ParamsContext);
}

export function WithParams(props: { params: Params; children: ComponentChildren }): JSX.Element {
  return <ParamsContext.Provider value={props.params}>{props.children}</ParamsContext.Provider>;
}

export function Link(props: {
  to: string;
  class?: string;
  title?: string;
  current?: boolean;
  children: ComponentChildren;
}): JSX.Element {
  useStore(place); // the picked tenant is part of the address
  return (
    <a
      href={hrefOf(props.to)}
      class={props.class}
      title={props.title}
      aria-current={props.current ? 'page' : undefined}
    >
      {props.children}
    </a>
  );
}

/** Takes clicks on links of the app; called once. */
export function startRouter(): void {
  addEventListener('popstate', () => place.set(here()));
  addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (link === null || link.target || link.hasAttribute('download')) return;
    if (link.origin !== location.origin || !/^\/ui(\/|$)/.test(link.pathname)) return;
    event.preventDefault();
    navigate(link.pathname + link.search + link.hash);
  });
}
