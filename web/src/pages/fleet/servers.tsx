/** The servers: who owns how many shards, since when, and when each was last heard. */
import type { JSX } from 'preact';

import { useLoad } from '../../api';
import { Badge, Card, type Column, Duration, Empty, Loads, Meter, Table, Time, type Tone } from '../../components';
import { count, plural } from '../../format';
import type { ListedServer, ServerList } from '../../types';

const EVERY_MS = 5000;
const LATE_SECONDS = 3; // servers speak every second or so

const STATES: Record<string, [Tone, string, string]> = {
  live: ['ok', 'Live', 'It owns shards, or waits for some.'],
  standby: ['muted', 'Standby', 'The processes beside it own all shards; it helps when they are busy or end.'],
  answers_only: ['muted', 'Answers only', 'By its settings it owns no shards.'],
  leaving: ['info', 'Leaving', 'It is about to stop, and hands its shards over.'],
  standing_in: ['warn', 'Stands in', 'No owner is left: it gives jobs out itself, tenants in turn.'],
  gone: ['muted', 'Gone', 'Its heartbeat has run out; others own its shards.'],
};

/** Nobody owns a shard that a tenant is moved to: so many of those without an owner hold up nothing. */
export function Servers({ moving }: { moving: number }): JSX.Element {
  const found = useLoad<ServerList>('/v1/servers', { tenant: null, every: EVERY_MS });
  return (
    <Card title="Servers" about={found.data && inWords(found.data, moving)} flush>
      <Loads of={found} lines={3}>
        {(all) => (
          <Table
            label="Servers"
            rows={all.items}
            columns={columns(all.shards)}
            rowKey={(one) => one.name}
            tone={(one) => (one.state === 'gone' ? 'muted' : isLate(one) ? 'warn' : undefined)}
            empty={<Empty title="No server was heard of" text="They are listed from their first heartbeat on." />}
          />
        )}
      </Loads>
    </Card>
  );
}

function inWords(all: ServerList, moving: number): string {
  const owners = all.items.filter((one) => one.shards > 0).length;
  const free = all.shards - all.shards_owned;
  const awaited = Math.min(moving, free);
  const words = [`${plural(owners, 'server')} ${owners === 1 ? 'owns' : 'own'} ${count(all.shards_owned)} of ${plural(all.shards, 'shard')}`];
  if (awaited > 0) words.push(`${count(awaited)} is for a tenant that moves there`);
  if (free > awaited) words.push(`${count(free - awaited)} without an owner: what is in there waits`);
  return `${words.join('; ')}.`;
}

function isLate(one: ListedServer): boolean {
  return one.state !== 'gone' && (one.heartbeat_age_seconds ?? 0) > LATE_SECONDS;
}

function columns(shards: number): Column<ListedServer>[] {
  return [
    {
      name: 'server',
      title: 'Server',
      cell: (one) => (
        <>
          <b class="break">{one.name}</b>
          <div class="muted break">
            {one.url || 'reached by nobody'}
            {one.answers && ' · answers this page'}
          </div>
        </>
      ),
    },
    { name: 'state', title: 'State', cell: (one) => <State server={one} /> },
    { name: 'shards', title: 'Shards', cell: (one) => <Shards server={one} of={shards} /> },
    {
      name: 'term',
      title: 'Newest term',
      numeric: true,
      minor: true,
      cell: (one) => count(one.newest_term),
    },
    {
      name: 'heard',
      title: 'Heartbeat',
      numeric: true,
      minor: true,
      cell: (one) => <Duration seconds={one.heartbeat_age_seconds} />,
    },
    { name: 'since', title: 'There since', minor: true, cell: (one) => (one.since ? <Time at={one.since} /> : '–') },
  ];
}

function State({ server }: { server: ListedServer }): JSX.Element {
  const [tone, word, title] = STATES[server.state] ?? ['muted', server.state, ''];
  return (
    <Badge tone={tone} title={title}>
      {word}
    </Badge>
  );
}

function Shards(props: { server: ListedServer; of: number }): JSX.Element {
  const { shards, shards_open: open } = props.server;
  const closed = shards - open;
  return (
    <span class="server-shards">
      <Meter part={props.of ? shards / props.of : 0} label={`${shards} of ${props.of} shards`} />
      <span class="num">{count(shards)}</span>
      {closed > 0 && <span class="muted">{count(closed)} not open yet</span>}
    </span>
  );
}
