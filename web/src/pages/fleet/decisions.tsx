/** What was decided about workers, newest first, each with its reason and the numbers behind it. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { usePages, withQuery } from '../../api';
import { Badge, Card, type Column, Dialog, Empty, Facts, Json, LoadsIfThere, Select, Table, Tag, Time, type Tone } from '../../components';
import { count } from '../../format';
import { useQuery } from '../../router';
import type { ScaledPool, ScalingDecision } from '../../types';

const CODES: Record<string, [Tone, string]> = {
  BACKLOG: ['warn', 'Backlog'],
  OLDEST_AGE: ['bad', 'Oldest job'],
  IDLE: ['muted', 'Idle'],
  MINIMUM: ['info', 'Lower bound'],
  MAXIMUM: ['warn', 'Upper bound'],
  OVERRIDE: ['info', 'Override'],
};

interface Reply {
  items: ScalingDecision[];
  next_cursor: string | null;
}

function Code({ code }: { code: string }): JSX.Element {
  const [tone, word] = CODES[code] ?? ['muted', code.toLowerCase().replaceAll('_', ' ')];
  return <Badge tone={tone}>{word}</Badge>;
}

function Change({ one }: { one: ScalingDecision }): JSX.Element {
  return (
    <span class="nowrap num">
      {count(one.from_workers)} → <b>{count(one.to_workers)}</b>
    </span>
  );
}

const COLUMNS: Column<ScalingDecision>[] = [
  { name: 'when', title: 'When', cell: (one) => <Time at={one.at} /> },
  { name: 'pool', title: 'Pool', minor: true, cell: (one) => <b class="break">{one.pool}</b> },
  { name: 'change', title: 'Workers', cell: (one) => <Change one={one} /> },
  {
    name: 'why',
    title: 'Because of',
    wide: true,
    cell: (one) => (
      <div class="decision-why">
        <span>
          <b class="narrow-only">{one.pool} </b>
          <Code code={one.code} /> {one.dry_run && <Tag>dry run</Tag>}
        </span>
        <span>{one.reason}</span>
      </div>
    ),
  },
];

export function Decisions(props: { pools: ScaledPool[] }): JSX.Element {
  const [query, setQuery] = useQuery();
  const [shown, setShown] = useState<ScalingDecision>();
  const pool = query.get('pool') ?? '';
  const found = usePages<Reply, ScalingDecision>(
    withQuery('/v1/autoscale/decisions', { pool, limit: 50 }),
    (reply) => ({ rows: reply.items, next: reply.next_cursor }),
    { tenant: null },
  );
  // another number is wanted: there is a new line
  const wanted = props.pools.map((one) => one.wanted_workers).join(' ');
  const seen = useRef(wanted);
  useEffect(() => {
    if (seen.current !== wanted) found.reload();
    seen.current = wanted;
  }, [wanted]);
  const choices = [{ value: '', label: 'every pool' }, ...props.pools.map((one) => ({ value: one.pool, label: one.pool }))];
  const none = (
    <Empty title="Nothing was decided yet" text="A decision is written down when the number of wanted workers changes." />
  );
  return (
    <Card
      flush
      title="Decisions"
      about="Newest first. One opens to the numbers behind it."
      actions={<Select label="Of which pool" value={pool} choices={choices} onChange={(name) => setQuery({ pool: name })} />}
    >
      <LoadsIfThere of={{ data: found.rows, error: found.error, reload: found.reload }} missing={none}>
        {(rows) => (
          <Table
            label="Decisions"
            rows={rows}
            columns={COLUMNS}
            rowKey={(one) => `${one.at} ${one.pool} ${one.code}`}
            onRow={setShown}
            empty={none}
            more={found.more}
            isLoadingMore={found.isLoadingMore}
          />
        )}
      </LoadsIfThere>
      <Dialog title={shown ? `A decision about ${shown.pool}` : ''} open={shown !== undefined} onClose={() => setShown(undefined)} wide>
        {shown && <Closer one={shown} />}
      </Dialog>
    </Card>
  );
}

function Closer({ one }: { one: ScalingDecision }): JSX.Element {
  return (
    <>
      <p class="break">{one.reason}</p>
      <Facts
        items={[
          ['When', <Time at={one.at} />],
          ['Workers', <Change one={one} />],
          ['Because of', <Code code={one.code} />],
          ['Done', one.dry_run ? 'no: it was a dry run' : 'yes'],
        ]}
      />
      <h3 class="small-title">What was seen</h3>
      <Json value={one.facts} label="What was seen" />
    </>
  );
}
