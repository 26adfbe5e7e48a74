/** One webhook: whether it goes well, what was delivered, and sending it again. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct, useLoad, withQuery } from '../../api';
import { Badge, Button, Card, type Column, Confirm, Dialog, DialogFoot, Empty, Facts, Field, Loads, Page, Problem, Row, Select, Table, Tag, TextInput, Time, toast } from '../../components';
import { count, plural } from '../../format';
import { Link, useGoOn, useParams, useQuery } from '../../router';
import { useMay } from '../../session';
import { Pager } from '../jobs/jobs';
import { Secret } from '../parts/secret';
import type { Delivery, Webhook } from '../../types';
import { localOf, momentOf, stateTone } from '../parts/words';
import { DeliveryDetail } from './delivery';
import { WebhookState } from './webhooks';
import { WebhookDialog } from './webhook_dialog';

const EVERY_MS = 3000;
const DAY_MS = 86_400_000;
const STATES = [
  { value: '', label: 'all' },
  { value: 'waiting', label: 'waiting' },
  { value: 'delivered', label: 'delivered' },
  { value: 'failed', label: 'failed' },
];

export function WebhookPage(): JSX.Element {
  const id = useParams().id ?? '';
  const path = `/v1/webhooks/${encodeURIComponent(id)}`;
  const found = useLoad<Webhook>(path, { every: EVERY_MS });
  return (
    <Page
      title="Webhook"
      above={<Link to="/ui/webhooks">Webhooks</Link>}
      about={<span class="job-type">{found.data?.url}</span>}
      actions={found.data && <Doings webhook={found.data} path={path} reload={found.reload} />}
    >
      <Loads of={found}>{(webhook) => <About webhook={webhook} />}</Loads>
      <Deliveries path={path} />
    </Page>
  );
}

/** Of a tenant in several shards a position in each. */
function cameTo(position: number | string): string {
  if (typeof position === 'number') return `event ${count(position)} of your log`;
  return `events ${position.split('.').map((one) => count(Number(one))).join(', ')} of your shards`;
}

function About(props: { webhook: Webhook }): JSX.Element {
  const { webhook } = props;
  return (
    <Card>
      <Facts
        items={[
          ['State', <WebhookState webhook={webhook} />],
          webhook.disabled_because !== null && ['Why it is off', webhook.disabled_because],
          webhook.failing_since !== null && ['Failing since', <Time at={webhook.failing_since} relative />],
          ['Events', webhook.kinds.length ? webhook.kinds.map((kind) => <Tag key={kind}>{kind}</Tag>) : 'all'],
          webhook.description !== '' && ['Description', webhook.description],
          ['Has come to', cameTo(webhook.position)],
          webhook.old_secret_until !== null && [
            'Old secret signs until',
            <Time at={webhook.old_secret_until} />,
          ],
          ['Made', <Time at={webhook.created_at} />],
          ['Id', <span class="mono">{webhook.id}</span>],
        ]}
      />
    </Card>
  );
}

function Deliveries(props: { path: string }): JSX.Element {
  const [query, setQuery] = useQuery();
  const may = useMay('operate');
  const state = query.get('state') ?? '';
  const cursor = query.get('cursor');
  const path = withQuery(`${props.path}/deliveries`, { state, cursor, limit: 50 });
  const found = useLoad<{ deliveries: Delivery[]; next_cursor: string | null }>(
    path,
    cursor ? {} : { every: EVERY_MS },
  );
  const again = sending(props.path, found.reload);
  const [shown, setShown] = useState<Delivery>();
  return (
    <Card
      title="Deliveries"
      about="The newest 10,000, as long as jobs are kept."
      flush
      actions={
        <Row>
          <Select
            label="Only of this state"
            value={state}
            choices={STATES}
            onChange={(value) => setQuery({ state: value, cursor: null })}
          />
        </Row>
      }
    >
      <Loads of={found}>
        {({ deliveries, next_cursor }) => (
          <>
            <Table
              rows={deliveries}
              columns={may ? [...COLUMNS, again] : COLUMNS}
              rowKey={(one) => one.id}
              onRow={setShown}
              label="Deliveries"
              empty={
                <Empty
                  title={state ? `No delivery is ${state}` : 'Nothing was sent yet'}
                  text="Send a test to see whether your receiver is there."
                />
              }
            />
            <Pager next={next_cursor} />
          </>
        )}
      </Loads>
      <Dialog title={shown?.kind ?? ''} open={shown !== undefined} onClose={() => setShown(undefined)} wide>
        {shown && <DeliveryDetail delivery={found.data?.deliveries.find((one) => one.id === shown.id) ?? shown} />}
      </Dialog>
    </Card>
  );
}

const COLUMNS: Column<Delivery>[] = [
  {
    name: 'kind',
    title: 'Event',
    wide: true,
    cell: (one) => (
      <>
        <span class="job-type">{one.kind}</span>
        <span class="job-id mono">{one.id}</span>
      </>
    ),
  },
  {
    name: 'state',
    title: 'State',
    cell: (one) => <Badge tone={stateTone(one.state)}>{one.state}</Badge>,
  },
  { name: 'attempts', title: 'Calls', numeric: true, cell: (one) => count(one.attempts) },
  { name: 'status', title: 'Reply', numeric: true, cell: (one) => one.last_status ?? '–' },
  { name: 'error', title: 'What went wrong', cell: (one) => <span class="error-line">{one.last_error}</span> },
  { name: 'made', title: 'Written down', minor: true, cell: (one) => <Time at={one.created_at} /> },
  {
    name: 'next',
    title: 'Next try',
    minor: true,
    cell: (one) => (one.next_attempt_at ? <Time at={one.next_attempt_at} relative /> : 'none'),
  },
];

