/** Adds a tenant and shows its first key, once. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct, useLoad } from '../../api';
import { Badge, Button, Code, Copy, Dialog, DialogFoot, Field, Form, Problem, Select, TextInput } from '../../components';
import { navigate } from '../../router';
import type { Tenant, Tier } from '../../types';

type Added = Tenant & { api_key: string };

export function NewTenant({ onClose }: { onClose: () => void }): JSX.Element {
  const tiers = useLoad<{ tiers: Tier[] }>('/v1/tiers', { tenant: null });
  const [name, setName] = useState('');
  const [tier, setTier] = useState('standard');
  const [added, setAdded] = useState<Added>();
  const { busy, error, run } = useAct();
  if (added !== undefined) return <FirstKey added={added} onClose={onClose} />;
  const choices = (tiers.data?.tiers ?? []).map((one) => ({
    value: one.name,
    label: `${one.name} · weight ${one.weight}`,
  }));
  return (
    <Dialog title="Add a tenant" open onClose={onClose}>
      <Form
        onSubmit={() =>
          void run(async () => setAdded(await act<Added>('POST', '/v1/tenants', { name: name.trim(), tier })))
        }
      >
        <Field label="Name" hint="Lower-case letters, digits, and _ . - after the first.">
          <TextInput value={name} onInput={setName} autoFocus placeholder="acme" />
        </Field>
        <Field label="Tier" hint="Where its weight and limits come from until it has its own.">
          <Select
            value={tier}
            onChange={setTier}
            choices={choices.length ? choices : [{ value: 'standard', label: 'standard' }]}
          />
        </Field>
        {error && <Problem error={error} />}
        <DialogFoot>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" submit busy={busy} disabled={name.trim() === ''}>
            Add the tenant
          </Button>
        </DialogFoot>
      </Form>
    </Dialog>
  );
}

function FirstKey({ added, onClose }: { added: Added; onClose: () => void }): JSX.Element {
  const go = (): void => {
    onClose();
    navigate(`/ui/tenants/${encodeURIComponent(added.name)}`);
  };
  return (
    <Dialog title={`${added.name} is there`} open onClose={go}>
      <p>
        <Badge tone="warn">Shown once</Badge> Its first key. Only a hash of it is kept: copy it now.
      </p>
      <Code text={added.api_key} label="The key" />
      <DialogFoot>
        <Copy text={added.api_key} label="Copy the key" word="Copy" />
        <Button kind="primary" onClick={go}>
          Done
        </Button>
      </DialogFoot>
    </Dialog>
  );
}
