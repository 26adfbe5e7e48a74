import type { JSX } from 'preact';

import { useLive } from '../live';

const WORDS = {
  live: ['ok', 'Live', 'The numbers are those of the last two seconds.'],
  connecting: ['muted', 'Connecting', 'The stream of numbers is being opened.'],
  lost: ['warn', 'Not live', 'The stream of numbers broke off; it is tried again by itself.'],
} as const;

/** Whether the numbers on the page are of this moment. */
export function LiveMark(): JSX.Element {
  const [tone, word, title] = WORDS[useLive().state];
  return (
    <span class={`live badge badge-${tone}`} title={title} role="status">
      {word}
    </span>
  );
}
