/** Keys of a tenant. Operators make, rotate and revoke them; a new key is shown once. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct, usePages, withQuery } from '../../api';
import { Badge, Button, Card, Check, type Column, Confirm, Dialog, DialogFoot, Empty, Facts, Field, Form, Loads, Page, Problem, Row, Select, Table, Tag, TextInput, Time, toast } from '../../components';
import { useMay, useSession, useTenant } from '../../session';
import { Secret } from '../parts/secret';
import type { Key, KeyAdded } from '../../types';
import { momentOf } from '../parts/words';

const NOBODY = { tenant: null }; // keys are the operator's own business, whoever is picked
const OVERLAPS = [
  { value: '0', label: 'not at all: it ends now' },
  { value: '3600', label: 'for an hour' },
  { value: '86400', label: 'for a day' },
  { value: '604800', label: 'for a week' },
];

export function KeysPage(): JSX.Element {
  const session = useSession();
  return session.scope === 'operator' ? <Keys /> : <OwnKey />;
}

/** A tenant's people see what their own key may do. */
function OwnKey(): JSX.Element {
  const session = useSession();
  return (
    <Page title="Keys" about="The key that you signed in with.">
      <Card>
        <Facts
          items={[
            ['Name', session.name || 'without a name'],
            ['Tenant', session.tenant ?? ''],
            ['May', session.may.map((one) => <Tag key={one}>{one}</Tag>)],
            ['Signed in until', <Time at={session.expires_at} />],
          ]}
        />
      </Card>
      <Card>
        <Empty
          title="Keys are made by operators"
          text="Ask yours to make, rotate or revoke one. A program that only looks needs a key that may only read."
        />
      </Card>
    </Page>
  );
}

function Keys(): JSX.Element {
  const tenant = useTenant();
  const may = useMay('admin');
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<KeyAdded>();
  const path = withQuery('/v1/keys', { tenant, limit: 100 });
  const found = usePages<{ keys: Key[]; next_cursor: string | null }, Key>(
    path,
    (reply) => ({ rows: reply.keys, next: reply.next_cursor }),
    NOBODY,
  );
  const show = (key: KeyAdded): void => {
    setMaking(false);
    setMade(key);
    found.reload();
  };
  return (
    <Page
      title="Keys"
      about={`Keys of ${tenant ?? 'nobody'} that open something now; never their secrets.`}
      actions={
        may && (
          <Button kind="primary" onClick={() => setMaking(true)}>
            New key
          </Button>
        )
      }
    >
      <Loads of={{ data: found.rows, error: found.error, reload: found.reload }}>
        {(rows) => (
          <Card flush>
            <Table
              rows={rows}
              columns={may ? [...COLUMNS, doings(show, found.reload)] : COLUMNS}
              rowKey={(key) => key.id}
              more={found.more}
              isLoadingMore={found.isLoadingMore}
              label="Keys"
              empty={<Empty title="No valid keys" text="Nobody can act for this tenant until a key is made." />}
            />
          </Card>
        )}
      </Loads>
      {isMaking && <NewKey tenant={tenant ?? ''} onClose={() => setMaking(false)} onMade={show} />}
      {made && (
        <Secret
          title={made.name ? `The key ${made.name}` : 'The new key'}
          about="This is the only time that it is shown. Keep it where the program that uses it reads its secrets."
          label="API key"
          text={made.api_key}
          onClose={() => setMade(undefined)}
        />
      )}
    </Page>
  );
}

const COLUMNS: Column<Key>[] = [
  { name: 'name', title: 'Name', wide: true, cell: (key) => key.name || <span class="faint">without a name</span> },
  { name: 'id', title: 'Public part', cell: (key) => <code>{key.id}</code> },
  { name: 'scope', title: 'For', cell: (key) => <Badge tone="muted">{key.scope}</Badge> },
  {
    name: 'may',
    title: 'May',
    cell: (key) => (
      <span class="tags">
        {key.permissions.map((one) => (
          <Tag key={one}>{one}</Tag>
        ))}
      </span>
    ),
  },
  { name: 'bound', title: 'Bound to', minor: true, cell: (key) => [...(key.pools ?? []), ...(key.types ?? [])].join(', ') },
  { name: 'made', title: 'Made', minor: true, cell: (key) => <Time at={key.created_at} relative /> },
  {
    name: 'used',
    title: 'Last used',
    cell: (key) => (key.last_used_at ? <Time at={key.last_used_at} relative /> : 'not yet'),
  },
  { name: 'ends', title: 'Ends', cell: (key) => (key.expires_at ? <Time at={key.expires_at} relative /> : 'never') },
];

