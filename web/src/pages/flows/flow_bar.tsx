/** How the jobs of a flow stand: one bar of what succeeded, died, was cancelled and is to come. */
import type { JSX } from 'preact';

import { count, plural } from '../../format';
import type { Flow } from '../../types';

const PARTS = [
  ['succeeded', 'ok', 'succeeded'],
  ['failed', 'bad', 'dead'],
  ['cancelled', 'muted', 'cancelled'],
] as const;

export function flowInWords(flow: Flow): string {
  const ended = PARTS.filter(([name]) => flow[name] > 0).map(([name, , word]) => `${count(flow[name])} ${word}`);
  const left = leftOf(flow);
  const open = left > 0 ? [`${count(left)} to come`] : [];
  return [...ended, ...open].join(', ') || 'none yet';
}

/** Not ended yet; more may be added while it is not complete. */
export function leftOf(flow: Flow): number {
  return Math.max(0, flow.total - flow.succeeded - flow.failed - flow.cancelled);
}

export function FlowBar({ flow }: { flow: Flow }): JSX.Element {
  const words = `${plural(flow.total, 'job')}: ${flowInWords(flow)}`;
  return (
    <div class="far">
      <span class="meter flow-bar" role="img" aria-label={words} title={words}>
        {PARTS.map(([name, tone]) => (
          <span
            key={name}
            class={`flow-part flow-${tone}`}
            style={{ width: `${flow.total > 0 ? (flow[name] / flow.total) * 100 : 0}%` }}
          />
        ))}
      </span>
      <span class="stat-hint">
        {plural(flow.total, 'job')}
        {!flow.complete && ', more may come'}: {flowInWords(flow)}
      </span>
    </div>
  );
}
