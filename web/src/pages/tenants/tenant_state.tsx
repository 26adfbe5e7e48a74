/** Suspends, resumes, deletes and restores a tenant. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct } from '../../api';
import { Button, Confirm, Dialog, DialogFoot, Field, Form, Problem, Select, TextInput, toast } from '../../components';
import { useMay } from '../../session';
import type { Tenant } from '../../types';

interface Props {
  tenant: Tenant;
  onChanged: () => void;
}

type Asked = 'suspend' | 'resume' | 'delete' | 'restore';

export function StateButtons({ tenant, onChanged }: Props): JSX.Element | null {
  const [asked, setAsked] = useState<Asked>();
  const mayAdmin = useMay('admin');
  if (!mayAdmin) return null;
  const close = (): void => setAsked(undefined);
  return (
    <>
      {tenant.state === 'active' && <Button onClick={() => setAsked('suspend')}>Suspend…</Button>}
      {tenant.state === 'suspended' && (
        <>
          <Button kind="danger" onClick={() => setAsked('delete')}>
            Delete…
          </Button>
          <Button kind="primary" onClick={() => setAsked('resume')}>
            Resume…
          </Button>
        </>
      )}
      {tenant.state === 'deleted' && (
        <Button kind="primary" onClick={() => setAsked('restore')}>
          Restore…
        </Button>
      )}
      {asked === 'suspend' && <Suspend tenant={tenant} onChanged={onChanged} onClose={close} />}
      {asked !== undefined && asked !== 'suspend' && (
        <Asks asked={asked} tenant={tenant} onChanged={onChanged} onClose={close} />
      )}
    </>
  );
}

const DEEDS = {
  resume: {
    action: 'Resume tenant',
    text: 'All is as it was: its keys open what they did, and what waits may start. Its schedules go on within half a minute and catch up.',
    done: 'is active again.',
  },
  delete: {
    action: 'Delete tenant',
    text: 'Its keys and SQL logins are gone at once, its waiting jobs are cancelled and its schedules removed. It can be restored for a while; what was cancelled or revoked stays so.',
    done: 'is deleted.',
  },
  restore: {
    action: 'Restore tenant',
    text: 'It comes back suspended: resume it then, and make it new keys. Its history is there.',
    done: 'is restored, and suspended.',
  },
} as const;

function Asks(props: Props & { asked: Exclude<Asked, 'suspend'>; onClose: () => void }): JSX.Element {
  const { name } = props.tenant;
  const deed = DEEDS[props.asked];
  const path = `/v1/tenants/${encodeURIComponent(name)}`;
  const work = async (): Promise<void> => {
    if (props.asked === 'delete') await act('DELETE', path);
    else await act('POST', `${path}/${props.asked}`);
    toast(`${name} ${deed.done}`);
    props.onChanged();
  };
  return (
    <Confirm
      title={`${deed.action}: ${name}`}
      open
      onClose={props.onClose}
      action={deed.action}
      kind={props.asked === 'delete' ? 'danger' : 'primary'}
      onConfirm={work}
    >
      <p>{deed.text}</p>
    </Confirm>
  );
}

const RUNNING = [
  { value: 'finish', label: 'Let them finish' },
  { value: 'cancel', label: 'Cancel them' },
];

function Suspend(props: Props & { onClose: () => void }): JSX.Element {
  const { name } = props.tenant;
  const [reason, setReason] = useState('');
  const [running, setRunning] = useState('finish');
  const { busy, error, run } = useAct();
  const submit = async (): Promise<void> => {
    const body = { running, ...(reason.trim() ? { reason: reason.trim() } : {}) };
    if (!(await run(() => act('POST', `/v1/tenants/${encodeURIComponent(name)}/suspend`, body)))) return;
    toast(`${name} is suspended.`);
    props.onChanged();
    props.onClose();
  };
  return (
    <Dialog title={`Suspend ${name}`} open onClose={props.onClose}>
      <Form onSubmit={() => void submit()}>
        <p>
          Its keys hear that it is suspended, none of its jobs starts and its schedules do not tick: everywhere
          within five seconds. Nothing is lost.
        </p>
        <Field label="Reason" hint="For people: its own keys hear it.">
          <TextInput value={reason} onInput={setReason} autoFocus placeholder="The invoice of March is open." />
        </Field>
        <Field label="Jobs that run now">
          <Select value={running} choices={RUNNING} onChange={setRunning} />
        </Field>
        {error && <Problem error={error} />}
        <DialogFoot>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="danger" submit busy={busy}>
            Suspend tenant
          </Button>
        </DialogFoot>
      </Form>
    </Dialog>
  );
}
