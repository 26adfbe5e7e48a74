/** Moves of tenants between shards: where each goes, how far it is, and what it waits for. */
import type { JSX } from 'preact';

import { useLoad } from '../../api';
import { Badge, Card, type Column, Table, Time, type Tone } from '../../components';
import { count } from '../../format';
import { Link } from '../../router';
import type { Move, ShardList } from '../../types';

const EVERY_MS = 5000;
const SHOWN_MAX = 5;

const STATES: Record<Move['state'], [Tone, string, string]> = {
  draining: ['info', 'Draining', 'Its runs are waited for; nothing has been moved yet.'],
  moving: ['info', 'Moving', 'Its rows go to the other shard, some at a time.'],
  returning: ['warn', 'Returning', 'It was cancelled, and what was moved goes back.'],
  done: ['ok', 'Moved', 'All of it is in the other shard.'],
  called_off: ['muted', 'Called off', 'All is as it was before.'],
};

/** Those under way, and the last that are over; nothing where no tenant was ever moved. */
export function Moves({ moves }: { moves: Move[] }): JSX.Element | null {
  if (moves.length === 0) return null;
  return (
    <Card title="Tenants that move" about="Nothing of a tenant starts while it moves; others go on." flush>
      <Table
        label="Moves of tenants"
        rows={moves.slice(0, SHOWN_MAX)}
        columns={COLUMNS}
        rowKey={(one) => `${one.tenant} ${one.asked_at}`}
        tone={(one) => (one.finished_at ? 'muted' : undefined)}
        empty={null}
      />
    </Card>
  );
}

/** Of a tenant that is on its way, how far it is. */
export function MoveOf(props: { tenant: string; to: number }): JSX.Element {
  const found = useLoad<ShardList>('/v1/shards', { tenant: null, every: EVERY_MS });
  const move = found.data?.moves.find((one) => one.tenant === props.tenant && !one.finished_at);
  return (
    <span class="row" role="status">
      {move ? <MoveState move={move} /> : <Badge tone="info">Moving</Badge>}
      <span class="break">
        moves to shard {props.to}: nothing of it starts until that is over. {move?.note}
      </span>
    </span>
  );
}

const COLUMNS: Column<Move>[] = [
  {
    name: 'tenant',
    title: 'Tenant',
    cell: (one) => <Link to={`/ui/tenants/${encodeURIComponent(one.tenant)}`}>{one.tenant}</Link>,
  },
  {
    name: 'state',
    title: 'State',
    wide: true,
    cell: (one) => (
      <>
        <MoveState move={one} />
        {one.note && <div class="muted break">{one.note}</div>}
      </>
    ),
  },
  { name: 'way', title: 'From, to', cell: (one) => `${one.from_shard} → ${one.to_shard}` },
  { name: 'rows', title: 'Rows moved', numeric: true, minor: true, cell: (one) => count(one.rows_moved) },
  { name: 'asked', title: 'Asked for', minor: true, cell: (one) => <Time at={one.asked_at} relative /> },
];

function MoveState({ move }: { move: Move }): JSX.Element {
  const [tone, word, title] = STATES[move.state];
  return (
    <Badge tone={tone} title={title}>
      {word}
    </Badge>
  );
}
