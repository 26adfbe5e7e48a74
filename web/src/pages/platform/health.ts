/** What a number means: well, to be watched, or bad. One place, so that pages agree. */
import type { Tone } from '../../components';
import type { Known, PoolSight } from '../../types';

/** The oldest waiting job against what the pool promises. */
export function ageTone(pool: PoolSight): Tone {
  const age = pool.oldest_runnable_age_seconds;
  if (age === null) return pool.queued ? 'muted' : 'ok'; // no job waits that could run
  if (pool.slo_seconds === null) return 'muted';
  if (age > 10 * pool.slo_seconds) return 'bad';
  return age > pool.slo_seconds ? 'warn' : 'ok';
}

export function ageWord(pool: PoolSight): string {
  if (pool.oldest_runnable_age_seconds === null && pool.queued) return 'None can run';
  switch (ageTone(pool)) {
    case 'ok':
      return pool.oldest_runnable_age_seconds === null ? 'No line' : 'Within target';
    case 'warn':
      return 'Late';
    case 'bad':
      return 'Far too late';
    default:
      return 'Not known';
  }
}

/** Near one, a little more work makes a long line. */
export function loadTone(part: Known): Tone {
  if (part === null) return 'muted';
  if (part >= 0.95) return 'bad';
  return part >= 0.8 ? 'warn' : 'ok';
}

export function heldCount(pool: PoolSight): number {
  return Object.values(pool.held ?? {}).reduce<number>((sum, n) => sum + (n ?? 0), 0);
}

/** Less than nine tenths of what it is entitled to, while it has work, deserves a look. */
export function shareTone(received: Known, entitled: Known, queued: Known): Tone {
  if (received === null || entitled === null || !queued) return 'muted';
  return received < entitled * 0.9 ? 'warn' : 'ok';
}
