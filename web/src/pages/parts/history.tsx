/** The minutes behind a tenant's pages. Where nothing is kept, nothing is drawn. */
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import { useLoad, withQuery } from '../../api';
import { Sparkline } from '../../components';
import { count } from '../../format';
import { useSession } from '../../session';
import type { History } from '../../types';
import { useWhose } from './whose';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** The last hour as the API wants it; it moves on when the page is opened again. */
function lastHour(): { from: string; to: string } {
  const to = Math.ceil(Date.now() / MINUTE_MS) * MINUTE_MS;
  return { from: new Date(to - HOUR_MS).toISOString(), to: new Date(to).toISOString() };
}

/** Of the tenant whose page it is; undefined while it is unknown. */
export function useTenantHistory(): History | undefined {
  const span = useMemo(lastHour, []);
  const { tenant: name } = useWhose();
  const path = withQuery('/v1/history', { of: 'tenant', name, step: 'minute', ...span });
  return useLoad<History>(path).data;
}

/** Whether anything was written down in this time. */
export function isKnown(history: History): boolean {
  return history.accepted.some((n) => n !== null) || history.queued.some((n) => n !== null);
}

/** Deaths of a job type over the last hour, as small as a word. To operators a type is everybody's,
 * so they are shown none. */
export function TypeSpark(props: { type: string }): JSX.Element | null {
  const span = useMemo(lastHour, []);
  const isOwn = useSession().scope === 'tenant';
  const asked = { of: 'type', name: props.type, step: 'minute', ...span };
  const history = useLoad<History>(isOwn ? withQuery('/v1/history', asked) : null).data;
  const known = history?.dead.filter((n) => n !== null).length ?? 0;
  if (!history || known < 2) return null; // a line needs two points
  const sum = history.dead.reduce<number>((all, one) => all + (one ?? 0), 0);
  return (
    <Sparkline
      values={history.dead}
      tone="bad"
      label={`${count(sum)} dead over the last hour`}
    />
  );
}
