/** Picks the tenant whose pages are shown: a box with search, for very many tenants. */
import type { JSX } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';

import { useLoad, withQuery } from '../api';
import { setQuery, useLocation } from '../router';
import type { TenantPage } from '../types';
import { Icon } from './icon';

const SHOWN = 12;

export interface TenantPickerProps {
  onPick?: (name: string | null) => void;
  isLarge?: boolean;
}

export function TenantPicker(props: TenantPickerProps): JSX.Element {
  const picked = useLocation().query.get('tenant') ?? '';
  const [text, setText] = useState<string | null>(null); // null: shut
  const [at, setAt] = useState(0);
  const [isEntered, setEntered] = useState(false);
  const asked = useSettled(text ?? '');
  const found = useLoad<TenantPage>(
    text === null ? null : withQuery('/v1/tenants', { q: asked, limit: SHOWN }),
    { tenant: null },
  );
  const box = useRef<HTMLInputElement>(null);
  const id = useId();
  const names = (found.data?.tenants ?? []).map((one) => one.name);
  const isOpen = text !== null;
  const isAnswered = text === asked && found.data !== undefined; // for what the box says now
  const pick = (name: string | null): void => {
    setText(null);
    (props.onPick ?? ((chosen) => setQuery({ tenant: chosen })))(name);
    box.current?.blur();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') setText(null);
    else if (event.key === 'Enter' && isOpen) setEntered(true);
    else if (event.key === 'ArrowDown') {
      if (isOpen) setAt(Math.min(at + 1, names.length - 1));
      else setText('');
    } else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0));
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    if (!isEntered || (isOpen && !isAnswered)) return; // the list is of what was typed before
    setEntered(false);
    if (isOpen && names[at] !== undefined) pick(names[at] ?? null);
  });
  return (
    <div class={`picker${props.isLarge ? ' picker-large' : ''}`}>
      <Icon name="tenants" />
      <input
        ref={box}
        class="picker-input"
        role="combobox"
        aria-label="Tenant"
        aria-expanded={isOpen}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && names[at] !== undefined ? `${id}-${at}` : undefined}
        autoComplete="off"
        spellcheck={false}
        placeholder="Pick a tenant"
        value={text ?? picked}
        onFocus={() => {
          setText('');
          setAt(0);
        }}
        onBlur={() => setText(null)}
        onInput={(event) => {
          setText(event.currentTarget.value.trim().toLowerCase());
          setAt(0);
          setEntered(false);
        }}
        onKeyDown={onKey}
      />
      {picked && !isOpen && (
        <button type="button" class="copy" aria-label="No tenant" title="No tenant" onClick={() => pick(null)}>
          <Icon name="close" />
        </button>
      )}
      <ul class="picker-list" id={id} role="listbox" aria-label="Tenants" hidden={!isOpen}>
        {isOpen && names.length === 0 && (
          <li class="picker-none" role="option" aria-selected="false" aria-disabled="true">
            {found.error ? found.error.message : found.loading ? 'Searching…' : 'No tenant has this in its name'}
          </li>
        )}
        {isOpen &&
          names.map((name, i) => (
            <li
              key={name}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === at}
              class="picker-option"
              onMouseDown={(event) => {
                event.preventDefault(); // the box keeps the focus until it is picked
                pick(name);
              }}
            >
              {name}
            </li>
          ))}
      </ul>
    </div>
  );
}

/** A text, a moment after it last changed. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), 150);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
