import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';

import { count } from '../format';

export interface Tab {
  key: string;
  title: string;
  count?: number | null;
}

/** A few views of one thing; arrow keys walk along them. The page shows the current one itself. */
export function Tabs(props: {
  tabs: readonly Tab[];
  current: string;
  onPick: (key: string) => void;
  label?: string;
}): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  const walk = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = props.tabs.findIndex((tab) => tab.key === props.current);
    const next = (at + step + props.tabs.length) % props.tabs.length;
    const tab = props.tabs[next];
    if (tab === undefined) return;
    props.onPick(tab.key);
    list.current?.querySelectorAll<HTMLButtonElement>('[role=tab]')[next]?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={props.label ?? 'Views'} ref={list} onKeyDown={walk}>
      {props.tabs.map((tab) => {
        const isCurrent = tab.key === props.current;
        return (
          <button
            key={tab.key}
            type="button"
            role="tab"
            class="tab"
            aria-selected={isCurrent}
            tabIndex={isCurrent ? 0 : -1}
            onClick={() => props.onPick(tab.key)}
          >
            {tab.title}
            {tab.count !== null && tab.count !== undefined && (
              <span class="tab-count">{count(tab.count)}</span>
            )}
          </button>
        );
      })}
    </div>
  );
}
