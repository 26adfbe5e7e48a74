/** Acts as rows; one opens to what exactly changed. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { Badge, type Column, Dialog, Empty, Facts, Json, Table, type TableProps, Time, type Tone } from '../../components';
import type { AuditEntry } from '../../types';
import { changeInWords, sentenceOf } from './audit_words';

const KINDS: Record<string, Tone> = { operator: 'info', tenant: 'ok', platform: 'muted', command: 'muted' };

function whoInWords(entry: AuditEntry): string {
  if (entry.actor_kind === 'platform') return 'the platform';
  return entry.actor_name || (entry.actor ? `key ${entry.actor.slice(0, 8)}` : entry.actor_kind);
}

function Who({ entry }: { entry: AuditEntry }): JSX.Element {
  return (
    <Badge tone={KINDS[entry.actor_kind] ?? 'muted'} title={`${entry.actor_kind} · ${entry.actor}`}>
      {whoInWords(entry)}
    </Badge>
  );
}

const COLUMNS: Column<AuditEntry>[] = [
  { name: 'when', title: 'When', cell: (entry) => <Time at={entry.at} /> },
  { name: 'who', title: 'Who', minor: true, cell: (entry) => <Who entry={entry} /> },
  { name: 'what', title: 'Did', wide: true, cell: (entry) => <Did entry={entry} /> },
];

function Did({ entry }: { entry: AuditEntry }): JSX.Element {
  const change = changeInWords(entry);
  return (
    <>
      <span class="audit-did">{sentenceOf(entry)}</span>
      {change && <span class="audit-change">{change}</span>}
      <span class="audit-who">
        <Who entry={entry} />
      </span>
    </>
  );
}

export function AuditTable(
  props: { entries: readonly AuditEntry[] } & Pick<TableProps<AuditEntry>, 'more' | 'isLoadingMore'>,
): JSX.Element {
  const [shown, setShown] = useState<AuditEntry>();
  const { entries, ...paging } = props;
  return (
    <>
      <Table
        label="Acts"
        rows={entries}
        columns={COLUMNS}
        rowKey={(entry) => entry.id}
        onRow={setShown}
        empty={<Empty title="Nothing was changed" text="What people and the platform change is written down here." />}
        {...paging}
      />
      <Dialog
        title={shown ? sentenceOf(shown) : ''}
        open={shown !== undefined}
        onClose={() => setShown(undefined)}
        wide
      >
        {shown && <Closer entry={shown} />}
      </Dialog>
    </>
  );
}

function Closer({ entry }: { entry: AuditEntry }): JSX.Element {
  return (
    <>
      <Facts
        items={[
          ['When', <Time at={entry.at} />],
          ['Who', <Who entry={entry} />],
          ['Key', <code>{entry.actor}</code>],
          ['From', entry.address || 'not known'],
          ['Act', <code>{entry.action}</code>],
          ['To', <span class="break">{entry.subject}</span>],
          ['Whose', entry.tenant ?? 'the platform'],
          ['Request', <code>{entry.request_id || '–'}</code>],
        ]}
      />
      {entry.detail && <p class="break">{entry.detail}</p>}
      <div class="grid grid-2">
        <section>
          <h3 class="small-title">Before</h3>
          <Json value={entry.before} label="Before" />
        </section>
        <section>
          <h3 class="small-title">After</h3>
          <Json value={entry.after} label="After" />
        </section>
      </div>
    </>
  );
}
