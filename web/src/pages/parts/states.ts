/** The states of a job, in the order of its life. */

export const LIVE_STATES = ['scheduled', 'queued', 'running'] as const;
export const FINAL_STATES = ['succeeded', 'dead', 'cancelled', 'expired'] as const;
export const STATES: readonly string[] = [...LIVE_STATES, ...FINAL_STATES];
