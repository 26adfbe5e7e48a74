/** What a changed weight does to the shares of a pool, told before it is saved.
 *
 * By weights alone, among those who have work now: floors, caps and reserved slots come on top,
 * and the server decides. Pure, so that it can be tested.
 */
import type { Known, Share } from '../../types';

export interface Preview {
  pool: string;
  before: number;
  after: number;
  /** Others have work there now; without any, it has the pool for itself. */
  isContended: boolean;
}

/** The weight of all others that have work in the pool, as far as it can be told. */
export function othersWeight(tenant: string, pool: string, shares: readonly Share[]): number {
  return shares
    .filter((one) => one.pool === pool && one.tenant !== tenant && hasWork(one))
    .reduce((sum, one) => sum + one.weight, 0);
}

function hasWork(share: Share): boolean {
  return (share.queued ?? 0) + (share.running ?? 0) > 0;
}

/** From its entitled share, where the server tells it: that knows of all others. */
function othersOf(weight: number, entitled: Known | undefined, listed: number): number {
  if (entitled === null || entitled === undefined || entitled <= 0 || entitled > 1) return listed;
  return Math.max(weight / entitled - weight, 0);
}

export function previewOf(
  pool: string,
  weight: number,
  changed: number,
  entitled: Known | undefined,
  listed: number,
): Preview {
  const others = othersOf(weight, entitled, listed);
  const part = (own: number): number => (own + others > 0 ? own / (own + others) : 1);
  return { pool, before: part(weight), after: part(changed), isContended: others > 0 };
}
