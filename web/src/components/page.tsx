/** The frame of a page and the cards in it. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

export interface PageProps {
  title: string;
  /** A line below the title: what one looks at. */
  about?: ComponentChildren;
  /** Shown before the title, such as a link to the list. */
  above?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

export function Page(props: PageProps): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${props.title} · Fairway`;
  }, [props.title]);
  useEffect(() => {
    // Whoever walks by keyboard or listens goes on from the new page's head.
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <div class="page">
      <header class="page-head">
        <div class="page-title">
          {props.above && <div class="page-above">{props.above}</div>}
          <h1 ref={heading} tabIndex={-1}>
            {props.title}
          </h1>
          {props.about && <p class="page-about">{props.about}</p>}
        </div>
        {props.actions && <div class="actions">{props.actions}</div>}
      </header>
      {props.children}
    </div>
  );
}

export interface CardProps {
  title?: ComponentChildren;
  /** A line below the title. */
  about?: ComponentChildren;
  actions?: ComponentChildren;
  /** No inner space: for a table that fills the card. */
  flush?: boolean;
  class?: string;
  children?: ComponentChildren;
}

export function Card(props: CardProps): JSX.Element {
  return (
    <section class={`card${props.flush ? ' card-flush' : ''}${props.class ? ` ${props.class}` : ''}`}>
      {(props.title || props.actions) && (
        <header class="card-head">
          <div>
            {props.title && <h2>{props.title}</h2>}
            {props.about && <p class="card-about">{props.about}</p>}
          </div>
          {props.actions && <div class="actions">{props.actions}</div>}
        </header>
      )}
      <div class="card-body">{props.children}</div>
    </section>
  );
}

/** Cards beside each other where there is room: as many columns as named, at most. */
export function Grid(props: { columns?: 2 | 3 | 4; children: ComponentChildren }): JSX.Element {
  return <div class={`grid grid-${props.columns ?? 2}`}>{props.children}</div>;
}

/** Things in a line with even gaps: filters, badges, buttons. */
export function Row(props: { class?: string; children: ComponentChildren }): JSX.Element {
  return <div class={`row${props.class ? ` ${props.class}` : ''}`}>{props.children}</div>;
}

/** Names and values, as on the page of one thing. */
export function Facts(props: {
  items: readonly (readonly [string, ComponentChildren] | null | false)[];
}): JSX.Element {
  return (
    <dl class="facts">
      {props.items.map(
        (item) =>
          item && (
            <div key={item[0]}>
              <dt>{item[0]}</dt>
              <dd>{item[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
