/** Adds a pool, or changes one that was added. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct } from '../../api';
import { Button, Dialog, DialogFoot, Field, Form, Grid, Problem, Select, TextInput, toast } from '../../components';
import type { Pool } from '../../types';

interface Wish {
  name: string;
  slots: string;
  lease_seconds: string;
  pickup_target_seconds: string;
  attempts: string;
  run_mode: string;
  checkpoint: string;
  labels: string;
}

function wishOf(pool: Pool | undefined): Wish {
  return {
    name: pool?.name ?? '',
    slots: String(pool?.slots ?? 8),
    lease_seconds: String(pool?.lease_seconds ?? 300),
    pickup_target_seconds: String(pool?.pickup_target_seconds ?? 5),
    attempts: String(pool?.attempts ?? 3),
    run_mode: pool?.run_mode ?? '',
    checkpoint: pool?.checkpoint ?? 'optional',
    labels: (pool?.labels ?? []).join(' '),
  };
}

function termsOf(wish: Wish, pool: Pool | undefined): Record<string, unknown> {
  return {
    slots: Number(wish.slots),
    lease_mode: pool?.lease_mode ?? 'durable',
    lease_seconds: Number(wish.lease_seconds),
    pickup_target_seconds: Number(wish.pickup_target_seconds),
    attempts: Number(wish.attempts),
    run_mode: wish.run_mode || null,
    checkpoint: wish.checkpoint,
    labels: wish.labels.split(/[\s,]+/).filter(Boolean),
    reserved_per_mille: pool?.reserved_per_mille ?? 800,
  };
}

const RUN_MODES = [
  { value: '', label: 'Coroutines in the loop, functions in a thread' },
  { value: 'loop', label: 'In the loop' },
  { value: 'thread', label: 'In a thread' },
  { value: 'process', label: 'In a process of its own' },
];
const CHECKPOINTS = [
  { value: 'none', label: 'None' },
  { value: 'optional', label: 'Optional' },
  { value: 'expected', label: 'Expected: noted when a long job has none' },
];

export function PoolDialog(props: { pool?: Pool; onClose: () => void; onDone: () => void }): JSX.Element {
  const [wish, setWish] = useState(() => wishOf(props.pool));
  const { busy, error, run } = useAct();
  const set = (name: keyof Wish) => (value: string) => setWish({ ...wish, [name]: value });
  const save = async (): Promise<void> => {
    const path = `/v1/pools/${encodeURIComponent(wish.name.trim())}`;
    if (!(await run(() => act('PUT', path, termsOf(wish, props.pool))))) return;
    toast(props.pool ? `Pool ${wish.name} is changed.` : `Pool ${wish.name} is there.`);
    props.onDone();
    props.onClose();
  };
  return (
    <Dialog title={props.pool ? `Terms of ${props.pool.name}` : 'Add a pool'} open onClose={props.onClose}>
      <Form onSubmit={() => void save()}>
        {!props.pool && (
          <Field label="Name" hint="Such as gpu. Workers serve it with --pool gpu.">
            <TextInput value={wish.name} onInput={set('name')} autoFocus />
          </Field>
        )}
        <Grid columns={2}>
          <Field label="Slots a worker offers">
            <TextInput type="number" min={1} value={wish.slots} onInput={set('slots')} />
          </Field>
          <Field label="Attempts before a job is dead">
            <TextInput type="number" min={1} value={wish.attempts} onInput={set('attempts')} />
          </Field>
          <Field label="Pick-up target, seconds">
            <TextInput type="number" value={wish.pickup_target_seconds} onInput={set('pickup_target_seconds')} />
          </Field>
          <Field label="Lease, seconds">
            <TextInput type="number" value={wish.lease_seconds} onInput={set('lease_seconds')} />
          </Field>
        </Grid>
        <Field label="Jobs run">
          <Select value={wish.run_mode} choices={RUN_MODES} onChange={set('run_mode')} />
        </Field>
        <Field label="Checkpoints">
          <Select value={wish.checkpoint} choices={CHECKPOINTS} onChange={set('checkpoint')} />
        </Field>
        <Field label="Labels that workers need" hint="With spaces between; slots of workers without them do not count.">
          <TextInput value={wish.labels} onInput={set('labels')} placeholder="gpu" />
        </Field>
        {error && <Problem error={error} />}
        <DialogFoot>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="primary" submit busy={busy} disabled={wish.name.trim() === ''}>
            {props.pool ? 'Save' : 'Add the pool'}
          </Button>
        </DialogFoot>
      </Form>
    </Dialog>
  );
}
