import type { JSX } from 'preact';

import { useLive } from '../live';

const WORDS = {
  live: ['ok', 'Live', 'The numbers are those of the last two seconds.'],
  connecting: ['muted', 'Connecting', 'The stream of numbers is being opened.'],
  waiting: ['warn', 'Not live', 'The server cannot tell the numbers now; they come by themselves.'],
  lost: ['warn', 'Not live', 'The stream of numbers broke off; it is tried again by itself.'],
} as const;

/** Whether the numbers on the page are of this moment. */
export function LiveMark(): JSX.Element {
  const { state, why } = useLive();
  const [tone, word, title] = WORDS[state];
  return (
    <span class={`live badge badge-${tone}`} title={(state === 'waiting' && why) || title} role="status">
      {word}
    </span>
  );
}
