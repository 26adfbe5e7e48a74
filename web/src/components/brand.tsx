import type { JSX } from 'preact';

/** Lanes that turn off one road. */
export function BrandMark(): JSX.Element {
  return (
    <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" class="brand-mark">
      <path d="M3 17V7a4 4 0 0 1 4-4h10" />
      <path d="M8.5 17v-5a3 3 0 0 1 3-3H17" />
      <path d="M14 17v-1a1 1 0 0 1 1-1h2" />
    </svg>
  );
}
