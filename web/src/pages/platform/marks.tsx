/** What happened to the platform, for lines on charts: deploys, incidents, notes, and what people
 * changed. "What did we do at ten?" */
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';

import { act, useAct, useLoad, withQuery } from '../../api';
import { Badge, Button, Card, type ChartMark, Dialog, DialogFoot, Empty, Field, Form, Problem, Select, TextInput, Time, toast, type Tone } from '../../components';
import { useMay } from '../../session';
import type { AuditEntry, AuditPage, KeptMark } from '../../types';
import { sentenceOf } from './audit_words';

const DAY_SECONDS = 86_400;
const EVERY_MS = 30_000;
const LISTED_MAX = 12;
const TEXT_MAX = 200;

/** Acts that can bend a line; making keys or webhooks cannot. */
const BENDS = new Set([
  'pause',
  'resume',
  'put_pool',
  'put_tier',
  'put_job_type',
  'job_type_moved',
  'change_tenant',
  'suspend_tenant',
  'resume_tenant',
  'drain_worker',
  'lift_quarantine',
  'set_autoscale',
  'override_autoscale',
  'end_autoscale_override',
]);

const KINDS: Record<ChartMark['kind'], [Tone, string]> = {
  incident: ['bad', 'Incident'],
  deploy: ['info', 'Deploy'],
  note: ['warn', 'Note'],
  change: ['muted', 'Change'],
};

export interface Marks {
  marks: ChartMark[];
  /** Whether this server keeps deploys, incidents and notes. */
  areKept: boolean;
  reload: () => void;
}

function ofAct(entry: AuditEntry): ChartMark {
  return { at: Date.parse(entry.at) / 1000, kind: 'change', label: sentenceOf(entry) };
}

function ofKept(mark: KeptMark): ChartMark {
  const until = mark.until === null ? null : Date.parse(mark.until) / 1000;
  return { at: Date.parse(mark.at) / 1000, until, kind: mark.kind, label: mark.text };
}

/** Of the whole platform; of what people changed, one tenant's only, if one is named, and none for
 * spans where such lines would be all there is. */
export function useMarks(span: string, tenant: string | null): Marks {
  const seconds = Number(span);
  const from = useMemo(() => new Date(Date.now() - seconds * 1000).toISOString(), [seconds]);
  const isShort = seconds <= DAY_SECONDS;
  const acts = useLoad<AuditPage>(isShort ? withQuery('/v1/audit', { since: from, limit: 100 }) : null, {
    tenant: null,
    every: EVERY_MS,
  });
  const kept = useLoad<{ items: KeptMark[] }>(withQuery('/v1/marks', { from }), { tenant: null, every: EVERY_MS });
  const marks = useMemo(() => {
    const changes = (acts.data?.entries ?? [])
      .filter((one) => BENDS.has(one.action) && (tenant === null || one.tenant === tenant))
      .map(ofAct);
    return [...(kept.data?.items ?? []).map(ofKept), ...changes].sort((a, b) => b.at - a.at);
  }, [acts.data, kept.data, tenant]);
  return { marks, areKept: kept.data !== undefined, reload: kept.reload };
}

/** The lines of the charts in words, newest first: who cannot point at them reads them here. */
export function MarkList({ marks, areKept, reload }: Marks): JSX.Element | null {
  const [isAdding, setAdding] = useState(false);
  const mayAdd = useMay('operate') && areKept;
  if (marks.length === 0 && !areKept) return null;
  return (
    <Card
      title="What happened"
      about="Deploys, incidents, notes and changes in this time: the lines on the charts."
      actions={mayAdd && <Button onClick={() => setAdding(true)}>Add a note</Button>}
    >
      {marks.length === 0 ? (
        <Empty title="Nothing is marked in this time" />
      ) : (
        <ul class="marks">
          {marks.slice(0, LISTED_MAX).map((mark) => (
            <li key={`${mark.at} ${mark.label}`} class="mark">
              <Time at={mark.at} />
              <Badge tone={KINDS[mark.kind][0]}>{KINDS[mark.kind][1]}</Badge>
              <span class="break">
                {mark.label}
                {mark.until && (
                  <span class="muted">
                    {' '}
                    until <Time at={mark.until} />
                  </span>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
      {isAdding && <AddDialog onClose={() => setAdding(false)} onDone={reload} />}
    </Card>
  );
}

function AddDialog(props: { onClose: () => void; onDone: () => void }): JSX.Element {
  const [text, setText] = useState('');
  const [kind, setKind] = useState('note');
  const { busy, error, run } = useAct();
  const add = async (): Promise<void> => {
    const body = { text: text.trim(), kind };
    if (!(await run(() => act('POST', '/v1/marks', body, { tenant: null })))) return;
    toast('It is marked.');
    props.onDone();
    props.onClose();
  };
  return (
    <Dialog title="Add a note" open onClose={props.onClose}>
      <Form onSubmit={() => void add()}>
        <p>A line on every chart at this moment, for all operators.</p>
        <Field label="What happened" hint="A few words that will still say something in a week.">
          <TextInput value={text} onInput={(said) => setText(said.slice(0, TEXT_MAX))} autoFocus />
        </Field>
        <Field label="Kind">
          <Select
            value={kind}
            choices={(['note', 'deploy', 'incident'] as const).map((value) => ({ value, label: KINDS[value][1] }))}
            onChange={setKind}
          />
        </Field>
        {error && <Problem error={error} />}
        <DialogFoot>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="primary" submit busy={busy} disabled={text.trim() === ''}>
            Add it
          </Button>
        </DialogFoot>
      </Form>
    </Dialog>
  );
}
