/** Of whom usage and statements tell. */
import { useSession, useTenant } from '../../session';

/** Operators name the tenant; a tenant's key means its own. */
export function useWhose(): { tenant: string | null } {
  const session = useSession();
  const picked = useTenant();
  return { tenant: session.scope === 'operator' ? picked : null };
}
