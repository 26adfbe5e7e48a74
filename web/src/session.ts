/** Who is signed in, and what they may do. The cookie itself is never seen by this code. */
import { ApiError, credentials, request } from './api';
import { pickedTenant, useLocation } from './router';
import { Store, useStore } from './store';
import type { Schemas } from './types';

export type Permission = 'read' | 'submit' | 'operate' | 'admin';

/** By cookie, so there is a token and an end; workers' keys open nothing here. */
export type Session = Schemas['SessionView'] & {
  csrf: string;
  scope: 'operator' | 'tenant';
  expires_at: string;
};

/** undefined: not asked yet; null: nobody is signed in. */
export const sessionStore = new Store<Session | null | undefined>(undefined);

function keep(session: Session | null): void {
  credentials.csrf = session?.csrf ?? '';
  credentials.isOperator = session?.scope === 'operator';
  sessionStore.set(session);
}

/** Tabs share the cookie: who signs in or out in one has done so in all of them. */
const otherTabs = new BroadcastChannel('fairway-session');
otherTabs.onmessage = () => void loadSession();

credentials.onLost = () => {
  if (sessionStore.get()) keep(null);
};

/** Also asked when something hints that it is another's, or over; a server that is away ends none. */
export async function loadSession(): Promise<void> {
  const before = sessionStore.get();
  let found: Session | null = null;
  try {
    found = await request<Session>('GET', '/session', undefined, { tenant: null });
  } catch (error) {
    if (before && !(error instanceof ApiError && error.status === 401)) return;
  }
  const isLate = sessionStore.get() !== before; // somebody signed in or out meanwhile
  if (!isLate && (before === undefined || found?.csrf !== before?.csrf)) keep(found);
}

/** With a key, or with the code of a one-time link. */
export async function signIn(by: { key: string } | { code: string }): Promise<void> {
  keep(await request<Session>('POST', '/session', by, { tenant: null }));
  otherTabs.postMessage('in');
}

/** Throws when the server did not hear of it: the cookie still opens everything then. */
export async function signOut(): Promise<void> {
  try {
    await request('DELETE', '/session', undefined, { tenant: null });
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) throw error;
  }
  keep(null);
  otherTabs.postMessage('out');
}

/** Pages are shown to those signed in only, so there is one. */
export function useSession(): Session {
  const session = useStore(sessionStore);
  return (
    session ?? { csrf: '', scope: 'tenant', name: '', tenant: null, may: [], expires_at: '' }
  );
}

/** Whether the key signed in with may do this; what it may not is not offered. */
export function useMay(permission: Permission): boolean {
  return useSession().may.includes(permission);
}

/** The tenant whose things are shown: the key's own, or the one that the operator picked. */
export function useTenant(): string | null {
  const session = useSession();
  useLocation();
  return session.scope === 'tenant' ? session.tenant : pickedTenant();
}
