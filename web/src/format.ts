/** Numbers, times and sizes in words for people. Unknown is always a dash, never a zero. */

export const UNKNOWN = '–';

type Maybe = number | null | undefined;

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const TENTHS = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const FINE = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

function isKnown(n: Maybe): n is number {
  return n !== null && n !== undefined && Number.isFinite(n);
}

/** All digits: 1,234,567. */
export function count(n: Maybe): string {
  return isKnown(n) ? WHOLE.format(n) : UNKNOWN;
}

/** At a glance: 12, 4.2k, 1.3M. */
export function compact(n: Maybe): string {
  if (!isKnown(n)) return UNKNOWN;
  const size = Math.abs(n);
  if (size < 1) return n === 0 ? '0' : FINE.format(n);
  if (size < 9_999.5) return Number.isInteger(n) ? WHOLE.format(n) : FINE.format(n);
  for (const [unit, name] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']] as const) {
    if (size >= unit * 0.9995) return `${FINE.format(n / unit)}${name}`;
  }
  return WHOLE.format(n);
}

/** A rate, to be followed by /s: 0, 0.25, 9.9, 1,240. */
export function rate(n: Maybe): string {
  if (!isKnown(n)) return UNKNOWN;
  if (n === 0) return '0';
  if (Math.abs(n) < 0.01) return '<0.01';
  return Math.abs(n) < 100 ? FINE.format(n) : compact(Math.round(n));
}

/** A span of time: 340 µs, 12 ms, 4.2 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
export function seconds(n: Maybe): string {
  if (!isKnown(n)) return UNKNOWN;
  const size = Math.abs(n);
  if (size === 0) return '0 s';
  if (size < 0.001) return `${FINE.format(n * 1e6)} µs`;
  if (size < 0.9995) return `${FINE.format(n * 1e3)} ms`;
  if (size < 59.95) return `${FINE.format(n)} s`;
  const whole = Math.round(size);
  const sign = n < 0 ? '−' : '';
  if (whole < 3600) return sign + two(whole, 60, 'min', 1, 's');
  if (whole < 86_400) return sign + two(whole, 3600, 'h', 60, 'min');
  return sign + two(whole, 86_400, 'd', 3600, 'h');
}

/** The same where there is little room: one unit only, 23 min, 1.5 h. */
export function brief(n: Maybe): string {
  if (!isKnown(n) || Math.abs(n) < 59.95) return seconds(n);
  for (const [unit, name] of [[86_400, 'd'], [3600, 'h'], [60, 'min']] as const) {
    if (Math.abs(n) >= unit) {
      const parts = n / unit;
      return `${Math.abs(parts) < 10 ? FINE.format(Math.round(parts * 10) / 10) : WHOLE.format(parts)} ${name}`;
    }
  }
  return seconds(n);
}

function two(whole: number, big: number, bigName: string, small: number, name: string): string {
  const rest = Math.floor((whole % big) / small);
  return `${Math.floor(whole / big)} ${bigName}${rest ? ` ${rest} ${name}` : ''}`;
}

export function bytes(n: Maybe): string {
  if (!isKnown(n)) return UNKNOWN;
  for (const [unit, name] of [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [1024, 'KiB']] as const) {
    if (n >= unit) return `${FINE.format(n / unit)} ${name}`;
  }
  return `${WHOLE.format(n)} B`;
}

/** Of a part between 0 and 1: 38 %. */
export function percent(part: Maybe): string {
  if (!isKnown(part)) return UNKNOWN;
  const n = part * 100;
  if (n !== 0 && Math.abs(n) < 0.05) return '<0.1 %';
  return `${(Math.abs(n) < 9.95 ? TENTHS : WHOLE).format(n)} %`;
}

/** Money in its smallest unit is not known here: what the server says is shown as it is. */
export function money(amount: string | number, currency: string): string {
  const n = typeof amount === 'string' ? Number(amount) : amount;
  if (!Number.isFinite(n)) return `${amount} ${currency}`;
  const text = n.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 6 });
  return `${text} ${currency}`;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function asDate(at: string | number | Date): Date {
  return typeof at === 'number' ? new Date(at * 1000) : new Date(at);
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const DAY_OF_YEAR = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
});

/** In the reader's own zone: the clock for today, else the day too. */
export function moment(at: string | number | Date, now = new Date()): string {
  const when = asDate(at);
  if (Number.isNaN(when.getTime())) return UNKNOWN;
  const clock = CLOCK.format(when);
  if (when.toDateString() === now.toDateString()) return clock;
  const day = (when.getFullYear() === now.getFullYear() ? DAY : DAY_OF_YEAR).format(when);
  return `${day}, ${clock}`;
}

/** For hovering: the same moment in UTC. */
export function utc(at: string | number | Date): string {
  const when = asDate(at);
  if (Number.isNaN(when.getTime())) return '';
  return `${when.toISOString().replace('T', ' ').replace('.000Z', '').replace('Z', '')} UTC`;
}

/** 12 s ago, in 3 min. */
export function ago(at: string | number | Date, now = Date.now()): string {
  const passed = (now - asDate(at).getTime()) / 1000;
  if (Number.isNaN(passed)) return UNKNOWN;
  if (Math.abs(passed) < 1) return 'now';
  const text = seconds(Math.round(Math.abs(passed)));
  return passed < 0 ? `in ${text}` : `${text} ago`;
}
