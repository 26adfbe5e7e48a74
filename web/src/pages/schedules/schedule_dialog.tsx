/** Makes or changes a schedule. What it would do is shown in words before anything is kept. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { act, asApiError, type ApiError, useAct } from '../../api';
import { Button, Dialog, DialogFoot, Field, Form, Grid, Problem, Select, TextArea, TextInput, Time, toast } from '../../components';
import type { JsonValue, Schedule } from '../../types';
import { objectOf } from '../parts/words';

const PREVIEW_AFTER_MS = 400;
const OVERLAPS = [
  { value: 'skip', label: 'skip the tick' },
  { value: 'queue_one', label: 'run once more afterwards' },
  { value: 'cancel_running', label: 'cancel the run before' },
  { value: 'allow', label: 'run beside it' },
];
const CATCH_UPS = [
  { value: 'last', label: 'run the last one' },
  { value: 'none', label: 'run none' },
  { value: 'all', label: 'run all of them' },
];

interface Draft {
  name: string;
  by: 'cron' | 'interval';
  cron: string;
  everySeconds: string;
  timezone: string;
  type: string;
  payload: string;
  pool: string;
  overlap: string;
  catchUp: string;
}

function draftOf(one: Schedule | undefined): Draft {
  return {
    name: one?.name ?? '',
    by: one && one.every_seconds !== null ? 'interval' : 'cron',
    cron: one?.cron ?? '0 9 * * MON-FRI',
    everySeconds: String(one?.every_seconds ?? 3600),
    timezone: one?.timezone ?? (Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'),
    type: one?.type ?? '',
    payload: JSON.stringify(one?.payload ?? {}, null, 2),
    pool: one?.pool ?? '',
    overlap: one?.overlap ?? 'skip',
    catchUp: one?.catch_up ?? 'last',
  };
}

type Body = Record<string, JsonValue>;
type Said = { body: Body; why?: undefined } | { body?: undefined; why: string };

/** What is sent; what this form does not show stays as it was. */
function bodyOf(draft: Draft, before: Schedule | undefined): Said {
  const payload = objectOf(draft.payload);
  if ('why' in payload) return { why: payload.why };
  const body: Body = {
    type: draft.type.trim(),
    payload: payload.value,
    timezone: draft.timezone.trim(),
    overlap: draft.overlap,
    catch_up: draft.catchUp,
  };
  if (draft.by === 'cron') body.cron = draft.cron.trim();
  else body.every_seconds = Number(draft.everySeconds);
  if (draft.pool.trim()) body.pool = draft.pool.trim();
  return { body: before ? { ...keptOf(before), ...body } : body };
}

function keptOf(before: Schedule): Body {
  return {
    priority: before.priority,
    timeout_seconds: before.timeout_seconds,
    tick_argument: before.tick_argument,
    jitter_seconds: before.jitter_seconds,
    starts_at: before.starts_at,
    ends_at: before.ends_at,
    catch_up_window_seconds: before.catch_up_window_seconds,
    paused: before.paused,
    source: before.source,
  };
}

interface Preview {
  description: string;
  next_runs: string[];
}

