/** Moments at which somebody changed something, for lines on charts: "what did we do at ten?" */
import { useMemo } from 'preact/hooks';

import { useLoad, withQuery } from '../../api';
import type { AuditEntry, AuditPage } from '../../types';

const DAY_SECONDS = 86_400;

/** Acts that can bend a line; making keys or webhooks cannot. */
const BENDS = new Set([
  'pause',
  'resume',
  'put_pool',
  'put_tier',
  'put_job_type',
  'job_type_moved',
  'change_tenant',
  'suspend_tenant',
  'resume_tenant',
  'drain_worker',
  'lift_quarantine',
]);

export interface Mark {
  at: number;
  label: string;
}

export function markOf(entry: AuditEntry): Mark {
  const label = `${entry.action.replaceAll('_', ' ')} ${entry.subject}`.trim();
  return { at: Date.parse(entry.at) / 1000, label };
}

/** Of the whole platform, or of one tenant; none for spans where lines would be all there is. */
export function useMarks(span: string, tenant: string | null): Mark[] {
  const seconds = Number(span);
  const since = useMemo(() => new Date(Date.now() - seconds * 1000).toISOString(), [seconds]);
  const path = seconds > DAY_SECONDS ? null : withQuery('/v1/audit', { since, limit: 100 });
  const acts = useLoad<AuditPage>(path, { tenant: null, every: 30_000 });
  return useMemo(
    () =>
      (acts.data?.entries ?? [])
        .filter((one) => BENDS.has(one.action) && (tenant === null || one.tenant === tenant))
        .map(markOf),
    [acts.data, tenant],
  );
}
