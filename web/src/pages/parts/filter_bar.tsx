/** The filters of jobs and dead letters, kept in the address: what is seen can be sent to others. */
import type { JSX } from 'preact';

import { Button, Field } from '../../components';
import { navigate, useQuery } from '../../router';
import type { BulkFilter } from '../../types';
import { STATES } from './states';
import { localOf, momentOf } from './words';

type Name = 'state' | 'type' | 'pool' | 'tag' | 'fingerprint';

const TEXTS: Record<Exclude<Name, 'state'>, { label: string; hint: string }> = {
  type: { label: 'Job type', hint: 'email.send' },
  pool: { label: 'Pool', hint: 'short' },
  tag: { label: 'Tag', hint: 'nightly' },
  fingerprint: { label: 'Cause', hint: '16 hex digits' },
};
const LAST: [string, string, number][] = [
  ['', 'any time', 0],
  ['15m', 'last 15 minutes', 15],
  ['1h', 'last hour', 60],
  ['24h', 'last 24 hours', 24 * 60],
  ['7d', 'last 7 days', 7 * 24 * 60],
];
const MINUTE_MS = 60_000;
const JOB_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** What the address asks for, as the API wants it. */
export function filterOf(query: URLSearchParams): BulkFilter {
  const found: BulkFilter = {};
  for (const name of ['state', 'type', 'pool', 'tag', 'fingerprint'] as const) {
    const value = query.get(name);
    if (value) found[name] = value;
  }
  const span = LAST.find(([name]) => name !== '' && name === query.get('last'));
  // whole minutes: the same question stays the same address from look to look
  const now = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const since = span ? new Date(now - span[2] * MINUTE_MS).toISOString() : query.get('since');
  const until = query.get('until');
  if (since) found.since = since;
  if (until && !span) found.until = until;
  return found;
}

export function FilterBar(props: { names: Name[]; types: string[] }): JSX.Element {
  const [query, setQuery] = useQuery();
  const change = (changes: Record<string, string | null>): void =>
    setQuery({ cursor: null, ...changes });
  const clear = (): void =>
    change({
      ...Object.fromEntries(props.names.map((name) => [name, null])),
      last: null,
      since: null,
      until: null,
    });
  const isFiltered = Object.keys(filterOf(query)).length > 0;
  return (
    <form class="filters" role="search" aria-label="Filters" onSubmit={(e) => e.preventDefault()}>
      {props.names.includes('state') && (
        <States
          chosen={query.get('state')?.split(',') ?? []}
          choose={(state) => change({ state })}
        />
      )}
      {props.names
        .filter((name): name is Exclude<Name, 'state'> => name !== 'state')
        .map((name) => (
          <Field key={name} label={TEXTS[name].label}>
            <input
              class="input"
              type="search"
              name={name}
              value={query.get(name) ?? ''}
              placeholder={TEXTS[name].hint}
              list={name === 'type' ? 'known-types' : undefined}
              autocomplete="off"
              spellcheck={false}
              onChange={(e) => change({ [name]: e.currentTarget.value.trim() })}
            />
          </Field>
        ))}
      <Times query={query} change={change} />
      {props.names.includes('state') && <OpenById />}
      <Button kind="quiet" disabled={!isFiltered} onClick={clear}>
        Clear filters
      </Button>
      <datalist id="known-types">
        {props.types.map((type) => (
          <option key={type} value={type} />
        ))}
      </datalist>
    </form>
  );
}

function States(props: { chosen: string[]; choose: (state: string) => void }): JSX.Element {
  const toggle = (state: string): void => {
    const chosen = STATES.filter((one) =>
      one === state ? !props.chosen.includes(one) : props.chosen.includes(one),
    );
    props.choose(chosen.join(','));
  };
  return (
    <fieldset class="chips">
      <legend>State</legend>
      {STATES.map((state) => (
        <label key={state} class="chip">
          <input
            type="checkbox"
            name="state"
            value={state}
            checked={props.chosen.includes(state)}
            onChange={() => toggle(state)}
          />
          <span>{state}</span>
        </label>
      ))}
    </fieldset>
  );
}

function Times(props: {
  query: URLSearchParams;
  change: (changes: Record<string, string | null>) => void;
}): JSX.Element {
  const { query, change } = props;
  const isRange = query.has('since') || query.has('until') || query.get('last') === 'range';
  const choose = (last: string): void =>
    change({ last, ...(last === 'range' ? {} : { since: null, until: null }) });
  return (
    <>
      <Field label="Submitted">
        <select
          class="input select"
          name="last"
          value={isRange ? 'range' : (query.get('last') ?? '')}
          onChange={(e) => choose(e.currentTarget.value)}
        >
          {LAST.map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
          <option value="range">between…</option>
        </select>
      </Field>
      {isRange &&
        (['since', 'until'] as const).map((name) => (
          <Field key={name} label={name === 'since' ? 'From' : 'Until'}>
            <input
              class="input"
              type="datetime-local"
              name={name}
              value={localOf(query.get(name))}
              onChange={(e) => change({ last: 'range', [name]: momentOf(e.currentTarget.value) })}
            />
          </Field>
        ))}
    </>
  );
}

function OpenById(): JSX.Element {
  return (
    <Field label="Open by id">
      <input
        class="input"
        type="search"
        name="id"
        placeholder="paste a job's id"
        autocomplete="off"
        spellcheck={false}
        onInput={(e) => {
          const id = e.currentTarget.value.trim();
          if (JOB_ID.test(id)) navigate(`/ui/jobs/${id.toLowerCase()}`);
        }}
      />
    </Field>
  );
}
