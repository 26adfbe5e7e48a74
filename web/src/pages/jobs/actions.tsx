/** What can be done to a job: cancel it while it is not over, replay it when it is dead. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct } from '../../api';
import { Button, Check, Confirm, Dialog, DialogFoot, Field, Problem, TextArea, toast } from '../../components';
import { useMay } from '../../session';
import type { Job } from '../../types';
import { isFinal, objectOf } from '../parts/words';

export function JobActions(props: { job: Job; onDone: () => void }): JSX.Element | null {
  const { job } = props;
  const may = useMay('operate');
  if (!may) return null;
  if (!isFinal(job.state)) return <CancelButton {...props} />;
  if (job.fingerprint !== null) return <DeadLetterButtons {...props} />;
  return null;
}

function CancelButton(props: { job: Job; onDone: () => void }): JSX.Element {
  const { job } = props;
  const [isAsked, setAsked] = useState(false);
  const [withChildren, setWithChildren] = useState(false);
  const cancel = async (): Promise<void> => {
    const after = await act<Job>('DELETE', `/v1/jobs/${job.id}${withChildren ? '?children=true' : ''}`);
    toast(isFinal(after.state) ? 'The job is cancelled.' : 'The job was asked to stop.');
    props.onDone();
  };
  return (
    <>
      <Button kind="danger" onClick={() => setAsked(true)}>
        Cancel job
      </Button>
      <Confirm
        title="Cancel this job?"
        open={isAsked}
        onClose={() => setAsked(false)}
        action="Cancel the job"
        onConfirm={cancel}
      >
        <p>
          {job.state === 'running'
            ? 'It runs: it is asked to stop, and is cancelled when its handler does.'
            : 'It waits: it is cancelled at once and will not run.'}
        </p>
        <Check
          label="Also what its run started"
          checked={withChildren}
          onChange={setWithChildren}
        />
      </Confirm>
    </>
  );
}

function DeadLetterButtons(props: { job: Job; onDone: () => void }): JSX.Element {
  const [asked, setAsked] = useState<'replay' | 'discard'>();
  const discard = async (): Promise<void> => {
    await act('DELETE', `/v1/dead-letters/${props.job.id}`);
    toast('The dead letter is off the list.');
    props.onDone();
  };
  return (
    <>
      <Button kind="primary" onClick={() => setAsked('replay')}>
        Replay…
      </Button>
      <Button onClick={() => setAsked('discard')}>Discard…</Button>
      {asked === 'replay' && <ReplayDialog {...props} onClose={() => setAsked(undefined)} />}
      <Confirm
        title="Discard this dead letter?"
        open={asked === 'discard'}
        onClose={() => setAsked(undefined)}
        action="Discard it"
        onConfirm={discard}
      >
        <p>It leaves the list of dead letters. The job stays dead and cannot be replayed.</p>
      </Confirm>
    </>
  );
}

/** The same job again, with its own arguments or with mended ones. */
export function ReplayDialog(props: {
  job: Job;
  onDone: () => void;
  onClose: () => void;
}): JSX.Element {
  const own = JSON.stringify(props.job.payload ?? {}, null, 2);
  const isKnown = props.job.payload !== undefined;
  const [text, setText] = useState(own);
  const { busy, error, run } = useAct();
  const wanted = objectOf(text);
  const replay = async (): Promise<void> => {
    const body = text !== own && 'value' in wanted ? { payload: wanted.value } : {};
    if (!(await run(() => act('POST', `/v1/dead-letters/${props.job.id}/replay`, body)))) return;
    toast('The job waits again.');
    props.onClose();
    props.onDone();
  };
  return (
    <Dialog title="Replay this job" open onClose={props.onClose}>
      <p>The same job, under the same id, goes back to the queue with fresh counters.</p>
      {isKnown && (
        <Field label="Arguments" error={'why' in wanted ? wanted.why : undefined} hint="Change them to replay with others.">
          <TextArea mono rows={8} value={text} onInput={setText} />
        </Field>
      )}
      {error && <Problem error={error} />}
      <DialogFoot>
        <Button onClick={props.onClose}>Leave it</Button>
        <Button kind="primary" busy={busy} disabled={'why' in wanted} onClick={() => void replay()}>
          Replay
        </Button>
      </DialogFoot>
    </Dialog>
  );
}
