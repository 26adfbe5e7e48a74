/** Lines of the audit as sentences. What has no words yet is told by the name of the act. */
import { moment, seconds } from '../../format';
import type { AuditEntry } from '../../types';
import { money } from '../parts/words';

const SHOWN_MAX = 40;

/** `{}` stands for what it was done to. */
const ACTS: Record<string, string> = {
  add_tenant: 'Added the tenant {}',
  change_tenant: 'Changed the terms of {}',
  suspend_tenant: 'Suspended {}',
  resume_tenant: 'Let {} go on',
  split_shards: 'Made the {} more',
  move_tenant: 'Asked for the move of {} to another shard',
  begin_move: 'Began to move the rows of {} to another shard',
  finish_move: 'Moved {} to another shard',
  call_off_move: 'Called off the move of {} to another shard',
  cancel_move: 'Cancelled the move of {} to another shard',
  set_home: 'Moved {} to another region',
  fail_over_region: 'Failed over from the region {}',
  fail_back_region: 'Failed back to the region {}',
  delete_tenant: 'Deleted the tenant {}',
  restore_tenant: 'Restored the tenant {}',
  forget_tenant: 'Removed what was left of the tenant {}',
  visit_tenant: 'Looked at what belongs to {}',
  put_tier: 'Set the tier {}',
  put_pool: 'Set the pool {}',
  put_job_type: 'Set the terms of the job type {}',
  delete_job_type: 'Took back what was set for the job type {}',
  job_type_moved: 'Moved the job type {} to another pool',
  lift_quarantine: 'Lifted the quarantine of {}',
  drain_worker: 'Asked the worker {} to drain',
  set_autoscale: 'Set the autoscaling of the pool {}',
  override_autoscale: 'Overrode the autoscaling of the pool {}',
  end_autoscale_override: 'Ended the override of the pool {}',
  rotate_key: 'Made a new key in place of an old one',
  sign_in: 'Signed in to the dashboard',
  put_schedule: 'Set the schedule {}',
  pause_schedule: 'Paused the schedule {}',
  resume_schedule: 'Let the schedule {} go on',
  delete_schedule: 'Deleted the schedule {}',
  backfill_schedule: 'Backfilled the schedule {}',
  bulk_cancel: 'Began to cancel many jobs',
  bulk_replay: 'Began to replay many dead letters',
  bulk_discard: 'Began to discard many dead letters',
  abort_bulk_action: 'Stopped a bulk action',
  add_webhook: 'Added a webhook',
  change_webhook: 'Changed a webhook',
  delete_webhook: 'Deleted a webhook',
  rotate_webhook: "Rotated a webhook's secret",
  set_job_events: "Changed what is written to the event log of {}",
  set_spend_cap: 'Set the spend cap of {}',
  drop_spend_cap: 'Removed the spend cap of {}',
  drop_price: 'Took back the price {}',
  add_sql_login: 'Let the SQL login {} submit jobs',
  remove_sql_login: 'Took its rights from the SQL login {}',
};

/** Of these, what they were done to is found among the fields. */
const OF_FIELDS: Record<string, (entry: AuditEntry) => string> = {
  add_key: ({ after, subject }) =>
    `Made the ${text(after['scope'])} key ${text(after['name']) || subject}${after['tenant'] ? ` for ${text(after['tenant'])}` : ''}`,
  revoke_key: ({ before, subject }) => `Revoked the key ${text(before['name']) || subject}`,
  add_price: ({ subject }) => (subject === '*' ? 'Added a price for every pool' : `Added a price for the pool ${subject}`),
  add_mark: ({ after, subject }) => `Marked on the charts (${subject}): ${text(after['text'])}`,
  pause: ({ subject }) => `Paused jobs ${paused(subject)}`,
  resume: ({ subject }) => `Resumed jobs ${paused(subject)}`,
};

/** Fields that the sentence has said already. */
const SAID: Record<string, readonly string[]> = {
  add_key: ['scope', 'name', 'tenant'],
  revoke_key: ['is_valid', 'name'],
  rotate_key: ['id'],
  sign_in: ['lasts'],
  put_schedule: ['overlap', 'catch_up', 'payload_bytes'], // numbers of the store
  add_mark: ['text'],
  pause: ['paused'],
  resume: ['paused'],
  add_price: ['pool'],
  drop_price: ['pool'],
  suspend_tenant: ['state'],
  resume_tenant: ['state'],
  delete_tenant: ['state'],
  restore_tenant: ['state'],
  pause_schedule: ['paused'],
  resume_schedule: ['paused'],
  abort_bulk_action: ['state'],
  add_sql_login: ['tenant'],
  remove_sql_login: ['tenant'],
  drain_worker: ['draining'],
};

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** "type=report.build pool=long" as people say it. */
function paused(subject: string): string {
  return subject
    .split(' ')
    .map((part) => part.replace('=', ' '))
    .map((part) => `${part.startsWith('pool ') ? 'in' : 'of'} the ${part}`)
    .join(' ');
}

/** What was done: "Changed the terms of acme". */
export function sentenceOf(entry: AuditEntry): string {
  const said = OF_FIELDS[entry.action]?.(entry) ?? ACTS[entry.action]?.replace('{}', () => entry.subject);
  if (said !== undefined) return said;
  const words = entry.action.replaceAll('_', ' ');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)} ${entry.subject}`.trim();
}

/** What changed by it: "weight 100 → 200, burst 500". */
export function changeInWords(entry: AuditEntry): string {
  const said = SAID[entry.action] ?? [];
  const isNew = Object.keys(entry.before).length === 0;
  const names = [...new Set([...Object.keys(entry.before), ...Object.keys(entry.after)])]
    .filter((name) => !said.includes(name))
    .filter((name) => !isNew || !isNothing(entry.after[name]));
  const parts = names.map((name) => {
    const [was, is] = [entry.before[name], entry.after[name]];
    if (was === undefined || was === null) return `${nameOf(name)} ${short(name, is)}`;
    return `${nameOf(name)} ${short(name, was)} → ${short(name, is)}`;
  });
  return [entry.detail, parts.join(', ')].filter(Boolean).join(' · ');
}

/** Of what is new, only what it has is told. */
function isNothing(value: unknown): boolean {
  return !value || (Array.isArray(value) && value.length === 0);
}

function nameOf(field: string): string {
  return field.replace(/_(seconds|ms|micros)$/, '').replaceAll('_', ' ');
}

const MOMENT = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/;

function short(name: string, value: unknown): string {
  if (value === undefined || value === null || value === '') return 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number' && name.endsWith('_seconds')) return seconds(value);
  if (typeof value === 'number' && name.endsWith('_ms')) return seconds(value / 1000);
  if (typeof value === 'number' && name.endsWith('_micros')) return money(value);
  if (typeof value === 'string' && MOMENT.test(value)) return moment(value);
  const words = typeof value === 'string' ? value : listed(value);
  return words.length > SHOWN_MAX ? `${words.slice(0, SHOWN_MAX - 1)}…` : words;
}

function listed(value: unknown): string {
  if (Array.isArray(value) && value.every((one) => typeof one !== 'object')) return value.join(', ') || 'none';
  return JSON.stringify(value) ?? '';
}
