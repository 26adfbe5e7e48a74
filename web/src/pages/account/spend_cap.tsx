/** What may be spent this month, and where that stands. */
import type { JSX } from 'preact';

import { useLoad } from '../../api';
import { Badge, Card, Loads, Meter, Time } from '../../components';
import { percent, seconds } from '../../format';
import type { SpendCap } from '../parts/shapes';
import { money, type Tone } from '../parts/words';

const STAGES: Record<SpendCap['stage'], { tone: Tone; words: string }> = {
  none: { tone: 'muted', words: 'There is no cap: what is used is billed.' },
  below: { tone: 'ok', words: 'Well below the cap.' },
  near: { tone: 'warn', words: 'Four fifths or more are spent.' },
  reached: { tone: 'bad', words: 'All of it is spent. When the grace is over, no more jobs start.' },
  paused: { tone: 'bad', words: 'The grace is over: jobs are accepted and wait until the cap is raised or the month ends.' },
};

export function SpendCapCard(): JSX.Element {
  const found = useLoad<SpendCap>('/v1/spend-cap');
  return (
    <Card title="Spend cap">
      <Loads of={found}>{(cap) => <Standing cap={cap} />}</Loads>
    </Card>
  );
}

function Standing(props: { cap: SpendCap }): JSX.Element {
  const { cap } = props;
  const stage = STAGES[cap.stage];
  if (cap.cap_micros === null || cap.spent_micros === null) {
    return (
      <p>
        <Badge tone={stage.tone}>no cap</Badge> {stage.words}
      </p>
    );
  }
  const part = cap.cap_micros > 0 ? cap.spent_micros / cap.cap_micros : 1;
  const words = `${money(cap.spent_micros)} of ${money(cap.cap_micros)} this month`;
  return (
    <>
      <p>
        <Badge tone={stage.tone}>{cap.stage}</Badge> <strong class="num">{words}</strong>{' '}
        <span class="muted">({percent(part)})</span>
      </p>
      <Meter part={part} tone={stage.tone} label={words} />
      <p class="muted">
        {stage.words} {cap.reached_at && (
          <>
            Reached <Time at={cap.reached_at} relative />.
          </>
        )}{' '}
        {cap.grace_seconds !== null && `The grace is ${seconds(cap.grace_seconds)}. `}
        An operator sets the cap.
      </p>
    </>
  );
}
