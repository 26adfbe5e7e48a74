/** Pages about one tenant, for its own people and for operators who picked it. */
import type { Route } from '../router';
import { BulkActionsPage } from './failures/bulk_actions';
import { DeadLettersPage } from './failures/dead_letters';
import { EventsPage } from './events/events';
import { FailuresPage } from './failures/failures';
import { FlowPage } from './flows/flow';
import { FlowsPage } from './flows/flows';
import { HomePage } from './account/home';
import { JobPage } from './jobs/job';
import { JobsPage } from './jobs/jobs';
import { KeysPage } from './account/keys';
import { LimitsPage } from './account/limits';
import { SchedulePage } from './schedules/schedule';
import { SchedulesPage } from './schedules/schedules';
import './tenant_pages.css';
import { UsagePage } from './account/usage';
import { WebhookPage } from './account/webhook';
import { WebhooksPage } from './account/webhooks';

const WORK = 'Jobs';
const ACCOUNT = 'Account';

/** Home is a tenant's own: operators have the overview at its place. */
export const tenantRoutes: Route[] = [
  { path: '/ui/', component: HomePage, nav: { label: 'Home', group: WORK } },
  { path: '/ui/jobs', component: JobsPage, nav: { label: 'Jobs', group: WORK } },
  { path: '/ui/jobs/:id', component: JobPage },
  { path: '/ui/flows', component: FlowsPage, nav: { label: 'Flows', group: WORK } },
  { path: '/ui/flows/:id', component: FlowPage },
  { path: '/ui/failures', component: FailuresPage, nav: { label: 'Failures', group: WORK } },
  { path: '/ui/dead-letters', component: DeadLettersPage, nav: { label: 'Dead letters', group: WORK } },
  { path: '/ui/schedules', component: SchedulesPage, nav: { label: 'Schedules', group: WORK } },
  { path: '/ui/schedules/:name', component: SchedulePage },
  { path: '/ui/events', component: EventsPage, nav: { label: 'Events', group: WORK } },
  { path: '/ui/bulk-actions', component: BulkActionsPage, nav: { label: 'Bulk actions', group: WORK } },
  { path: '/ui/usage', component: UsagePage, nav: { label: 'Usage', group: ACCOUNT } },
  { path: '/ui/limits', component: LimitsPage, nav: { label: 'Limits', group: ACCOUNT } },
  { path: '/ui/keys', component: KeysPage, nav: { label: 'Keys', group: ACCOUNT } },
  { path: '/ui/webhooks', component: WebhooksPage, nav: { label: 'Webhooks', group: ACCOUNT } },
  { path: '/ui/webhooks/:id', component: WebhookPage },
];
