/** The minutes behind a tenant's pages. Where nothing is kept, nothing is drawn. */
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import { useLoad, withQuery } from '../../api';
import { Sparkline } from '../../components';
import { count } from '../../format';
import type { History } from '../../types';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** The last hour as the API wants it; it moves on when the page is opened again. */
function lastHour(): { from: string; to: string } {
  const to = Math.ceil(Date.now() / MINUTE_MS) * MINUTE_MS;
  return { from: new Date(to - HOUR_MS).toISOString(), to: new Date(to).toISOString() };
}

/** Of the tenant whose page it is; undefined while it is unknown. */
export function useTenantHistory(name?: string | null): History | undefined {
  const span = useMemo(lastHour, []);
  const path = withQuery('/v1/history', { of: 'tenant', name, step: 'minute', ...span });
  return useLoad<History>(path).data;
}

export function useTypeHistory(type: string): History | undefined {
  const span = useMemo(lastHour, []);
  const path = withQuery('/v1/history', { of: 'type', name: type, step: 'minute', ...span });
  return useLoad<History>(path).data;
}

/** Deaths of a job type over the last hour, as small as a word. */
export function TypeSpark(props: { type: string }): JSX.Element | null {
  const history = useTypeHistory(props.type);
  if (!history?.at.length) return null;
  const sum = history.dead.reduce<number>((all, one) => all + (one ?? 0), 0);
  return (
    <Sparkline
      values={history.dead}
      tone="bad"
      label={`${count(sum)} dead over the last hour`}
    />
  );
}
