/** What happened to a job, in order: submitted, each run that was no success, the run of now. */
import type { ComponentChildren, JSX } from 'preact';

import { Badge, Code, Time } from '../../components';
import { seconds } from '../../format';
import type { Job, JobError, Run } from '../../types';
import { errorLine, stateTone, waitedSeconds, type Tone } from '../parts/words';

const HISTORY_MAX = 50;

export function Timeline(props: { job: Job }): JSX.Element {
  const { job } = props;
  const runs = job.history ?? [];
  return (
    <ol class="timeline">
      <Step tone="muted" at={job.created_at} title="Submitted">
        <Words>
          To the pool {job.pool} with priority {job.priority}.
        </Words>
      </Step>
      {runs.length >= HISTORY_MAX && (
        <li class="muted">Only the last {HISTORY_MAX} entries are kept.</li>
      )}
      {runs.map((run, n) => (
        <RunStep key={n} run={run} />
      ))}
      <Present job={job} />
    </ol>
  );
}

function Present(props: { job: Job }): JSX.Element | null {
  const { job } = props;
  if (job.held_in) return <Held job={job} />;
  if (job.state === 'scheduled') {
    return (
      <Step tone="info" at={job.execute_at} title={job.attempts ? 'Next attempt is due' : 'Due'} />
    );
  }
  if (job.state === 'queued') return <Step tone="info" at={null} title="Waits for a slot" />;
  if (job.state === 'running') {
    return (
      <Step tone="info" at={job.started_at} title={`Attempt ${job.attempts} runs`}>
        <Words>Waited {seconds(waitedSeconds(job))} before it began.</Words>
      </Step>
    );
  }
  const ran = job.ran_seconds === null ? '' : `The last run took ${seconds(job.ran_seconds)}. `;
  return (
    <Step tone={stateTone(job.state)} at={job.finished_at} title={titled(job.state)}>
      <Words>
        {ran}
        {job.state === 'succeeded' && `It was attempt ${job.attempts}.`}
        {job.state === 'expired' && 'Its last moment to start had passed.'}
      </Words>
    </Step>
  );
}

/** It was accepted, or left its region, while its tenant's home did not answer. */
function Held(props: { job: Job }): JSX.Element {
  const { held_in: here, held_for: home } = props.job;
  return (
    <Step tone="info" at={null} title={`Held in the region ${here}`}>
      <Words>It starts in {home}, its tenant's home, once that has taken it.</Words>
    </Step>
  );
}

function RunStep(props: { run: Run }): JSX.Element {
  const { run } = props;
  if (run.outcome === 'replayed') {
    return <Step tone="info" at={run.ended_at} title="Replayed" />;
  }
  return (
    <Step
      tone={stateTone(run.outcome)}
      at={run.ended_at}
      title={`Attempt ${run.attempt}: ${run.outcome}`}
    >
      <Words>
        Delivery {run.delivery}, ran {seconds(run.ran_seconds)} on {run.worker || 'a worker'}
        {run.build && `, build ${run.build}`}. {run.reason && `Decided: ${run.reason}. `}
        {!run.billable && 'Not billed.'}
      </Words>
      {run.error && <ErrorDetails error={run.error} />}
    </Step>
  );
}

function Step(props: {
  tone: Tone;
  at: string | null;
  title: string;
  children?: ComponentChildren;
}): JSX.Element {
  return (
    <li class={`step step-${props.tone}`}>
      <div class="step-head">
        <strong>{props.title}</strong>
        {props.at && <Time at={props.at} />}
      </div>
      {props.children}
    </li>
  );
}

function Words(props: { children: ComponentChildren }): JSX.Element {
  return <p class="muted">{props.children}</p>;
}

/** What a run said when it failed; its stack is there for who wants it. */
export function ErrorDetails(props: { error: JobError; open?: boolean }): JSX.Element {
  const { error } = props;
  return (
    <div class="run-error">
      <p>
        {error.failure && <Badge tone="bad">{error.failure}</Badge>}{' '}
        <span class="break">{errorLine(error)}</span>
        {error.dependency && <span class="muted"> (dependency {error.dependency})</span>}
      </p>
      {error.stack && (
        <details open={props.open}>
          <summary>Stack</summary>
          <Code text={error.stack} label="Stack" />
        </details>
      )}
    </div>
  );
}

function titled(state: string): string {
  return state.charAt(0).toUpperCase() + state.slice(1);
}

