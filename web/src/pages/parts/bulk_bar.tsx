/** One act on all that match a filter: first counted, then confirmed in words, then done. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { act as send, useAct } from '../../api';
import { Button, Dialog, DialogFoot, Field, Problem, Row, TextInput } from '../../components';
import { plural } from '../../format';
import { useGoOn } from '../../router';
import { useMay } from '../../session';
import type { Act, BulkAction, BulkCount, BulkFilter } from '../../types';
import { LIVE_STATES } from './states';
import { filterWords } from './words';

const WORDS: Record<Act, { verb: string; one: string; many: string; then: string }> = {
  cancel: {
    verb: 'Cancel',
    one: 'job',
    many: 'jobs',
    then: 'Those that wait are cancelled at once; those that run are asked to stop.',
  },
  replay: {
    verb: 'Replay',
    one: 'dead letter',
    many: 'dead letters',
    then: 'Each goes back to the queue under its own id with fresh counters, at your fair share.',
  },
  discard: {
    verb: 'Discard',
    one: 'dead letter',
    many: 'dead letters',
    then: 'They leave the list and stay dead. This cannot be taken back.',
  },
};

/** The part of a filter that an act takes: dead letters have one state, and a cancel no cause. */
export function actFilter(act: Act, filter: BulkFilter): BulkFilter {
  const { state, fingerprint, ...rest } = filter;
  if (act !== 'cancel') return fingerprint ? { ...rest, fingerprint } : rest;
  const live = (state?.split(',') ?? []).filter(isLive);
  return live.length ? { ...rest, state: live.join(',') } : rest;
}

/** Whether an act can be meant with these states chosen. */
function isOffered(act: Act, filter: BulkFilter): boolean {
  if (!filter.state) return true;
  const states = filter.state.split(',');
  return act === 'cancel' ? states.some(isLive) : states.includes('dead');
}

function isLive(state: string): boolean {
  return LIVE_STATES.some((one) => one === state);
}

export function BulkBar(props: { acts: Act[]; filter: BulkFilter }): JSX.Element | null {
  const may = useMay('operate');
  const [asked, setAsked] = useState<Act>();
  if (!may) return null;
  return (
    <Row class="bulk-bar">
      <span class="muted">With all that match ({filterWords(props.filter)}):</span>
      {props.acts.map((act) => (
        <Button
          key={act}
          small
          disabled={!isOffered(act, props.filter)}
          onClick={() => setAsked(act)}
        >
          {WORDS[act].verb} {act === 'cancel' ? 'jobs' : 'dead letters'}…
        </Button>
      ))}
      {asked && (
        <BulkDialog
          key={JSON.stringify(props.filter)} // another filter is counted anew
          act={asked}
          filter={props.filter}
          onClose={() => setAsked(undefined)}
        />
      )}
    </Row>
  );
}

/** Counts by a dry run as soon as it opens; nothing is done before somebody has seen the number. */
export function BulkDialog(props: {
  act: Act;
  filter: BulkFilter;
  onClose: () => void;
}): JSX.Element {
  const { act } = props;
  const words = WORDS[act];
  const filter = actFilter(act, props.filter);
  const isAll = Object.keys(filter).length === 0;
  const body = { act, filter, all: isAll };
  const [found, setFound] = useState<BulkCount>();
  const [perSecond, setPerSecond] = useState(act === 'replay' ? '100' : '');
  const goOn = useGoOn();
  const counting = useAct();
  const doing = useAct();
  useEffect(() => {
    void counting.run(async () => {
      setFound(await send<BulkCount>('POST', '/v1/bulk-actions', { ...body, dry_run: true }));
    });
  }, []);
  const begin = async (): Promise<void> => {
    const pace = Number(perSecond) > 0 ? { per_second: Number(perSecond) } : {};
    const isBegun = await doing.run(() =>
      send<BulkAction>('POST', '/v1/bulk-actions', { ...body, ...pace }),
    );
    if (isBegun) goOn('/ui/bulk-actions');
  };
  const many =
    found && `${found.is_exact ? '' : 'more than '}${plural(found.matched, words.one, words.many)}`;
  return (
    <Dialog title={`${words.verb} ${words.many}`} open onClose={props.onClose}>
      <p>
        Which: <strong>{isAll ? `every ${words.one} of this tenant` : filterWords(filter)}</strong>
      </p>
      {counting.error ? (
        <Problem error={counting.error} />
      ) : (
        <p role="status">
          {found ? `${many ?? ''} ${found.matched === 1 ? 'matches' : 'match'} now.` : 'Counting…'}
        </p>
      )}
      <p class="muted">{words.then}</p>
      <Field label="At most so many a second" hint="Left empty: as fast as it goes.">
        <TextInput type="number" min={1} max={10_000} value={perSecond} onInput={setPerSecond} />
      </Field>
      {doing.error && <Problem error={doing.error} />}
      <DialogFoot>
        <Button onClick={props.onClose}>Leave them</Button>
        <Button
          kind={act === 'replay' ? 'primary' : 'danger'}
          busy={doing.busy}
          disabled={!found || found.matched === 0}
          onClick={() => void begin()}
        >
          {words.verb} {many ?? '…'}
        </Button>
      </DialogFoot>
    </Dialog>
  );
}
