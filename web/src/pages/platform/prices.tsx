/** What slot-time costs, since when, and whom spend caps hold. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct, useLoad } from '../../api';
import { Badge, Button, Card, Confirm, Dialog, DialogFoot, Empty, Field, Form, Grid, Loads, Page, Problem, Row, Select, TextInput, toast } from '../../components';
import { count, plural } from '../../format';
import { Link } from '../../router';
import { useMay } from '../../session';
import type { Pool, Price, Schemas } from '../../types';
import { PriceTable } from '../account/price_table';
import { microsOf, momentOf } from '../parts/words';

const EVERY_MS = 30_000;

export function PricesPage(): JSX.Element {
  const found = useLoad<{ prices: Price[] }>('/v1/prices', { tenant: null });
  const [isAdding, setAdding] = useState(false);
  const [dropping, setDropping] = useState<Price>();
  const mayAdmin = useMay('admin');
  return (
    <Page
      title="Prices"
      about="What a slot-second and a month cost. What has begun is never changed: what was used keeps its price."
      actions={
        mayAdmin && (
          <Button kind="primary" onClick={() => setAdding(true)}>
            Add a price
          </Button>
        )
      }
    >
      <Card flush title="Price list" about="A pool's own price comes before that of every pool.">
        <Loads of={found}>
          {({ prices }) => <PriceTable prices={prices} {...(mayAdmin ? { onDrop: setDropping } : {})} />}
        </Loads>
      </Card>
      <HeldByCaps />
      {isAdding && <AddDialog onClose={() => setAdding(false)} onDone={found.reload} />}
      <Confirm
        title="Take this price back?"
        open={dropping !== undefined}
        onClose={() => setDropping(undefined)}
        action="Take it back"
        onConfirm={async () => {
          await act('DELETE', `/v1/prices/${encodeURIComponent(dropping?.id ?? '')}`, undefined, { tenant: null });
          toast('It will not begin.');
          found.reload();
        }}
      >
        <p>It has not begun: nothing was charged by it, and the price before it goes on.</p>
      </Confirm>
    </Page>
  );
}

function HeldByCaps(): JSX.Element {
  const found = useLoad<Schemas['SpendCapHolds']>('/v1/spend-caps', { tenant: null, every: EVERY_MS });
  return (
    <Card
      title="Held by spend caps"
      about="Tenants that have spent what they may this month: their jobs are accepted and wait. A cap is set on a tenant's usage page."
    >
      <Loads of={found} lines={2}>
        {({ tenants, count: all }) =>
          tenants.length === 0 ? (
            <Empty title="No cap holds anybody" />
          ) : (
            <Row>
              <Badge tone="warn">{plural(all, 'tenant')}</Badge>
              {tenants.map((name) => (
                <Link key={name} to={`/ui/usage?tenant=${encodeURIComponent(name)}`}>
                  {name}
                </Link>
              ))}
              {all > tenants.length && <span class="muted">and {count(all - tenants.length)} more</span>}
            </Row>
          )
        }
      </Loads>
    </Card>
  );
}

/** A moment that begins an hour; '' for the next one. */
function hourOf(local: string): string | null {
  const moment = momentOf(local);
  return moment ? `${moment.slice(0, 13)}:00:00Z` : null;
}

function AddDialog(props: { onClose: () => void; onDone: () => void }): JSX.Element {
  const pools = useLoad<{ pools: Pool[] }>('/v1/pools', { tenant: null });
  const [pool, setPool] = useState('*');
  const [from, setFrom] = useState('');
  const [slotSecond, setSlotSecond] = useState('');
  const [baseFee, setBaseFee] = useState('0');
  const { busy, error, run } = useAct();
  const [price, fee] = [microsOf(slotSecond), microsOf(baseFee)];
  const add = async (): Promise<void> => {
    const body = { pool, valid_from: hourOf(from), slot_second_micros: price, base_fee_micros: fee };
    if (!(await run(() => act('POST', '/v1/prices', body, { tenant: null })))) return;
    toast('It holds from then on.');
    props.onDone();
    props.onClose();
  };
  const choices = (pools.data?.pools ?? []).map((one) => ({ value: one.name, label: one.name }));
  return (
    <Dialog title="Add a price" open onClose={props.onClose}>
      <Form onSubmit={() => void add()}>
        <Field label="Pool">
          <Select
            value={pool}
            choices={[{ value: '*', label: 'every pool without one of its own' }, ...choices]}
            onChange={setPool}
          />
        </Field>
        <Grid columns={2}>
          <Field label="A slot-second" hint="In your currency; six places count.">
            <TextInput value={slotSecond} onInput={setSlotSecond} placeholder="0.000025" autoFocus />
          </Field>
          <Field label="A month" hint="The base fee of those who use it.">
            <TextInput value={baseFee} onInput={setBaseFee} />
          </Field>
        </Grid>
        <Field label="From" hint="The beginning of an hour that is to come, in your own time zone; empty: the next one.">
          <TextInput type="datetime-local" value={from} onInput={setFrom} />
        </Field>
        {error && <Problem error={error} />}
        <DialogFoot>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="primary" submit busy={busy} disabled={price === null || fee === null}>
            Add the price
          </Button>
        </DialogFoot>
      </Form>
    </Dialog>
  );
}
