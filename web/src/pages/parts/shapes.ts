/** What the API answers to these pages, as far as they read it. The words are those of wire/*.py. */

export type JsonValue = null | boolean | number | string | JsonValue[] | { [name: string]: JsonValue };

export const LIVE_STATES = ['scheduled', 'queued', 'running'] as const;
export const FINAL_STATES = ['succeeded', 'dead', 'cancelled', 'expired'] as const;
export const STATES: readonly string[] = [...LIVE_STATES, ...FINAL_STATES];

export interface JobError {
  failure?: string;
  reason?: string;
  type?: string;
  message?: string;
  stack?: string;
  dependency?: string;
}

export interface Run {
  delivery: number;
  attempt: number;
  outcome: string;
  ended_at: string;
  ran_seconds: number;
  worker: string;
  build: string;
  reason: string;
  billable: boolean;
  progress: JsonValue;
  error: JobError | null;
}

export interface Job {
  id: string;
  type: string;
  pool: string;
  state: string;
  priority: number;
  attempts: number;
  deliveries: number;
  created_at: string;
  execute_at: string | null;
  started_at: string | null;
  finished_at: string | null;
  ran_seconds: number | null;
  billable_seconds: number;
  unbilled_seconds: number;
  timeout_seconds: number | null;
  late_seconds: number | null;
  not_after: string | null;
  on_late: string | null;
  progress: JsonValue;
  checkpoint: { number: number; size_bytes: number; saved_at: string } | null;
  payload?: JsonValue;
  payload_bytes: number | null;
  result: JsonValue;
  result_bytes: number | null;
  error: JobError | null;
  failures: { [failure: string]: number };
  parent_id: string | null;
  children: number;
  fingerprint: string | null;
  tags: string[];
  metadata: { [name: string]: string };
  history?: Run[];
}

export interface JobList {
  jobs: Job[];
  next_cursor: string | null;
}

export interface Explained {
  id: string;
  state: string;
  reason: string;
  detail: string;
  position: number | null;
  position_is_exact: boolean;
  tenants_ahead: number;
  running: number;
  fair_slots: number;
  run_seconds: number;
  start: { earliest_at: string; likely_at: string; latest_at: string } | null;
  share: {
    window_seconds: number;
    received_slot_seconds: number;
    entitled_slot_seconds: number;
  } | null;
}

export interface LogLine {
  attempt: number;
  at: string;
  level: string;
  text: string;
  dropped: number;
}

export interface LogPage {
  lines: LogLine[];
  next_cursor: string | null;
}

export type Act = 'cancel' | 'replay' | 'discard';

export interface BulkFilter {
  state?: string;
  type?: string;
  pool?: string;
  tag?: string;
  fingerprint?: string;
  since?: string;
  until?: string;
}

export interface BulkCount {
  matched: number;
  is_exact: boolean;
}

export interface BulkAction {
  id: string;
  act: Act;
  state: string;
  filter: BulkFilter;
  per_second: number;
  matched: number;
  done: number;
  asked_to_stop: number;
  skipped: number;
  failed: number;
  created_at: string;
  finished_at: string | null;
  error: string | null;
}

export interface FailureGroup {
  fingerprint: string;
  type: string;
  count: number;
  count_is_exact: boolean;
  last_job: string;
  last_died_at: string;
  error: JobError | null;
}

export interface FailureGroups {
  groups: FailureGroup[];
  types: { type: string; count: number; count_is_exact: boolean }[];
}

export interface Schedule {
  name: string;
  description: string;
  cron: string | null;
  every_seconds: number | null;
  timezone: string;
  type: string;
  payload: JsonValue;
  pool: string;
  priority: number;
  timeout_seconds: number | null;
  tick_argument: string | null;
  jitter_seconds: number;
  starts_at: string;
  ends_at: string | null;
  overlap: string;
  catch_up: string;
  catch_up_window_seconds: number;
  paused: boolean;
  source: string;
  next_runs: string[];
  last_job: string | null;
  created_at: string;
  updated_at: string;
}

export interface ScheduleRun {
  tick: string;
  outcome: string;
  cause: string;
  job: string | null;
  state: string | null;
  recorded_at: string;
}

export interface Sums {
  jobs: number;
  attempts: number;
  billed_us: number;
  unbilled_us: number;
}

export interface UsageLine extends Sums {
  period: string;
  pool: string | null;
  type: string | null;
}

export interface Usage {
  tenant: string;
  since: string;
  before: string;
  by: string;
  lines: UsageLine[];
  total: Sums;
}

export interface StatementLine extends Sums {
  kind: 'base_fee' | 'usage';
  pool: string;
  type: string;
  price_micros: number;
  amount_micros: number;
}

export interface Statement {
  tenant: string;
  month: string;
  closed: boolean;
  closed_at: string | null;
  lines: StatementLine[];
  total_micros: number;
}

export interface SpendCap {
  tenant: string;
  cap_micros: number | null;
  grace_seconds: number | null;
  spent_micros: number | null;
  stage: 'none' | 'below' | 'near' | 'reached' | 'paused';
  reached_at: string | null;
}

export interface Held {
  reason: string;
  detail: string;
  type?: string;
  pool?: string;
  for_everybody?: boolean;
}

export interface Limits {
  tier: string;
  weight: number;
  rate_per_second: number;
  burst: number;
  jobs_left: number;
  depth: number;
  depth_limit: number;
  cap: number | null;
  payload_bytes_max: number;
  payload_values_max: number;
  batch_jobs_max: number;
  batch_values_max: number;
  refused: { [code: string]: number };
  reached: string[];
  held: Held[];
}

export interface Key {
  id: string;
  scope: string;
  tenant: string | null;
  name: string;
  permissions: string[];
  pools: string[] | null;
  types: string[] | null;
  tenants: string[] | null;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
}

export interface KeyAdded {
  id: string;
  scope: string;
  tenant: string | null;
  name: string;
  api_key: string;
}

export interface Webhook {
  id: string;
  url: string;
  kinds: string[];
  description: string;
  enabled: boolean;
  disabled_because: string | null;
  failing_since: string | null;
  position: number;
  old_secret_until: string | null;
  created_at: string;
  updated_at: string;
}

export interface Delivery {
  id: string;
  kind: string;
  position: number | null;
  state: string;
  attempts: number;
  created_at: string;
  next_attempt_at: string | null;
  last_attempt_at: string | null;
  last_status: number | null;
  last_error: string | null;
}
