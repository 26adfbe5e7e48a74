/** Signs of the app, drawn by hand on a grid of 16: lines only, in the colour of the text. */
import type { JSX } from 'preact';

const PATHS = {
  overview: 'M2 9.5h3l2-5 2.5 8 2-5h2.5',
  pools: 'M2.5 4h11M2.5 8h11M2.5 12h11M5 2.8v2.4M10.5 6.8v2.4M7 10.8v2.4',
  workers: 'M3 3h10v4H3zM3 9h10v4H3zM5.5 5h.01M5.5 11h.01',
  fleet: 'M2.5 13.5v-3h3v3zM6.5 13.5V8h3v5.5zM10.5 13.5v-8h3v8zM2.5 6.5L6 3.5l2 1.5 4.5-3',
  tenants: 'M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13.5c.3-2.5 2-4 4.5-4s4.2 1.5 4.5 4M11 3a2.3 2.3 0 0 1 0 4.4M12.3 9.8c1.3.5 2 1.9 2.2 3.7',
  restraints: 'M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4zM6 8h4',
  alarms: 'M8 2.5a4 4 0 0 0-4 4c0 3.5-1.5 4.5-1.5 4.5h11S12 10 12 6.5a4 4 0 0 0-4-4zM6.7 13.3c.5.6 2.1.6 2.6 0',
  audit: 'M4 2.5h6l2.5 2.5v8.5H4zM6.5 7h3.5M6.5 9.5h3.5',
  prices: 'M2.5 8.5v-6h6l5.5 5.5-6 6zM5.5 5.5h.01',
  flows: 'M2.5 3h3.5v3.5H2.5zM10 3h3.5v3.5H10zM10 9.5h3.5V13H10zM6 4.8h4M4.3 6.5v4.8H10',
  events: 'M2.5 8a1 1 0 1 0 2 0 1 1 0 0 0-2 0zM7 4h6.5M7 8h6.5M7 12h6.5M3.5 2.5V7M3.5 9v4.5',
  jobs: 'M2.5 4h2v2h-2zM7 5h6.5M2.5 10h2v2h-2zM7 11h6.5',
  failures: 'M8 2.5l6 10.5H2zM8 6.5v3M8 11.3h.01',
  letters: 'M2.5 4h11v8.5h-11zM2.5 4.5L8 9l5.5-4.5',
  schedules: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8V8l2.2 1.5',
  bulk: 'M2.5 5.5l5.5-3 5.5 3-5.5 3zM2.5 8.5l5.5 3 5.5-3M2.5 11l5.5 3 5.5-3',
  usage: 'M3 13.5V8M8 13.5V3M13 13.5V10',
  limits: 'M2.5 11.5a5.5 5.5 0 1 1 11 0M8 11.5l2.5-4',
  keys: 'M10.5 8a3 3 0 1 0-2.8-2L2.5 11v2.5H5V12h1.5v-1.5H8l1-1a3 3 0 0 0 1.5-1.5zM11.3 4.7h.01',
  webhooks: 'M5 9.5a2.5 2.5 0 1 0 2.4 3.2H12M8 5.5a2.3 2.3 0 1 1 2.3 2.2M6.5 8.5L8.5 5M10 7.5l2 3.5',
  home: 'M2.5 7.5L8 2.5l5.5 5v6h-4v-4h-3v4h-4z',
  page: 'M4 2.5h8v11H4z',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  close: 'M4 4l8 8M12 4l-8 8',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3l3.2 3.2',
  check: 'M3 8.5l3.2 3L13 4.5',
  copy: 'M5.5 5.5h7v8h-7zM3.5 10.5v-8h7',
  sun: 'M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9',
  moon: 'M13 9.8A5.5 5.5 0 0 1 6.2 3a5.5 5.5 0 1 0 6.8 6.8z',
  screen: 'M2.5 3h11v7.5h-11zM6 13.5h4M8 10.5v3',
  leave: 'M6.5 2.5h-4v11h4M6.5 8h7M10.8 5.2L13.5 8l-2.7 2.8',
  right: 'M6 3.5L10.5 8 6 12.5',
  down: 'M3.5 6L8 10.5 12.5 6',
  play: 'M5 3l8 5-8 5z',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  plus: 'M8 3v10M3 8h10',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
