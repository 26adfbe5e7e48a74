/** Who changed what, newest first. */
import type { JSX } from 'preact';

import { usePages, withQuery } from '../../api';
import { Button, Card, Loading, Page, Problem, Row, Search, TextInput } from '../../components';
import { useQuery } from '../../router';
import type { AuditEntry, AuditPage as Reply } from '../../types';
import { AuditTable } from './audit_table';

const FILTERS = ['actor', 'action', 'subject'] as const;
const LABELS = {
  actor: 'Who: a key or its name',
  action: 'Did, such as change_tenant',
  subject: 'To, such as acme',
};

/** A day in the reader's zone, as the moment when it began. */
function beginOf(day: string | null): string | null {
  if (!day) return null;
  const when = new Date(`${day}T00:00:00`);
  return Number.isNaN(when.getTime()) ? null : when.toISOString();
}

export function AuditPage(): JSX.Element {
  const [query, setQuery] = useQuery();
  const wanted = {
    ...Object.fromEntries(FILTERS.map((name) => [name, query.get(name)])),
    since: beginOf(query.get('since')),
    limit: 100,
  };
  const found = usePages<Reply, AuditEntry>(
    withQuery('/v1/audit', wanted),
    (reply) => ({ rows: reply.entries, next: reply.next_cursor }),
    { tenant: null },
  );
  const isFiltered = [...FILTERS, 'since'].some((name) => query.get(name));
  return (
    <Page
      title="Audit"
      about="What people changed, by key, and what the platform decided by itself."
      actions={<Button onClick={found.reload}>Refresh</Button>}
    >
      <Row>
        {FILTERS.map((name) => (
          <Search
            key={name}
            label={LABELS[name]}
            value={query.get(name) ?? ''}
            onSearch={(text) => setQuery({ [name]: text.trim().replaceAll(' ', name === 'action' ? '_' : ' ') })}
          />
        ))}
        <label class="row">
          <span class="muted">Since</span>
          <TextInput type="date" value={query.get('since') ?? ''} onInput={(since) => setQuery({ since })} />
        </label>
        {isFiltered && (
          <Button kind="quiet" onClick={() => setQuery({ actor: null, action: null, subject: null, since: null })}>
            Clear
          </Button>
        )}
      </Row>
      <Card flush>
        {found.error && <Problem error={found.error} onRetry={found.reload} />}
        {found.loading && <Loading lines={8} />}
        {found.rows && <AuditTable entries={found.rows} more={found.more} isLoadingMore={found.isLoadingMore} />}
      </Card>
    </Page>
  );
}
