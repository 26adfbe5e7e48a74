/** What a month came to, line by line; the total is the sum of the lines. */
import type { JSX } from 'preact';

import { useLoad, withQuery } from '../../api';
import { Badge, Card, type Column, Empty, Field, Loads, Row, Select, Table, Tag, Time } from '../../components';
import { count } from '../../format';
import { useQuery } from '../../router';
import type { Statement, StatementLine } from '../../types';
import { useWhose } from '../parts/whose';
import { money, slotTime } from '../parts/words';

const MONTHS_SHOWN = 13;

/** Months of UTC, the present one first. */
function months(now = new Date()): { value: string; label: string }[] {
  return Array.from({ length: MONTHS_SHOWN }, (_, n) => {
    const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - n, 1));
    const value = first.toISOString().slice(0, 7);
    return { value, label: n === 0 ? `${value} (this month)` : value };
  });
}

export function StatementCard(): JSX.Element {
  const [query, setQuery] = useQuery();
  const whose = useWhose();
  const choices = months();
  const month = query.get('month') ?? choices[0]?.value ?? '';
  const path = withQuery(`/v1/statements/${encodeURIComponent(month)}`, whose);
  const found = useLoad<Statement>(path, { tenant: null });
  return (
    <Card title="Statement" about="Amounts are in the currency of your price list.">
      <Row class="filters">
        <Field label="Month of UTC">
          <Select value={month} choices={choices} onChange={(value) => setQuery({ month: value })} />
        </Field>
      </Row>
      <Loads of={found}>{(statement) => <Lines statement={statement} />}</Loads>
    </Card>
  );
}

const COLUMNS: Column<StatementLine>[] = [
  { name: 'kind', title: 'For', cell: (line) => (line.kind === 'base_fee' ? 'base fee' : 'usage') },
  { name: 'pool', title: 'Pool', cell: (line) => (line.pool === '*' ? 'every' : <Tag>{line.pool}</Tag>) },
  { name: 'type', title: 'Job type', wide: true, cell: (line) => <span class="job-type">{line.type}</span> },
  { name: 'jobs', title: 'Jobs', numeric: true, minor: true, cell: (line) => (line.kind === 'usage' ? count(line.jobs) : '') },
  {
    name: 'billed',
    title: 'Slot-time',
    numeric: true,
    cell: (line) => (line.kind === 'usage' ? slotTime(line.billed_us) : ''),
  },
  { name: 'price', title: 'Price', numeric: true, minor: true, cell: (line) => money(line.price_micros) },
  { name: 'amount', title: 'Amount', numeric: true, cell: (line) => money(line.amount_micros) },
];

function Lines(props: { statement: Statement }): JSX.Element {
  const { statement } = props;
  return (
    <>
      <p>
        {statement.closed ? (
          <>
            <Badge tone="muted">closed</Badge> since <Time at={statement.closed_at} />: it never changes.
          </>
        ) : (
          <>
            <Badge tone="info">open</Badge> as of now.
          </>
        )}{' '}
        Total: <strong class="num">{money(statement.total_micros)}</strong>
      </p>
      <Table
        rows={statement.lines}
        columns={COLUMNS}
        rowKey={(line) => `${line.kind} ${line.pool} ${line.type} ${line.price_micros}`}
        label="Lines of the statement"
        empty={<Empty title="Nothing to pay" text="No run was billed in this month, and there is no base fee." />}
      />
    </>
  );
}
