/** Tables: dense, with tabular numbers; on a phone they scroll sideways inside their card. */
import type { ComponentChild, JSX } from 'preact';

import { hrefOf } from '../router';
import { Button } from './button';
import { Empty } from './states';

export interface Column<T> {
  name: string;
  title: string;
  cell: (row: T) => ComponentChild;
  numeric?: boolean;
  /** Left out on narrow screens. */
  minor?: boolean;
  /** Takes what room there is left, and cuts its text. */
  wide?: boolean;
}

export interface TableProps<T> {
  rows: readonly T[];
  columns: readonly Column<T>[];
  rowKey: (row: T) => string | number;
  /** What to say when there are none. */
  empty: ComponentChild;
  /** What the table is, for those who listen to it. */
  label?: string;
  onRow?: (row: T) => void;
  /** Where a row leads: its first cell is a link that fills the row. */
  href?: (row: T) => string;
  /** Marks rows that need a look. */
  tone?: (row: T) => 'bad' | 'warn' | 'muted' | undefined;
  /** The row whose thing is shown beside the table. */
  isCurrent?: (row: T) => boolean;
  more?: (() => void) | null;
  isLoadingMore?: boolean;
}

export function Table<T>(props: TableProps<T>): JSX.Element {
  if (props.rows.length === 0) {
    return typeof props.empty === 'string' ? <Empty title={props.empty} /> : <>{props.empty}</>;
  }
  return (
    <>
      <div class="table-scroll" tabIndex={0} role="group" aria-label={props.label ?? 'Table'}>
        <table class="table">
          <thead>
            <tr>
              {props.columns.map((column) => (
                <th key={column.name} scope="col" class={classOf(column)}>
                  {column.title || <span class="sr-only">{column.name}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {props.rows.map((row) => (
              <RowOf key={props.rowKey(row)} row={row} table={props} />
            ))}
          </tbody>
        </table>
      </div>
      {props.more && (
        <div class="table-more">
          <Button busy={props.isLoadingMore} onClick={props.more}>
            Show more
          </Button>
        </div>
      )}
    </>
  );
}

function RowOf<T>({ row, table }: { row: T; table: TableProps<T> }): JSX.Element {
  const { onRow, href } = table;
  const tone = table.tone?.(row);
  const isOpen = onRow !== undefined || href !== undefined;
  return (
    <tr
      class={`${isOpen ? 'row-open' : ''}${tone ? ` row-${tone}` : ''}`}
      tabIndex={onRow ? 0 : undefined}
      aria-current={table.isCurrent?.(row) ? 'true' : undefined}
      onClick={onRow && (() => onRow(row))}
      onKeyDown={onRow && ((event) => opensByKey(event, () => onRow(row)))}
    >
      {table.columns.map((column, i) => (
        <td key={column.name} class={classOf(column)}>
          {i === 0 && href ? (
            <a class="row-link" href={hrefOf(href(row))}>
              {column.cell(row)}
            </a>
          ) : (
            column.cell(row)
          )}
        </td>
      ))}
    </tr>
  );
}

function opensByKey(event: KeyboardEvent, open: () => void): void {
  if (event.target !== event.currentTarget) return; // a button inside the row has its own keys
  if (event.key !== 'Enter' && event.key !== ' ') return;
  event.preventDefault();
  open();
}

function classOf<T>(column: Column<T>): string {
  const names = [];
  if (column.numeric) names.push('num');
  if (column.minor) names.push('minor');
  if (column.wide) names.push('wide');
  return names.join(' ');
}
