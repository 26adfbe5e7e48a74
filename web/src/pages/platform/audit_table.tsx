/** Acts as rows; one opens to what exactly changed. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { Badge, type Column, Dialog, Empty, Facts, Json, Table, type TableProps, Time, type Tone } from '../../components';
import type { AuditEntry } from '../../types';

const KINDS: Record<string, Tone> = { operator: 'info', tenant: 'ok', platform: 'muted', command: 'muted' };

function Who({ entry }: { entry: AuditEntry }): JSX.Element {
  return (
    <Badge tone={KINDS[entry.actor_kind] ?? 'muted'} title={`${entry.actor_kind} · ${entry.actor}`}>
      {entry.actor_name || entry.actor || entry.actor_kind}
    </Badge>
  );
}

/** The change in a line: weight 100 → 200. */
export function changeInWords(entry: AuditEntry): string {
  const names = [...new Set([...Object.keys(entry.before), ...Object.keys(entry.after)])];
  const parts = names.map((name) => {
    const [was, is] = [entry.before[name], entry.after[name]];
    if (was === undefined) return `${name} ${short(is)}`;
    return `${name} ${short(was)} → ${short(is)}`;
  });
  return [entry.detail, parts.join(', ')].filter(Boolean).join(' · ');
}

function short(value: unknown): string {
  if (value === undefined) return 'none';
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.length > 40 ? `${text.slice(0, 39)}…` : text || '“”';
}

const COLUMNS: Column<AuditEntry>[] = [
  { name: 'when', title: 'When', cell: (entry) => <Time at={entry.at} /> },
  { name: 'who', title: 'Who', cell: (entry) => <Who entry={entry} /> },
  { name: 'what', title: 'Did', cell: (entry) => <b class="nowrap">{entry.action.replaceAll('_', ' ')}</b> },
  { name: 'subject', title: 'To', cell: (entry) => <span class="break">{entry.subject}</span> },
  {
    name: 'change',
    title: 'Change',
    wide: true,
    minor: true,
    cell: (entry) => <span class="muted">{changeInWords(entry)}</span>,
  },
];

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
        title={shown ? `${shown.action.replaceAll('_', ' ')} ${shown.subject}` : ''}
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
          ['Tenant', entry.tenant ?? 'the platform'],
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
