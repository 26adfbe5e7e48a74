/** Small things that stand inside others: badges, times, spans, numbers. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { UNKNOWN, ago, asDate, moment, seconds as inWords, utc } from '../format';

export type Tone = 'ok' | 'warn' | 'bad' | 'muted' | 'info';

/** A state in a word. Each tone has a shape of its own, for those who see no colours. */
export function Badge(props: { tone: Tone; title?: string; children: ComponentChildren }): JSX.Element {
  return (
    <span class={`badge badge-${props.tone}`} title={props.title}>
      {props.children}
    </span>
  );
}

/** A word without a state: a pool, a type, a tag. */
export function Tag(props: { children: ComponentChildren }): JSX.Element {
  return <span class="tag">{props.children}</span>;
}

/** What stands between backticks is code; all of it is text. */
export function withCode(text: string): ComponentChildren {
  return text.split('`').map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part));
}

/** A moment in the reader's zone, with UTC on hover; `relative`: how long ago. */
export function Time(props: {
  at: string | number | null | undefined;
  relative?: boolean;
}): JSX.Element {
  const at = props.at;
  const [, tick] = useState(0);
  useEffect(() => {
    if (!props.relative) return undefined;
    const timer = setInterval(() => tick((n) => n + 1), 5000);
    return () => clearInterval(timer);
  }, [props.relative]);
  if (at === null || at === undefined || at === '') return <span class="faint">{UNKNOWN}</span>;
  const when = asDate(at);
  if (Number.isNaN(when.getTime())) return <span>{String(at)}</span>;
  const title = props.relative ? `${moment(at)} · ${utc(at)}` : utc(at);
  return (
    <time class="time" dateTime={when.toISOString()} title={title}>
      {props.relative ? ago(at) : moment(at)}
    </time>
  );
}

export function Duration(props: { seconds: number | null | undefined }): JSX.Element {
  const n = props.seconds;
  if (n === null || n === undefined) return <span class="faint">{UNKNOWN}</span>;
  return (
    <span class="num" title={`${n} seconds`}>
      {inWords(n)}
    </span>
  );
}

/** One number with its name; the tone says whether it is well, the hint why. */
export function Stat(props: {
  label: string;
  value: ComponentChildren;
  unit?: string;
  hint?: ComponentChildren;
  tone?: Tone;
  title?: string;
  children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class={`stat${props.tone ? ` stat-${props.tone}` : ''}`} title={props.title}>
      <div class="stat-label">{props.label}</div>
      <div class="stat-value">
        {props.value}
        {props.unit && <span class="stat-unit"> {props.unit}</span>}
      </div>
      {props.hint && <div class="stat-hint">{props.hint}</div>}
      {props.children}
    </div>
  );
}

/** A part of a whole as a bar, with an optional mark; `label` says it in words. */
export function Meter(props: {
  part: number | null | undefined;
  mark?: number | null;
  tone?: Tone;
  label: string;
}): JSX.Element {
  const part = clamped(props.part ?? 0);
  return (
    <span class={`meter meter-${props.tone ?? 'info'}`} role="img" aria-label={props.label} title={props.label}>
      <span class="meter-fill" style={{ width: `${part * 100}%` }} />
      {props.mark !== null && props.mark !== undefined && (
        <span class="meter-mark" style={{ left: `${clamped(props.mark) * 100}%` }} />
      )}
    </span>
  );
}

function clamped(part: number): number {
  return Number.isFinite(part) ? Math.min(1, Math.max(0, part)) : 0;
}

/** JSON as text, set out and foldable by height only. */
export function Json(props: { value: unknown; label?: string }): JSX.Element {
  const text =
    props.value === undefined ? UNKNOWN : (JSON.stringify(props.value, null, 2) ?? UNKNOWN);
  return (
    <pre class="json" tabIndex={0} role="group" aria-label={props.label ?? 'JSON'}>
      {text}
    </pre>
  );
}

/** Text as it was written, such as a stack trace or a command. */
export function Code(props: { text: string; label?: string }): JSX.Element {
  return (
    <pre class="json" tabIndex={0} role="group" aria-label={props.label ?? 'Text'}>
      {props.text}
    </pre>
  );
}
