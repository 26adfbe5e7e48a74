/** Short words on what was just done; they go by themselves. */
import type { JSX } from 'preact';

import { Store, useStore } from '../store';

interface Said {
  id: number;
  text: string;
  tone: 'ok' | 'bad';
}

const said = new Store<Said[]>([]);
let last = 0;

export function toast(text: string, tone: 'ok' | 'bad' = 'ok'): void {
  last += 1;
  const one = { id: last, text, tone };
  said.set([...said.get().slice(-2), one]);
  setTimeout(() => said.set(said.get().filter((other) => other.id !== one.id)), 6000);
}

export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {useStore(said).map((one) => (
        <div key={one.id} class={`toast badge-${one.tone}`}>
          {one.text}
        </div>
      ))}
    </div>
  );
}
