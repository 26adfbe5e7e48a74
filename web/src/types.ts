/** Shapes of the API as operators' pages read them. Unknown numbers are null. */

export type Known = number | null;

export interface Quantiles {
  p50: Known;
  p95: Known;
  p99: Known;
}

export interface PoolSight {
  name: string;
  queued: Known;
  running: Known;
  slots: Known;
  utilisation: Known;
  oldest_runnable_age_seconds: Known;
  slo_seconds: Known;
  held: Partial<Record<string, number>> | null;
  accepted_per_second: Known;
  started_per_second: Known;
  ended_per_second: Known;
  failed_per_second: Known;
  retried_per_second: Known;
  dead_per_second: Known;
  pickup_seconds: Quantiles | null;
  end_to_end_seconds: Quantiles | null;
  drain_seconds: Known;
  near_knee: boolean | null;
  /** Of a tenant only. */
  share_received?: Known;
  share_entitled?: Known;
}

export interface Reason {
  code: string;
  text: string;
  link: string;
}

export interface Alarm {
  name: string;
  severity: 'warning' | 'critical';
  subject: string;
  since: string;
  text: string;
  value: Known;
  threshold: Known;
  runbook: string;
  link: string;
}

export interface Overview {
  at: string;
  tenant?: string;
  health?: { status: 'ok' | 'warning' | 'critical'; reasons: Reason[] };
  pools: PoolSight[];
  workers?: { live: Known; draining: Known };
  shards?: { owned: Known; total: Known };
  restraints?: Partial<Record<string, Known>>;
  alarms?: Alarm[];
}

export interface History {
  of: string;
  name: string | null;
  step_seconds: number;
  at: number[];
  accepted: Known[];
  started: Known[];
  succeeded: Known[];
  failed: Known[];
  retried: Known[];
  dead: Known[];
  queued: Known[];
  running: Known[];
  slots: Known[];
  oldest_age_seconds: Known[];
  pickup_p50: Known[];
  pickup_p99: Known[];
  run_p50: Known[];
  run_p99: Known[];
}

export interface Share {
  tenant: string;
  pool: string;
  weight: number;
  queued: Known;
  running: Known;
  share_received: Known;
  share_entitled: Known;
  throttled: boolean;
}

export interface SharePage {
  items: Share[];
  next: string | null;
}

export interface Pool {
  name: string;
  slots: number;
  lease_mode: string;
  lease_seconds: number;
  run_mode: string | null;
  checkpoint: string;
  attempts: number;
  pickup_target_seconds: number;
  labels: string[];
  reserved_per_mille: number;
  fits_seconds: number | null;
}

export interface Worker {
  name: string;
  life: string;
  tenant: string | null;
  build: string;
  slots: Record<string, number>;
  running: Record<string, number>;
  draining: boolean;
  silent_seconds: number;
  limits: Record<string, string>;
}

export interface Tenant {
  id: number;
  name: string;
  tier: string;
  weight: number;
  floor_per_mille: number;
  cap: number | null;
  reserved: Record<string, number>;
  rate_per_second: number;
  burst: number;
  depth_limit: number;
  state: 'active' | 'suspended' | 'deleted';
  reason: string;
  running: 'finish' | 'cancel' | null;
  state_since: string | null;
  kept_until: string | null;
}

export interface TenantPage {
  tenants: Tenant[];
  next_cursor: string | null;
}

export interface Tier {
  name: string;
  weight: number;
  group: string;
  floor_per_mille: number;
  cap: number | null;
  rate_per_second: number;
  burst: number;
  depth_limit: number;
}

export interface HeldBack {
  reason: string;
  detail: string;
  type?: string | null;
  pool?: string | null;
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
  refused: Record<string, number>;
  reached: string[];
  held: HeldBack[];
}

export interface Pause {
  tenant?: string | null;
  type?: string | null;
  pool?: string | null;
}

export interface Restraints {
  circuits: { type: string; dependency: string; opened_at: string; next_probe_seconds: number }[];
  quarantines: { type: string; since: string }[];
}

export interface AuditEntry {
  id: number;
  at: string;
  actor: string;
  actor_name: string;
  actor_kind: string;
  address: string;
  request_id: string;
  tenant: string | null;
  action: string;
  subject: string;
  detail: string;
  before: Record<string, unknown>;
  after: Record<string, unknown>;
}

export interface AuditPage {
  entries: AuditEntry[];
  next_cursor: string | null;
}
