/** Why a job is where it is: the reason in a sentence, its place in line, when it may start. */
import type { JSX } from 'preact';

import { useLoad } from '../../api';
import { Badge, Card, Loads, Meter, Stat, Time } from '../../components';
import { ago, count, percent, seconds } from '../../format';
import type { Explained } from '../../types';
import { ordinal, type Tone } from '../parts/words';

const EVERY_MS = 2000;
/** Reasons that pass by themselves; anything else needs somebody. */
const PASSING = ['starting', 'slot', 'fair_share', 'not_due', 'rate', 'running', 'finished', 'after_others', 'moving', 'held'];

export function WhyCard(props: { id: string }): JSX.Element {
  const found = useLoad<Explained>(`/v1/jobs/${props.id}/explain`, { every: EVERY_MS });
  return (
    <Card title="Why is it here?">
      <Loads of={found}>{(why) => <Why found={why} />}</Loads>
    </Card>
  );
}

function toneOf(reason: string): Tone {
  if (reason === 'running') return 'ok';
  return PASSING.includes(reason) ? 'info' : 'warn';
}

function Why(props: { found: Explained }): JSX.Element {
  const { found } = props;
  const waits = found.state === 'queued' || found.state === 'scheduled';
  return (
    <div class="list">
      <p class="why-reason">
        <Badge tone={toneOf(found.reason)}>{found.reason.replaceAll('_', ' ')}</Badge>{' '}
        <span>{found.detail}</span>
      </p>
      {waits && (
        <div class="stats stats-few">
          <Stat
            label="Place in line"
            value={placeWords(found)}
            hint="Among your jobs of the same type, priority and fair key."
          />
          <Stat label="Expected start" value={startWords(found)} hint={spreadWords(found)} />
          <Stat
            label="Tenants ahead"
            value={count(found.tenants_ahead)}
            hint="Tenants whose turn comes first, about."
          />
          <Stat
            label="Your slots"
            value={`${count(found.running)} of ${count(Math.round(found.fair_slots * 10) / 10)}`}
            hint="Jobs of yours that run in this pool, of the slots you may expect while all others work."
          />
        </div>
      )}
      {waits && found.start && (
        <p class="muted">
          About <Time at={found.start.likely_at} />; runs of this type take about{' '}
          {seconds(found.run_seconds)}. An estimate, no promise.
        </p>
      )}
      {found.share && found.share.entitled_slot_seconds > 0 && <Share share={found.share} />}
    </div>
  );
}

function placeWords(found: Explained): string {
  if (found.position === null) return 'not in line';
  return found.position_is_exact ? ordinal(found.position) : `beyond ${count(found.position)}`;
}

function startWords(found: Explained): string {
  return found.start ? ago(found.start.likely_at) : 'nobody can say';
}

function spreadWords(found: Explained): string {
  if (!found.start) return 'It starts when what holds it is gone.';
  return `Hardly before ${ago(found.start.earliest_at)}, hardly after ${ago(found.start.latest_at)}.`;
}

function Share(props: { share: NonNullable<Explained['share']> }): JSX.Element {
  const { received_slot_seconds: got, entitled_slot_seconds: due, window_seconds } = props.share;
  const top = Math.max(got, due, 0.001);
  const part = due > 0 ? `, ${percent(got / due)} of it` : '';
  const words = `Slot-time in the last ${seconds(window_seconds)}: ${seconds(got)} received, entitled to ${seconds(due)}${part}.`;
  return (
    <div class="share">
      <span>{words}</span>
      <Meter part={got / top} mark={due / top} label={words} />
    </div>
  );
}
