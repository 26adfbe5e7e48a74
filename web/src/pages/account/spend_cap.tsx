/** What may be spent this month, and where that stands. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct, useLoad } from '../../api';
import { Badge, Button, Card, Confirm, Dialog, DialogFoot, Field, Form, Loads, Meter, Problem, Select, TextInput, Time, toast } from '../../components';
import { percent, seconds } from '../../format';
import { useMay, useSession } from '../../session';
import type { SpendCap } from '../../types';
import { microsOf, money, type Tone } from '../parts/words';

const STAGES: Record<SpendCap['stage'], { tone: Tone; words: string }> = {
  none: { tone: 'muted', words: 'There is no cap: what is used is billed.' },
  below: { tone: 'ok', words: 'Well below the cap.' },
  near: { tone: 'warn', words: 'Four fifths or more are spent.' },
  reached: { tone: 'bad', words: 'All of it is spent. When the grace is over, no more jobs start.' },
  paused: { tone: 'bad', words: 'The grace is over: jobs are accepted and wait until the cap is raised or the month ends.' },
};

export function SpendCapCard(): JSX.Element {
  const found = useLoad<SpendCap>('/v1/spend-cap');
  const isOperator = useSession().scope === 'operator';
  const maySet = useMay('admin') && isOperator;
  return (
    <Card title="Spend cap" actions={maySet && found.data && <Setting cap={found.data} reload={found.reload} />}>
      <Loads of={found}>{(cap) => <Standing cap={cap} isOperator={isOperator} />}</Loads>
    </Card>
  );
}

/** Operators set what a tenant may spend; it is named in the path, whoever is picked. */
function Setting(props: { cap: SpendCap; reload: () => void }): JSX.Element {
  const { cap, reload } = props;
  const [asked, setAsked] = useState<'set' | 'remove'>();
  const path = `/v1/tenants/${encodeURIComponent(cap.tenant)}/spend-cap`;
  const close = (): void => setAsked(undefined);
  return (
    <>
      <Button small onClick={() => setAsked('set')}>
        {cap.cap_micros === null ? 'Set a cap…' : 'Change…'}
      </Button>
      {cap.cap_micros !== null && (
        <Button small onClick={() => setAsked('remove')}>
          Remove…
        </Button>
      )}
      {asked === 'set' && <CapDialog cap={cap} path={path} onClose={close} onDone={reload} />}
      <Confirm
        title={`Remove the spend cap of ${cap.tenant}?`}
        open={asked === 'remove'}
        onClose={close}
        action="Remove it"
        onConfirm={async () => {
          await act('DELETE', path, undefined, { tenant: null });
          toast('There is no cap any more.');
          reload();
        }}
      >
        <p>It may spend what it likes; jobs that the cap held start again.</p>
      </Confirm>
    </>
  );
}

const GRACES = [
  { value: '0', label: 'none: jobs wait at once' },
  { value: '3600', label: 'an hour' },
  { value: '86400', label: 'a day' },
  { value: '604800', label: 'a week' },
];

function CapDialog(props: { cap: SpendCap; path: string; onClose: () => void; onDone: () => void }): JSX.Element {
  const { cap } = props;
  const [most, setMost] = useState(cap.cap_micros === null ? '' : String(cap.cap_micros / 1e6));
  const [grace, setGrace] = useState(String(cap.grace_seconds ?? 3600));
  const { busy, error, run } = useAct();
  const micros = microsOf(most);
  const save = async (): Promise<void> => {
    const body = { cap_micros: micros, grace_seconds: Number(grace) };
    if (!(await run(() => act('PUT', props.path, body, { tenant: null })))) return;
    toast('The cap holds.');
    props.onDone();
    props.onClose();
  };
  const other = { value: grace, label: seconds(Number(grace)) };
  const graces = GRACES.some((one) => one.value === grace) ? GRACES : [...GRACES, other];
  return (
    <Dialog title={`What ${cap.tenant} may spend`} open onClose={props.onClose}>
      <Form onSubmit={() => void save()}>
        <p>When it is spent the tenant is told; after the grace its jobs are accepted and wait. What runs, runs on.</p>
        <Field label="In a month of UTC" hint="In your currency.">
          <TextInput value={most} onInput={setMost} placeholder="50.00" autoFocus />
        </Field>
        <Field label="Grace">
          <Select value={grace} choices={graces} onChange={setGrace} />
        </Field>
        {error && <Problem error={error} />}
        <DialogFoot>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="primary" submit busy={busy} disabled={micros === null}>
            Set the cap
          </Button>
        </DialogFoot>
      </Form>
    </Dialog>
  );
}

function Standing(props: { cap: SpendCap; isOperator: boolean }): JSX.Element {
  const { cap } = props;
  const stage = STAGES[cap.stage];
  if (cap.cap_micros === null || cap.spent_micros === null) {
    return (
      <p>
        <Badge tone={stage.tone}>no cap</Badge> {stage.words}
      </p>
    );
  }
  const part = cap.cap_micros > 0 ? cap.spent_micros / cap.cap_micros : 1;
  const words = `${money(cap.spent_micros)} of ${money(cap.cap_micros)} this month`;
  return (
    <>
      <p>
        <Badge tone={stage.tone}>{cap.stage}</Badge> <strong class="num">{words}</strong>{' '}
        <span class="muted">({percent(part)})</span>
      </p>
      <Meter part={part} tone={stage.tone} label={words} />
      <p class="muted">
        {stage.words} {cap.reached_at && (
          <>
            Reached <Time at={cap.reached_at} relative />.
          </>
        )}{' '}
        {cap.grace_seconds !== null && `The grace is ${seconds(cap.grace_seconds)}. `}
        {!props.isOperator && 'An operator sets the cap.'}
      </p>
    </>
  );
}
