import type { ComponentChildren, JSX } from 'preact';

export interface ButtonProps {
  kind?: 'plain' | 'danger' | 'primary' | 'quiet';
  busy?: boolean | undefined;
  disabled?: boolean | undefined;
  /** Sends the form that it stands in. */
  submit?: boolean;
  small?: boolean;
  title?: string;
  /** What it does, where its text does not say it. */
  label?: string;
  onClick?: (event: MouseEvent) => void;
  children: ComponentChildren;
}

export function Button(props: ButtonProps): JSX.Element {
  const kind = props.kind ?? 'plain';
  return (
    <button
      type={props.submit ? 'submit' : 'button'}
      class={`button button-${kind}${props.small ? ' button-small' : ''}`}
      disabled={props.disabled || props.busy}
      aria-busy={props.busy ? 'true' : undefined}
      aria-label={props.label}
      title={props.title}
      onClick={(event) => {
        event.stopPropagation(); // a row that it stands in must not open as well
        props.onClick?.(event);
      }}
    >
      {props.busy && <span class="spinner" aria-hidden="true" />}
      {props.children}
    </button>
  );
}

/** A link that looks like a button. */
export function ButtonLink(props: {
  href: string;
  kind?: 'plain' | 'primary' | 'quiet';
  children: ComponentChildren;
}): JSX.Element {
  return (
    <a class={`button button-${props.kind ?? 'plain'}`} href={props.href}>
      {props.children}
    </a>
  );
}

