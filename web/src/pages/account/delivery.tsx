/** One delivery closer: its tries, and the body that is sent, made from the event in the log. */
import type { JSX } from 'preact';

import { useLoad, withQuery } from '../../api';
import { Badge, Facts, Json, Loads, Time } from '../../components';
import { count } from '../../format';
import type { Delivery, EventPage, TenantEvent } from '../../types';
import { stateTone } from '../parts/words';

export function DeliveryDetail({ delivery: one }: { delivery: Delivery }): JSX.Element {
  return (
    <>
      <Facts
        items={[
          ['State', <Badge tone={stateTone(one.state)}>{one.state}</Badge>],
          ['webhook-id', <span class="mono break">{one.id}</span>],
          ['Calls so far', count(one.attempts)],
          ['Written down', <Time at={one.created_at} />],
          ['Last call', <Time at={one.last_attempt_at} />],
          ['Last reply', one.last_status ?? 'none'],
          ['Next try', one.next_attempt_at ? <Time at={one.next_attempt_at} /> : 'none'],
        ]}
      />
      {one.last_error && <p class="break">{one.last_error}</p>}
      <h3 class="small-title">Body</h3>
      {one.position === null ? (
        <p class="muted">A test: its event is in no log.</p>
      ) : (
        <Sent body={one.body ?? ''} position={one.position} />
      )}
    </>
  );
}

/** What is sent, if the server told all of it; else it is made from the event in the log. */
function Sent({ body, position }: { body: string; position: number }): JSX.Element {
  try {
    return <Json value={JSON.parse(body)} label="Body" />;
  } catch {
    return <Body position={position} />;
  }
}

function Body({ position }: { position: number }): JSX.Element {
  const path = withQuery('/v1/events', { after: position - 1, limit: 1 });
  const found = useLoad<EventPage>(path);
  return (
    <Loads of={found} lines={3}>
      {({ events }) => {
        const event = events.find((one) => one.position === position);
        return event ? (
          <Json value={bodyOf(event)} label="Body" />
        ) : (
          <p class="muted">Event {count(position)} is no longer in the log: what was sent is not known any more.</p>
        );
      }}
    </Loads>
  );
}

/** As Standard Webhooks has it; see core/webhooks/messages.py. */
function bodyOf(event: TenantEvent): unknown {
  const { kind, at, data, position, job, subject } = event;
  return { type: kind, timestamp: at, data: { ...data, position, job, subject } };
}