function sending(path: string, reload: () => void): Column<Delivery> {
  return {
    name: 'actions',
    title: '',
    cell: (one) => <Again path={`${path}/deliveries/${encodeURIComponent(one.id)}/replay`} reload={reload} />,
  };
}

function Again(props: { path: string; reload: () => void }): JSX.Element {
  const { busy, error, run } = useAct();
  const send = async (): Promise<void> => {
    if (await run(() => act('POST', props.path))) toast('It is on its way again.');
    props.reload();
  };
  return (
    <>
      <Button small busy={busy} onClick={() => void send()}>
        Send again
      </Button>
      {error && <Problem error={error} />}
    </>
  );
}

type Asked = 'edit' | 'rotate' | 'replay' | 'delete';

function Doings(props: { webhook: Webhook; path: string; reload: () => void }): JSX.Element | null {
  const { path, reload } = props;
  const may = useMay('operate');
  const goOn = useGoOn();
  const testing = useAct();
  const [asked, setAsked] = useState<Asked>();
  const [secret, setSecret] = useState('');
  const [overlap, setOverlap] = useState('86400');
  if (!may) return null;
  const close = (): void => setAsked(undefined);
  const test = async (): Promise<void> => {
    if (await testing.run(() => act('POST', `${path}/test`))) toast('A test is on its way.');
    reload();
  };
  const rotate = async (): Promise<void> => {
    const body = { overlap_seconds: Number(overlap) };
    setSecret((await act<{ secret: string }>('POST', `${path}/rotate`, body)).secret);
    reload();
  };
  const remove = async (): Promise<void> => {
    await act('DELETE', path);
    toast('The webhook is gone.');
    goOn('/ui/webhooks');
  };
  return (
    <>
      {testing.error && <Problem error={testing.error} />}
      <Button kind="primary" busy={testing.busy} onClick={() => void test()}>
        Send a test
      </Button>
      <Button onClick={() => setAsked('replay')}>Send again since…</Button>
      <Button onClick={() => setAsked('edit')}>Change…</Button>
      <Button onClick={() => setAsked('rotate')}>Rotate secret…</Button>
      <Button kind="danger" onClick={() => setAsked('delete')}>
        Delete…
      </Button>
      {asked === 'edit' && (
        <WebhookDialog
          webhook={props.webhook}
          onClose={close}
          onMade={() => {
            close();
            reload();
          }}
        />
      )}
      {asked === 'replay' && <Replay path={path} onClose={close} />}
      <Confirm
        title="Rotate the secret?"
        open={asked === 'rotate'}
        onClose={close}
        action="Make the new secret"
        kind="primary"
        onConfirm={rotate}
      >
        <p>Deliveries are signed with the new secret. How long with the old one as well?</p>
        <Select
          label="How long the old secret signs"
          value={overlap}
          choices={[
            { value: '0', label: 'not at all' },
            { value: '3600', label: 'for an hour' },
            { value: '86400', label: 'for a day' },
            { value: '604800', label: 'for a week' },
          ]}
          onChange={setOverlap}
        />
      </Confirm>
      <Confirm
        title="Delete this webhook?"
        open={asked === 'delete'}
        onClose={close}
        action="Delete it"
        onConfirm={remove}
      >
        <p>It goes with the list of its deliveries and what was still on its way.</p>
      </Confirm>
      {secret && (
        <Secret
          title="The new secret"
          about="It signs every delivery and is shown only now. Keep it where your receiver is."
          label="secret"
          text={secret}
          onClose={() => setSecret('')}
        />
      )}
    </>
  );
}

function sentWords(replayed: number | null, isMore: boolean): string {
  if (replayed === null) return 'All events since then are on their way.';
  const many = `${plural(replayed, 'delivery', 'deliveries')} sent again.`;
  return isMore ? `${many} There is more: ask again.` : many;
}

function Replay(props: { path: string; onClose: () => void }): JSX.Element {
  const [since, setSince] = useState(() => localOf(new Date(Date.now() - DAY_MS).toISOString()));
  const [which, setWhich] = useState('failed');
  const { busy, error, run } = useAct();
  const send = async (): Promise<void> => {
    const isSent = await run(async () => {
      const body = { since: momentOf(since), which };
      const found = await act<{ replayed: number | null; is_more: boolean }>('POST', `${props.path}/replay`, body);
      toast(sentWords(found.replayed, found.is_more));
    });
    if (isSent) props.onClose();
  };
  return (
    <Dialog title="Send again" open onClose={props.onClose}>
      <Field label="Since" hint="In your own time zone.">
        <TextInput type="datetime-local" value={since} onInput={setSince} />
      </Field>
      <Field label="Which">
        <Select
          value={which}
          choices={[
            { value: 'failed', label: 'deliveries that were given up' },
            { value: 'all', label: 'every event that it wants' },
          ]}
          onChange={setWhich}
        />
      </Field>
      {error && <Problem error={error} />}
      <DialogFoot>
        <Button onClick={props.onClose}>Cancel</Button>
        <Button kind="primary" busy={busy} disabled={!momentOf(since)} onClick={() => void send()}>
          Send again
        </Button>
      </DialogFoot>
    </Dialog>
  );
}