function doings(onMade: (key: KeyAdded) => void, reload: () => void): Column<Key> {
  return {
    name: 'actions',
    title: '',
    cell: (key) => <Doings shown={key} onMade={onMade} reload={reload} />,
  };
}

function Doings(props: { shown: Key; onMade: (key: KeyAdded) => void; reload: () => void }): JSX.Element {
  const { shown: key } = props;
  const [asked, setAsked] = useState<'rotate' | 'revoke'>();
  const [overlap, setOverlap] = useState('86400');
  const what = key.name || key.id;
  const close = (): void => setAsked(undefined);
  const rotate = async (): Promise<void> => {
    const body = { overlap_seconds: Number(overlap) };
    props.onMade(await act<KeyAdded>('POST', `/v1/keys/${key.id}/rotate`, body, NOBODY));
  };
  const revoke = async (): Promise<void> => {
    await act('DELETE', `/v1/keys/${key.id}`, undefined, NOBODY);
    toast('The key is revoked.');
    props.reload();
  };
  return (
    <span class="row-actions">
      <Button small onClick={() => setAsked('rotate')} label={`Rotate ${what}`}>
        Rotate
      </Button>
      <Button small kind="danger" onClick={() => setAsked('revoke')} label={`Revoke ${what}`}>
        Revoke
      </Button>
      <Confirm
        title={`Rotate ${what}?`}
        open={asked === 'rotate'}
        onClose={close}
        action="Make the new key"
        kind="primary"
        onConfirm={rotate}
      >
        <p>A new key that may do the same. The old one goes on working beside it:</p>
        <Select value={overlap} choices={OVERLAPS} onChange={setOverlap} label="How long the old key works" />
      </Confirm>
      <Confirm
        title={`Revoke ${what}?`}
        open={asked === 'revoke'}
        onClose={close}
        action="Revoke it"
        onConfirm={revoke}
      >
        <p>It stops working on every server within five seconds. This cannot be taken back.</p>
      </Confirm>
    </span>
  );
}

const PERMISSIONS = ['read', 'submit', 'operate'];

function NewKey(props: {
  tenant: string;
  onClose: () => void;
  onMade: (key: KeyAdded) => void;
}): JSX.Element {
  const [name, setName] = useState('');
  const [scope, setScope] = useState('tenant');
  const [may, setMay] = useState(PERMISSIONS);
  const [ends, setEnds] = useState('');
  const { busy, error, run } = useAct();
  const toggle = (one: string): void =>
    setMay(PERMISSIONS.filter((each) => (each === one ? !may.includes(each) : may.includes(each))));
  const make = (): void => {
    const body = {
      scope,
      tenant: props.tenant,
      name: name.trim(),
      ...(scope === 'tenant' ? { permissions: may } : {}),
      ...(momentOf(ends) ? { expires_at: momentOf(ends) } : {}),
    };
    void run(async () => props.onMade(await act<KeyAdded>('POST', '/v1/keys', body, NOBODY)));
  };
  return (
    <Dialog title={`New key of ${props.tenant}`} open onClose={props.onClose}>
      <Form onSubmit={make}>
        <Field label="Name" hint="What it is for, in a few words for people.">
          <TextInput autoFocus value={name} placeholder="ci" onInput={setName} />
        </Field>
        <Field label="For">
          <Select
            value={scope}
            choices={[
              { value: 'tenant', label: "the tenant's programs" },
              { value: 'worker', label: "workers that run this tenant's jobs" },
            ]}
            onChange={setScope}
          />
        </Field>
        {scope === 'tenant' && (
          <fieldset class="plain">
            <legend>May</legend>
            <Row>
              {PERMISSIONS.map((one) => (
                <Check key={one} label={one} checked={may.includes(one)} onChange={() => toggle(one)} />
              ))}
            </Row>
          </fieldset>
        )}
        <Field label="Ends" hint="Left empty: never.">
          <TextInput type="datetime-local" value={ends} onInput={setEnds} />
        </Field>
        {error && <Problem error={error} />}
        <DialogFoot>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="primary" submit busy={busy} disabled={scope === 'tenant' && !may.length}>
            Make key
          </Button>
        </DialogFoot>
      </Form>
    </Dialog>
  );
}
