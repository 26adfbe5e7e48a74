/** One schedule: its next runs in words, what became of the last ones, and what can be done. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct, useLoad } from '../../api';
import { Badge, Button, Card, Confirm, Dialog, DialogFoot, Empty, Facts, Field, Grid, Json, Loads, Page, Problem, Tag, TextInput, Time, toast } from '../../components';
import { ago, plural, seconds } from '../../format';
import { Link, useGoOn, useParams } from '../../router';
import { useMay } from '../../session';
import type { Schedule } from '../../types';
import { localOf, momentOf } from '../parts/words';
import { ScheduleDialog } from './schedule_dialog';
import { Runs } from './schedule_runs';

const EVERY_MS = 5000;
const DAY_MS = 86_400_000;

export function SchedulePage(): JSX.Element {
  const name = useParams().name ?? '';
  const path = `/v1/schedules/${encodeURIComponent(name)}`;
  const found = useLoad<Schedule>(path, { every: EVERY_MS });
  return (
    <Page
      title={name}
      above={<Link to="/ui/schedules">Schedules</Link>}
      about={found.data?.description}
      actions={found.data && <Doings schedule={found.data} path={path} reload={found.reload} />}
    >
      <Loads of={found}>
        {(one) => (
          <>
            <Grid columns={2}>
              <NextRuns schedule={one} />
              <About schedule={one} />
            </Grid>
            <Runs path={path} last={one.last_job} />
          </>
        )}
      </Loads>
    </Page>
  );
}

function NextRuns(props: { schedule: Schedule }): JSX.Element {
  const { schedule } = props;
  return (
    <Card
      title="Next runs"
      actions={schedule.paused && <Badge tone="warn">paused</Badge>}
    >
      {schedule.next_runs.length ? (
        <ol class="next-runs">
          {schedule.next_runs.map((at) => (
            <li key={at}>
              {ago(at)} <span class="muted">(<Time at={at} />)</span>
            </li>
          ))}
        </ol>
      ) : (
        <Empty
          title={schedule.paused ? 'None while it is paused' : 'None any more'}
          text={schedule.paused ? 'Resume it, and it goes on with the next tick.' : 'It has come to its end.'}
        />
      )}
    </Card>
  );
}

function About(props: { schedule: Schedule }): JSX.Element {
  const { schedule: one } = props;
  return (
    <Card title="What each tick makes">
      <Facts
        items={[
          ['Job type', <span class="job-type">{one.type}</span>],
          ['Pool', <Tag>{one.pool}</Tag>],
          ['When', one.cron ? <code>{one.cron}</code> : `every ${seconds(one.every_seconds)}`],
          ['Time zone', one.timezone],
          ['While one runs', one.overlap.replaceAll('_', ' ')],
          ['Missed ticks', `${one.catch_up}, back to ${seconds(one.catch_up_window_seconds)}`],
          one.jitter_seconds > 0 && ['Spread', `up to ${seconds(one.jitter_seconds)}`],
          one.timeout_seconds !== null && ['Time limit', seconds(one.timeout_seconds)],
          one.tick_argument !== null && ['Tick goes to', <code>{one.tick_argument}</code>],
          ['Since', <Time at={one.starts_at} />],
          one.ends_at !== null && ['Until', <Time at={one.ends_at} />],
          ['Declared by', one.source || 'hand'],
          ['Changed', <Time at={one.updated_at} relative />],
        ]}
      />
      <h3>Arguments</h3>
      <Json value={one.payload} label="Arguments" />
    </Card>
  );
}

function Doings(props: { schedule: Schedule; path: string; reload: () => void }): JSX.Element | null {
  const { schedule: one, path, reload } = props;
  const may = useMay('operate');
  const goOn = useGoOn();
  const { busy, error, run } = useAct();
  const [asked, setAsked] = useState<'edit' | 'backfill' | 'delete'>();
  if (!may) return null;
  const close = (): void => setAsked(undefined);
  const pause = async (): Promise<void> => {
    await run(() => act('POST', `${path}/${one.paused ? 'resume' : 'pause'}`));
    reload();
  };
  const trigger = async (): Promise<void> => {
    await run(async () => {
      const made = await act<{ id: string }>('POST', `${path}/trigger`);
      toast('A run is made.');
      goOn(`/ui/jobs/${made.id}`);
    });
  };
  const remove = async (): Promise<void> => {
    await act('DELETE', path);
    toast('The schedule is gone.');
    goOn('/ui/schedules');
  };
  return (
    <>
      {error && <Problem error={error} />}
      <Button kind="primary" busy={busy} onClick={() => void trigger()}>
        Run now
      </Button>
      <Button busy={busy} onClick={() => void pause()}>
        {one.paused ? 'Resume' : 'Pause'}
      </Button>
      <Button onClick={() => setAsked('backfill')}>Backfill…</Button>
      <Button onClick={() => setAsked('edit')}>Change…</Button>
      <Button kind="danger" onClick={() => setAsked('delete')}>
        Delete…
      </Button>
      {asked === 'edit' && <ScheduleDialog schedule={one} onClose={close} onSaved={reload} />}
      {asked === 'backfill' && <Backfill path={path} onClose={close} onDone={reload} />}
      <Confirm
        title={`Delete ${one.name}?`}
        open={asked === 'delete'}
        onClose={close}
        action="Delete it"
        onConfirm={remove}
      >
        <p>It goes with the list of its runs. Jobs that it made stay.</p>
      </Confirm>
    </>
  );
}

function Backfill(props: { path: string; onClose: () => void; onDone: () => void }): JSX.Element {
  const [since, setSince] = useState(() => localOf(new Date(Date.now() - DAY_MS).toISOString()));
  const [until, setUntil] = useState(() => localOf(new Date().toISOString()));
  const { busy, error, run } = useAct();
  const fill = async (): Promise<void> => {
    const isMade = await run(async () => {
      const body = { since: momentOf(since), until: momentOf(until) };
      const found = await act<{ made: number; already: number }>('POST', `${props.path}/backfill`, body);
      toast(`${plural(found.made, 'run')} made, ${plural(found.already, 'tick')} had theirs before.`);
    });
    if (!isMade) return;
    props.onClose();
    props.onDone();
  };
  return (
    <Dialog title="Backfill" open onClose={props.onClose}>
      <p>
        A run for every tick between two moments of the past that has none, all due now. At most
        1,000 ticks; asked twice, nothing runs twice.
      </p>
      <Field label="From" hint="In your own time zone.">
        <TextInput type="datetime-local" value={since} onInput={setSince} />
      </Field>
      <Field label="Until">
        <TextInput type="datetime-local" value={until} onInput={setUntil} />
      </Field>
      {error && <Problem error={error} />}
      <DialogFoot>
        <Button onClick={props.onClose}>Cancel</Button>
        <Button
          kind="primary"
          busy={busy}
          disabled={!momentOf(since) || !momentOf(until)}
          onClick={() => void fill()}
        >
          Make the runs
        </Button>
      </DialogFoot>
    </Dialog>
  );
}
