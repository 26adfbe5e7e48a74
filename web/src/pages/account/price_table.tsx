/** Prices by pool: which hold, which held, and which are to come. */
import type { JSX } from 'preact';

import { Badge, Button, type Column, Empty, Table, Tag, Time } from '../../components';
import type { Price } from '../../types';
import { money } from '../parts/words';

type Stage = 'past' | 'now' | 'later';

/** A price holds until another of its pool begins. */
export function stagesOf(prices: readonly Price[], now = Date.now()): Map<string, Stage> {
  const found = new Map<string, Stage>();
  const held = new Map<string, string>(); // pool → the price that holds
  for (const one of [...prices].sort((a, b) => Date.parse(a.valid_from) - Date.parse(b.valid_from))) {
    if (Date.parse(one.valid_from) > now) {
      found.set(one.id, 'later');
      continue;
    }
    const before = held.get(one.pool);
    if (before !== undefined) found.set(before, 'past');
    found.set(one.id, 'now');
    held.set(one.pool, one.id);
  }
  return found;
}

const WORDS = {
  past: ['muted', 'over'],
  now: ['ok', 'holds'],
  later: ['info', 'to come'],
} as const;

export function PriceTable(props: { prices: Price[]; onDrop?: (price: Price) => void }): JSX.Element {
  const stages = stagesOf(props.prices);
  const stageOf = (one: Price): Stage => stages.get(one.id) ?? 'past';
  const columns: Column<Price>[] = [
    { name: 'pool', title: 'Pool', cell: (one) => (one.pool === '*' ? <span class="nowrap">every other</span> : <Tag>{one.pool}</Tag>) },
    {
      name: 'state',
      title: 'State',
      cell: (one) => <Badge tone={WORDS[stageOf(one)][0]}>{WORDS[stageOf(one)][1]}</Badge>,
    },
    { name: 'from', title: 'From', cell: (one) => <Time at={one.valid_from} /> },
    { name: 'second', title: 'A slot-second', numeric: true, cell: (one) => money(one.slot_second_micros) },
    { name: 'hour', title: 'A slot-hour', numeric: true, minor: true, cell: (one) => money(one.slot_second_micros * 3600) },
    { name: 'fee', title: 'A month', numeric: true, cell: (one) => money(one.base_fee_micros) },
    {
      name: 'actions',
      title: '',
      numeric: true,
      cell: (one) =>
        props.onDrop &&
        stageOf(one) === 'later' && (
          <Button small label={`Take back ${one.id}`} onClick={() => props.onDrop?.(one)}>
            Take back
          </Button>
        ),
    },
  ];
  return (
    <Table
      label="Prices"
      rows={props.prices}
      columns={props.onDrop ? columns : columns.slice(0, -1)}
      rowKey={(one) => one.id}
      tone={(one) => (stageOf(one) === 'past' ? 'muted' : undefined)}
      empty={<Empty title="Nothing has a price" text="Usage is counted all the same, and nothing is charged for it." />}
    />
  );
}
