/** Pages about one tenant, for its own people and for operators who picked it. */
import type { Route } from '../router';

export const tenantRoutes: Route[] = [];
