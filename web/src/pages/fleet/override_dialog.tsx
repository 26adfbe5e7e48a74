/** So many workers for a while, whatever is decided: it ends by itself. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct } from '../../api';
import { Button, Dialog, DialogFoot, Field, Form, Problem, Select, TextInput, toast } from '../../components';
import { count, plural } from '../../format';
import type { ScaledPool } from '../../types';

const SPANS = [
  { value: '900', label: 'for a quarter of an hour' },
  { value: '3600', label: 'for an hour' },
  { value: '14400', label: 'for four hours' },
  { value: '86400', label: 'for a day' },
];

export function overridePath(pool: string): string {
  return `/v1/autoscale/${encodeURIComponent(pool)}/override`;
}

export function OverrideDialog(props: { pool: ScaledPool; onClose: () => void; onDone: () => void }): JSX.Element {
  const { pool } = props;
  const [workers, setWorkers] = useState(String(pool.override?.workers ?? pool.wanted_workers));
  const [span, setSpan] = useState('3600');
  const { busy, error, run } = useAct();
  const wanted = workers.trim() === '' ? Number.NaN : Number(workers);
  const isGood = Number.isInteger(wanted) && wanted >= 0;
  const save = async (): Promise<void> => {
    const body = { workers: wanted, for_seconds: Number(span) };
    if (!(await run(() => act('PUT', overridePath(pool.pool), body, { tenant: null })))) return;
    toast(`${pool.pool} is to have ${plural(wanted, 'worker')} for now.`);
    props.onDone();
    props.onClose();
  };
  return (
    <Dialog title={`Override ${pool.pool}`} open onClose={props.onClose}>
      <Form onSubmit={() => void save()}>
        <p>
          It has {plural(pool.workers, 'worker')} and wants {count(pool.wanted_workers)}. Until the override ends it
          wants what you say, whatever waits.
        </p>
        <Field label="Workers" hint={`By its bounds: ${count(pool.minimum_workers)} to ${count(pool.maximum_workers)}.`}>
          <TextInput type="number" min={0} value={workers} onInput={setWorkers} autoFocus />
        </Field>
        <Field label="How long" hint="Then it is scaled by its work again, by itself.">
          <Select value={span} choices={SPANS} onChange={setSpan} />
        </Field>
        {error && <Problem error={error} />}
        <DialogFoot>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="primary" submit busy={busy} disabled={!isGood}>
            Override
          </Button>
        </DialogFoot>
      </Form>
    </Dialog>
  );
}
