/** The overview as it happens: one stream a tab, however many parts of the page look at it.
 *
 * It is let go while the tab is hidden, and taken up again, waiting longer after each failure.
 */
import { useEffect } from 'preact/hooks';

import { loadSession } from './session';
import { Store, useStore } from './store';
import type { Overview } from './types';

const WAIT_MS = [1000, 2000, 5000, 10_000, 30_000];
const SILENT_MS = 10_000; // the server speaks every two seconds
const KEPT = 150; // five minutes

export type LiveState = 'connecting' | 'live' | 'waiting' | 'lost';

export interface Live {
  overview: Overview | undefined;
  state: LiveState;
  /** Of `waiting`: why the server cannot tell now, such as a shard without an owner. */
  why?: string;
  /** The last minutes, oldest first, for small lines. */
  past: readonly Overview[];
}

const live = new Store<Live>({ overview: undefined, state: 'connecting', past: [] });
let source: EventSource | undefined;
let watchers = 0;
let failures = 0;
let retry: ReturnType<typeof setTimeout> | undefined;
let silence: ReturnType<typeof setTimeout> | undefined;

function open(): void {
  if (source !== undefined || watchers === 0 || document.hidden) return;
  clearTimeout(retry);
  source = new EventSource('/v1/live');
  source.addEventListener('overview', (event) => hear(event.data as string));
  source.addEventListener('unavailable', (event) => hearWhyNot(event.data as string));
  source.addEventListener('error', lose);
  listen();
}

function hear(text: string): void {
  failures = 0;
  listen();
  const overview = JSON.parse(text) as Overview;
  const past = [...live.get().past.slice(1 - KEPT), overview];
  live.set({ overview, state: 'live', past });
}

/** The stream goes on; what was seen last is old meanwhile. */
function hearWhyNot(text: string): void {
  failures = 0;
  listen();
  const problem = JSON.parse(text) as { detail?: string };
  live.set({ ...live.get(), state: 'waiting', why: problem.detail ?? '' });
}

function listen(): void {
  clearTimeout(silence);
  silence = setTimeout(lose, SILENT_MS);
}

function lose(): void {
  close();
  live.set({ ...live.get(), state: 'lost' });
  const wait = WAIT_MS[Math.min(failures, WAIT_MS.length - 1)] ?? 30_000;
  if (failures > 0) void loadSession(); // a stream does not say that it is refused
  failures += 1;
  retry = setTimeout(open, wait * (0.75 + Math.random() / 2)); // not all tabs at once
}

function close(): void {
  source?.close();
  source = undefined;
  clearTimeout(silence);
  clearTimeout(retry);
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    close();
  } else {
    failures = 0;
    open();
  }
});

/** Forgets what was seen, for the next who signs in; whoever looks already sees theirs. */
export function endLive(): void {
  close();
  live.set({ overview: undefined, state: 'connecting', past: [] });
  open();
}

export function useLive(): Live {
  useEffect(() => {
    watchers += 1;
    open();
    return () => {
      watchers -= 1;
      if (watchers === 0) close();
    };
  }, []);
  return useStore(live);
}
