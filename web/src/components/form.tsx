/** Parts of forms. The control inside a Field is an ordinary input, select or textarea. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { Icon } from './icon';

export function Field(props: {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <label class="field">
      <span class="field-label">{props.label}</span>
      {props.children}
      {props.error && <span class="field-error">{props.error}</span>}
      {props.hint && <span class="field-hint">{props.hint}</span>}
    </label>
  );
}

/** A form that calls `onSubmit` and goes nowhere. */
export function Form(props: { onSubmit: () => void; children: ComponentChildren }): JSX.Element {
  return (
    <form
      class="form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        props.onSubmit();
      }}
    >
      {props.children}
    </form>
  );
}

export function Check(props: {
  label: ComponentChildren;
  checked: boolean;
  onChange: (checked: boolean) => void;
}): JSX.Element {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={props.checked}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />
      <span>{props.label}</span>
    </label>
  );
}

export interface Choice {
  value: string;
  label: string;
}

export function Select(props: {
  value: string;
  choices: readonly Choice[];
  onChange: (value: string) => void;
  /** Where no Field names it. */
  label?: string;
}): JSX.Element {
  return (
    <select
      class="input select"
      aria-label={props.label}
      value={props.value}
      onChange={(event) => props.onChange(event.currentTarget.value)}
    >
      {props.choices.map((choice) => (
        <option key={choice.value} value={choice.value}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}

export function TextInput(props: {
  value: string;
  onInput: (value: string) => void;
  type?: 'text' | 'number' | 'password' | 'search' | 'url' | 'datetime-local' | 'date';
  label?: string;
  placeholder?: string;
  autoFocus?: boolean;
  autoComplete?: string;
  min?: number;
  max?: number;
  mono?: boolean;
  disabled?: boolean;
}): JSX.Element {
  const element = useRef<HTMLInputElement>(null);
  // At once: later it could take the focus from where somebody has begun to type. A dialog that is
  // not open yet looks for the attribute when it opens.
  useLayoutEffect(() => {
    if (props.autoFocus) element.current?.focus();
  }, []);
  // The types of the attributes differ by kind of input; what is given here fits all of them.
  const kind = { type: props.type ?? 'text' } as { type: 'text' };
  return (
    <input
      ref={element}
      {...kind}
      class={`input${props.mono ? ' mono' : ''}`}
      aria-label={props.label}
      value={props.value}
      placeholder={props.placeholder}
      autoComplete={props.autoComplete ?? 'off'}
      spellcheck={false}
      autofocus={props.autoFocus}
      min={props.min}
      max={props.max}
      disabled={props.disabled}
      onInput={(event) => props.onInput(event.currentTarget.value)}
    />
  );
}

export function TextArea(props: {
  value: string;
  onInput: (value: string) => void;
  rows?: number;
  label?: string;
  mono?: boolean;
  placeholder?: string;
}): JSX.Element {
  return (
    <textarea
      class={`input${props.mono ? ' mono' : ''}`}
      rows={props.rows ?? 6}
      aria-label={props.label}
      placeholder={props.placeholder}
      spellcheck={false}
      value={props.value}
      onInput={(event) => props.onInput(event.currentTarget.value)}
    />
  );
}

/** A box to search in: tells what is in it a moment after the last key. */
export function Search(props: {
  value: string;
  onSearch: (text: string) => void;
  label: string;
  placeholder?: string;
}): JSX.Element {
  const [text, setText] = useState(props.value);
  const said = useRef(props.value);
  useEffect(() => {
    if (props.value !== said.current) {
      said.current = props.value;
      setText(props.value);
    }
  }, [props.value]);
  useEffect(() => {
    if (text === said.current) return undefined;
    const timer = setTimeout(() => {
      said.current = text;
      props.onSearch(text);
    }, 250);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <span class="search">
      <Icon name="search" />
      <TextInput
        type="search"
        value={text}
        onInput={setText}
        label={props.label}
        placeholder={props.placeholder ?? props.label}
      />
    </span>
  );
}
