/** The API's own types, by the names that pages use.
 *
 * They are made from its OpenAPI document when the types are checked (`make web`), so a page that
 * reads a field which is not there is noticed. Nothing of it is in what browsers are sent.
 */
import type { Schemas } from './generated/api';

export type { Schemas };
export type Known = number | null;
export type JsonValue = null | boolean | number | string | JsonValue[] | { [name: string]: JsonValue };

// -- the platform ---------------------------------------------------------------------------------

/** Of the platform; of one tenant, what is not its own is missing, and its shares are there. */
export type PoolSight = Schemas['PoolOverview'] &
  Partial<Pick<Schemas['OwnPoolOverview'], 'share_received' | 'share_entitled'>>;
/** What operators and tenants see; what only one of them does may be missing. */
export type Overview = Partial<Omit<Schemas['Overview'], 'pools'>> & {
  at: string;
  tenant?: string;
  pools: PoolSight[];
};
export type Alarm = Schemas['AlarmView'];
export type History = Schemas['History'];
export type Share = Schemas['Share'];
export type SharePage = Schemas['ShareList'];
export type Pool = Schemas['PoolView'];
export type Worker = Schemas['WorkerView'];
export type Tenant = Schemas['TenantView'];
export type TenantPage = Schemas['TenantList'];
export type Tier = Schemas['TierView'];
export type Pause = Partial<Schemas['Pause']>;
export type Restraints = Schemas['Restraints'];
export type AuditEntry = Schemas['AuditView'];
export type AuditPage = Schemas['AuditList'];
export type Price = Schemas['PriceView'];

// -- a tenant's jobs ------------------------------------------------------------------------------

export type JobError = Partial<Schemas['JobError']>;
export type Run = Schemas['RunView'];
export type Job = Omit<Schemas['JobView'], 'payload' | 'progress' | 'result'> & {
  payload?: { [name: string]: JsonValue };
  progress: JsonValue;
  result: JsonValue;
};
export type JobList = Omit<Schemas['JobList'], 'jobs'> & { jobs: Job[] };
export type Explained = Schemas['Explained'];
export type LogLine = Schemas['LogLine'];
export type LogPage = Schemas['LogPage'];
export type Act = Schemas['BulkRequest']['act'];
export type BulkFilter = Partial<Schemas['BulkFilters']>;
export type BulkCount = Schemas['BulkCount'];
export type BulkAction = Schemas['BulkActionView'];
export type FailureGroup = Schemas['FailureGroup'];
export type FailureGroups = Schemas['FailureGroups'];
export type Flow = Omit<Schemas['FlowView'], 'error'> & { error: JobError | null };
export type FlowPage = Omit<Schemas['FlowList'], 'flows'> & { flows: Flow[] };
export type Schedule = Omit<Schemas['ScheduleView'], 'payload'> & { payload: JsonValue };
export type ScheduleRun = Schemas['ScheduleRun'];
export type TenantEvent = Schemas['EventView'];
export type EventPage = Schemas['EventList'];

// -- a tenant's account ---------------------------------------------------------------------------

export type Usage = Schemas['Usage'];
export type UsageLine = Schemas['UsageLine'];
export type Statement = Schemas['StatementView'];
export type StatementLine = Schemas['StatementLine'];
export type SpendCap = Schemas['SpendCapView'];
export type HeldBack = Partial<Schemas['HeldBack']> & Pick<Schemas['HeldBack'], 'reason' | 'detail'>;
export type Limits = Omit<Schemas['Limits'], 'held'> & { held: HeldBack[] };
export type Key = Schemas['KeyView'];
export type KeyAdded = Schemas['KeyAdded'];
export type Webhook = Schemas['WebhookView'];
export type Delivery = Schemas['DeliveryView'];

// -- the fleet, marks and alarms that are over -------------------------------------------------------

export type ListedServer = Schemas['ServerView'];
export type ServerList = Schemas['ServerList'];
export type Region = Schemas['RegionView'];
export type RegionList = Schemas['RegionList'];
/** The move of a tenant to another shard. */
export type Move = Schemas['MoveView'];
export type ShardList = Schemas['ShardList'];
/** One pool as the autoscaler sees it. */
export type ScaledPool = Schemas['AutoscaleView'];
export type ScalingDecision = Schemas['ScaleDecisionView'];
/** Something that happened to the platform at a moment, for lines on charts. */
export type KeptMark = Schemas['MarkView'];
export type PastAlarm = Schemas['AlarmRecord'];
