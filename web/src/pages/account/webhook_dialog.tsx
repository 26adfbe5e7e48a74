/** Makes or changes a webhook. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct } from '../../api';
import { Button, Check, Dialog, DialogFoot, Field, Form, Problem, TextInput } from '../../components';
import type { Webhook } from '../../types';

export function WebhookDialog(props: {
  webhook?: Webhook;
  onClose: () => void;
  onMade: (webhook: Webhook & { secret: string }) => void;
}): JSX.Element {
  const before = props.webhook;
  const [url, setUrl] = useState(before?.url ?? 'https://');
  const [kinds, setKinds] = useState(before?.kinds.join(', ') ?? '');
  const [description, setDescription] = useState(before?.description ?? '');
  const [enabled, setEnabled] = useState(before?.enabled ?? true);
  const { busy, error, run } = useAct();
  const save = (): void => {
    const body = {
      url: url.trim(),
      kinds: kinds.split(/[\s,]+/).filter(Boolean),
      description: description.trim(),
      enabled,
    };
    void run(async () => {
      const path = before ? `/v1/webhooks/${before.id}` : '/v1/webhooks';
      props.onMade(await act(before ? 'PATCH' : 'POST', path, body));
    });
  };
  return (
    <Dialog title={before ? 'Change the webhook' : 'New webhook'} open onClose={props.onClose}>
      <Form onSubmit={save}>
        <Field label="Address" hint="https, and an address of the public internet.">
          <TextInput type="url" autoFocus value={url} onInput={setUrl} />
        </Field>
        <Field
          label="Events"
          hint="Kinds with commas between, such as job.dead, circuit.*; left empty: all of them."
        >
          <TextInput mono value={kinds} placeholder="job.dead, circuit.*" onInput={setKinds} />
        </Field>
        <Field label="Description" hint="For people.">
          <TextInput value={description} placeholder="pages the team" onInput={setDescription} />
        </Field>
        <Check label="Send events" checked={enabled} onChange={setEnabled} />
        {error && <Problem error={error} />}
        <DialogFoot>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="primary" submit busy={busy}>
            {before ? 'Save' : 'Make webhook'}
          </Button>
        </DialogFoot>
      </Form>
    </Dialog>
  );
}
