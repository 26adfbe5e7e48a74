/** One alarm: what, where, since when, how far over, and what helps. */
import type { JSX } from 'preact';

import { Badge, Tag, Time, withCode } from '../../components';
import { compact, percent, seconds } from '../../format';
import { Link } from '../../router';
import type { Alarm } from '../../types';

export function alarmTone(alarm: Alarm): 'bad' | 'warn' {
  return alarm.severity === 'critical' ? 'bad' : 'warn';
}

export function worstFirst(alarms: readonly Alarm[]): Alarm[] {
  const rank = (alarm: Alarm): number => (alarm.severity === 'critical' ? 0 : 1);
  return [...alarms].sort(
    (a, b) => rank(a) - rank(b) || a.since.localeCompare(b.since) || a.name.localeCompare(b.name),
  );
}

/** Ages are told as times, parts of a whole by the hundred, paces by how often the usual one. */
function valueWords(alarm: Alarm, value: number): string {
  if (/_(AGE|LAG)(_|$)/.test(alarm.name)) return seconds(value);
  if (/^DISK_|_RATE$/.test(alarm.name)) return percent(value);
  return alarm.name.endsWith('_OVER_BASELINE') ? `${compact(value)} ×` : compact(value);
}

export function Severity({ of }: { of: Pick<Alarm, 'severity'> }): JSX.Element {
  const isCritical = of.severity === 'critical';
  return <Badge tone={isCritical ? 'bad' : 'warn'}>{isCritical ? 'Critical' : 'Warning'}</Badge>;
}

export function AlarmRow({ alarm, isShort }: { alarm: Alarm; isShort?: boolean }): JSX.Element {
  return (
    <article class={`alarm alarm-${alarmTone(alarm)}`}>
      <div class="alarm-head">
        <Severity of={alarm} />
        <b class="break">{alarm.text}</b>
        {alarm.subject && <Tag>{alarm.subject}</Tag>}
        <span class="alarm-since">
          <Time at={alarm.since} relative />
        </span>
      </div>
      {!isShort && (
        <div class="alarm-more">
          <p class="break">{withCode(alarm.runbook)}</p>
          <p class="alarm-small">
            <code>{alarm.name}</code>
            <span class="num">
              {' '}
              · at {valueWords(alarm, alarm.value)}, raised above {valueWords(alarm, alarm.threshold)}
            </span>
            {alarm.link.startsWith('/ui') && (
              <>
                {' · '}
                <Link to={alarm.link}>Show</Link>
              </>
            )}
          </p>
        </div>
      )}
    </article>
  );
}
