import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { Icon } from './icon';

/** A small button that copies a text and says so for a moment. */
export function Copy(props: { text: string; label?: string; word?: string }): JSX.Element {
  const [state, setState] = useState<'idle' | 'done' | 'failed'>('idle');
  useEffect(() => {
    if (state === 'idle') return undefined;
    const timer = setTimeout(() => setState('idle'), 1600);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(props.text);
      setState('done');
    } catch {
      setState('failed'); // only pages of https and of the machine itself may copy
    }
  };
  const said = state === 'done' ? 'Copied' : state === 'failed' ? 'Select and copy by hand' : '';
  return (
    <button
      type="button"
      class="copy"
      aria-label={props.label ?? 'Copy'}
      title={props.label ?? 'Copy'}
      onClick={(event) => {
        event.stopPropagation();
        void copy();
      }}
    >
      <Icon name={state === 'done' ? 'check' : 'copy'} />
      {props.word && <span>{said || props.word}</span>}
      <span class="sr-only" role="status">
        {said}
      </span>
    </button>
  );
}
