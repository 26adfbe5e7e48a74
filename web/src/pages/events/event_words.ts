/** Events in words: the sentence that came with one, or what its facts say. */
import { moment, seconds } from '../../format';
import type { TenantEvent } from '../../types';
import type { Tone } from '../parts/words';

export const GROUPS = [
  { value: '', label: 'every kind' },
  { value: 'job.*', label: 'jobs' },
  { value: 'job.dead', label: 'jobs that died' },
  { value: 'job.late', label: 'jobs that were late' },
  { value: 'circuit.*', label: 'circuits' },
  { value: 'quarantine.*', label: 'quarantines' },
  { value: 'recycling.*', label: 'killed processes' },
  { value: 'checkpoint.*', label: 'checkpoints' },
  { value: 'pool.*,type.*', label: 'pools and types' },
  { value: 'spend.*', label: 'spending' },
  { value: 'webhook.*', label: 'webhooks' },
  { value: 'outbox.*', label: 'outboxes' },
];

const TONES: Record<string, Tone> = {
  'job.succeeded': 'ok',
  'job.dead': 'bad',
  'job.retrying': 'warn',
  'job.expired': 'warn',
  'job.late': 'warn',
  'circuit.opened': 'bad',
  'circuit.closed': 'ok',
  'quarantine.imposed': 'bad',
  'quarantine.lifted': 'ok',
  'recycling.throttled': 'bad',
  'recycling.restored': 'ok',
  'checkpoint.lost': 'bad',
  'spend.near': 'warn',
  'spend.reached': 'bad',
  'spend.paused': 'bad',
  'spend.resumed': 'ok',
  'webhook.disabled': 'bad',
  'webhook.behind': 'warn',
  'outbox.refused': 'bad',
};

export function eventTone(kind: string): Tone {
  return TONES[kind] ?? (kind.startsWith('job.') ? 'info' : 'muted');
}

/** "attempt 2 in long, ran 4.2 s" where no sentence came with it. */
export function eventWords(event: TenantEvent): string {
  const { detail, state, attempt, pool, ran_ms, due_at } = event.data;
  if (typeof detail === 'string' && detail) return detail;
  const words = [
    typeof state === 'string' && state,
    typeof attempt === 'number' && attempt > 0 && `attempt ${attempt}`,
    typeof pool === 'string' && `in ${pool}`,
    typeof ran_ms === 'number' && `ran ${seconds(ran_ms / 1000)}`,
    typeof due_at === 'string' && `due ${moment(due_at)}`,
  ];
  return words.filter(Boolean).join(', ');
}
