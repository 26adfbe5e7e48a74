/** Pauses a tenant, a job type or a pool, or what is all of these. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct, useLoad } from '../../api';
import { Button, Dialog, DialogFoot, Field, Form, Problem, Select, TextInput, toast } from '../../components';
import type { Pause } from '../../types';

export function PauseDialog(props: { onClose: () => void; onDone: () => void }): JSX.Element {
  const pools = useLoad<{ pools: { name: string }[] }>('/v1/pools', { tenant: null });
  const [tenant, setTenant] = useState('');
  const [type, setType] = useState('');
  const [pool, setPool] = useState('');
  const { busy, error, run } = useAct();
  const wanted: Pause = {
    ...(tenant.trim() ? { tenant: tenant.trim() } : {}),
    ...(type.trim() ? { type: type.trim() } : {}),
    ...(pool ? { pool } : {}),
  };
  const pause = async (): Promise<void> => {
    let isKnown = true;
    const isDone = await run(async () => {
      const path = '/v1/pauses';
      const reply = await act<{ type_is_known?: boolean }>('POST', path, wanted, { tenant: null });
      isKnown = reply.type_is_known !== false;
    });
    if (!isDone) return;
    toast(isKnown ? 'It is paused.' : `It is paused. Nobody has named the type ${type} before: look twice.`);
    props.onDone();
    props.onClose();
  };
  const choices = (pools.data?.pools ?? []).map((one) => ({ value: one.name, label: one.name }));
  return (
    <Dialog title="Pause jobs" open onClose={props.onClose}>
      <Form onSubmit={() => void pause()}>
        <p>Jobs that match all that you name are still accepted, and do not start. What runs, runs on.</p>
        <Field label="Tenant" hint="Empty: of every tenant.">
          <TextInput value={tenant} onInput={setTenant} autoFocus placeholder="every tenant" />
        </Field>
        <Field label="Job type" hint="Empty: of every type.">
          <TextInput value={type} onInput={setType} placeholder="every type" />
        </Field>
        <Field label="Pool">
          <Select value={pool} onChange={setPool} choices={[{ value: '', label: 'every pool' }, ...choices]} />
        </Field>
        {error && <Problem error={error} />}
        <DialogFoot>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="danger" submit busy={busy} disabled={Object.keys(wanted).length === 0}>
            Pause
          </Button>
        </DialogFoot>
      </Form>
    </Dialog>
  );
}
