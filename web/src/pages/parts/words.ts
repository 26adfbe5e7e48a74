/** Small decisions of these pages without any markup: tones, words for numbers, moments. */
import { count, seconds } from '../../format';
import type { BulkFilter, Job, JobError, JsonValue } from '../../types';
import { FINAL_STATES } from './states';

export type Tone = 'ok' | 'warn' | 'bad' | 'muted' | 'info';

const TONES: Record<string, Tone> = {
  queued: 'info',
  running: 'info',
  succeeded: 'ok',
  delivered: 'ok',
  done: 'ok',
  fired: 'ok',
  dead: 'bad',
  failed: 'bad',
  lost: 'bad',
  expired: 'warn',
  skipped: 'warn',
  aborted: 'warn',
};

/** Of a job, a run, a delivery or an action. */
export function stateTone(state: string): Tone {
  return TONES[state] ?? 'muted';
}

export function isFinal(state: string): boolean {
  return FINAL_STATES.some((one) => one === state);
}

export function ordinal(n: number): string {
  const tens = n % 100;
  const ending = tens > 10 && tens < 14 ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th');
  return `${count(n)}${ending}`;
}

/** A filter in words, for lists of what was done to many. */
export function filterWords(filter: BulkFilter): string {
  const found = Object.entries(filter)
    .filter(([, value]) => value)
    .map(([name, value]) => `${name} ${String(value)}`);
  return found.length ? found.join(', ') : 'no filter: all of them';
}

/** What went wrong, on one line. */
export function errorLine(error: JobError | null): string {
  if (!error) return 'No error was recorded.';
  const said = [error.type, error.message].filter(Boolean).join(': ');
  return said || error.failure || error.reason || 'No words were recorded.';
}

export interface Progress {
  done: number;
  total: number | null;
  text: string;
}

/** The SDK says `{"done", "total", "text"}`; a worker written by hand may say anything. */
export function progressOf(said: JsonValue): Progress | null {
  if (typeof said !== 'object' || said === null || Array.isArray(said)) return null;
  const { done, total, text } = said;
  if (typeof done !== 'number') return null;
  return {
    done,
    total: typeof total === 'number' && total > 0 ? total : null,
    text: typeof text === 'string' ? text : '',
  };
}

/** How long the last run waited after the job was due; null before it began, and between two. */
export function waitedSeconds(job: Job): number | null {
  if (!job.started_at) return null;
  const waited = (Date.parse(job.started_at) - Date.parse(job.execute_at ?? job.created_at)) / 1000;
  return waited < 0 ? null : waited; // it is due again, after the run that began last
}

/** Of one that runs, until now: nobody has measured it yet. */
export function ranSeconds(job: Job): number | null {
  if (job.state !== 'running' || !job.started_at) return job.ran_seconds;
  return Math.max((Date.now() - Date.parse(job.started_at)) / 1000, 0);
}

/** Whole millionths of the currency, as people write money; the API does not name the currency. */
export function money(micros: number | null): string {
  if (micros === null) return '–';
  return (micros / 1e6).toLocaleString('en', {
    minimumFractionDigits: 2,
    maximumFractionDigits: 6,
  });
}

/** Money as somebody writes it, in whole millionths; null: it is none. */
export function microsOf(text: string): number | null {
  const found = /^\s*(\d{1,12})(?:[.](\d{1,6}))?\s*$/.exec(text);
  if (found === null) return null;
  const micros = Number(found[1]) * 1e6 + Number((found[2] ?? '').padEnd(6, '0'));
  return Number.isSafeInteger(micros) ? micros : null;
}

/** Whole microseconds of slot-time, in words. */
export function slotTime(us: number | undefined): string {
  return seconds(us === undefined ? undefined : us / 1e6);
}

/** What an `<input type="datetime-local">` holds, in the reader's zone, as the API wants it. */
export function momentOf(local: string): string {
  const found = new Date(local);
  return Number.isNaN(found.getTime()) ? '' : found.toISOString();
}

/** The other way. */
export function localOf(moment: string | null): string {
  const found = new Date(moment ?? '');
  if (Number.isNaN(found.getTime())) return '';
  return new Date(found.getTime() - found.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** A text that must be a JSON object, or why it is none. */
export function objectOf(text: string): { value: Record<string, JsonValue> } | { why: string } {
  try {
    const value: unknown = JSON.parse(text.trim() || '{}');
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { value: value as Record<string, JsonValue> };
    }
    return { why: 'Arguments are a JSON object, such as {"name": "Ada"}.' };
  } catch (error) {
    return { why: `This is no JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