/** Asked a moment after the last key; a refusal is shown in the server's own words. */
function usePreview(body: Body | undefined): {
  preview: Preview | undefined;
  refused: ApiError | undefined;
} {
  const [seen, setSeen] = useState<{ preview?: Preview; refused?: ApiError }>({});
  const text = JSON.stringify(body);
  useEffect(() => {
    if (!body?.type) return undefined;
    let isOver = false;
    const timer = setTimeout(() => {
      act<Preview>('POST', '/v1/schedule-preview', body)
        .then((preview) => !isOver && setSeen({ preview }))
        .catch((error: unknown) => !isOver && setSeen({ refused: asApiError(error) }));
    }, PREVIEW_AFTER_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [text]);
  return { preview: seen.preview, refused: seen.refused };
}

export function ScheduleDialog(props: {
  schedule?: Schedule;
  onClose: () => void;
  onSaved: (name: string) => void;
}): JSX.Element {
  const before = props.schedule;
  const [draft, setDraft] = useState(() => draftOf(before));
  const change = (changes: Partial<Draft>): void => setDraft((old) => ({ ...old, ...changes }));
  const { body, why } = bodyOf(draft, before);
  const { preview, refused } = usePreview(body);
  const { busy, error, run } = useAct();
  const name = draft.name.trim();
  const save = async (): Promise<void> => {
    if (!body) return;
    const isSaved = await run(() => act('PUT', `/v1/schedules/${encodeURIComponent(name)}`, body));
    if (!isSaved) return;
    toast(before ? 'The schedule is changed.' : 'The schedule is made.');
    props.onClose();
    props.onSaved(name);
  };
  return (
    <Dialog title={before ? `Change ${before.name}` : 'New schedule'} open wide onClose={props.onClose}>
      <Form onSubmit={() => void save()}>
        {!before && (
          <Field label="Name" hint="Letters, digits and _ . - ; it cannot be changed later.">
            <TextInput autoFocus value={draft.name} onInput={(text) => change({ name: text })} />
          </Field>
        )}
        <Grid columns={2}>
          <Field label="Comes by">
            <Select
              value={draft.by}
              choices={[
                { value: 'cron', label: 'cron expression' },
                { value: 'interval', label: 'fixed interval' },
              ]}
              onChange={(by) => change({ by: by === 'cron' ? 'cron' : 'interval' })}
            />
          </Field>
          {draft.by === 'cron' ? (
            <Field label="Cron" hint="Minute, hour, day of month, month, day of week.">
              <TextInput mono value={draft.cron} onInput={(cron) => change({ cron })} />
            </Field>
          ) : (
            <Field label="Every so many seconds" hint="Ten at least.">
              <TextInput
                type="number"
                min={10}
                value={draft.everySeconds}
                onInput={(text) => change({ everySeconds: text })}
              />
            </Field>
          )}
          <Field label="Time zone" hint="Whose clocks are meant.">
            <TextInput value={draft.timezone} onInput={(timezone) => change({ timezone })} />
          </Field>
          <Field label="Job type">
            <TextInput value={draft.type} placeholder="report.build" onInput={(type) => change({ type })} />
          </Field>
          <Field label="Pool" hint="Left empty: its type's own.">
            <TextInput value={draft.pool} placeholder="short" onInput={(pool) => change({ pool })} />
          </Field>
          <Field label="While the run before is not over">
            <Select value={draft.overlap} choices={OVERLAPS} onChange={(overlap) => change({ overlap })} />
          </Field>
          <Field label="Ticks missed in an outage">
            <Select value={draft.catchUp} choices={CATCH_UPS} onChange={(catchUp) => change({ catchUp })} />
          </Field>
        </Grid>
        <Field label="Arguments" error={why} hint="A JSON object.">
          <TextArea mono rows={4} value={draft.payload} onInput={(payload) => change({ payload })} />
        </Field>
        <div class="preview" role="status">
          {refused && !error && <Problem error={refused} />}
          {preview && <PreviewWords preview={preview} />}
          {!preview && !refused && (
            <p class="muted">Name a job type, and what this will do is shown here in words.</p>
          )}
        </div>
        {error && <Problem error={error} />}
        <DialogFoot>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="primary" submit busy={busy} disabled={!name || !body?.type}>
            {before ? 'Save' : 'Make schedule'}
          </Button>
        </DialogFoot>
      </Form>
    </Dialog>
  );
}

function PreviewWords(props: { preview: Preview }): JSX.Element {
  const { description, next_runs } = props.preview;
  return (
    <>
      <p>
        <strong>{description}</strong>
      </p>
      {next_runs.length > 0 && (
        <ol class="next-runs">
          {next_runs.slice(0, 5).map((at) => (
            <li key={at}>
              <Time at={at} />
            </li>
          ))}
        </ol>
      )}
    </>
  );
}
