/** What a page says when it has nothing to show yet, nothing at all, or a refusal. */
import type { ComponentChildren, JSX } from 'preact';

import { type ApiError, asApiError } from '../api';
import { Button } from './button';
import { Icon } from './icon';
import { withCode } from './small';

export function Loading(props: { text?: string; lines?: number }): JSX.Element {
  return (
    <div class="loading" role="status">
      <span class="sr-only">{props.text ?? 'Loading…'}</span>
      {Array.from({ length: props.lines ?? 4 }, (_, i) => (
        <div key={i} class={`skeleton skeleton-${i % 4}`} />
      ))}
    </div>
  );
}

export function Empty(props: {
  title: string;
  text?: ComponentChildren;
  children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{props.title}</p>
      {props.text && <p class="empty-text">{props.text}</p>}
      {props.children && <div class="actions actions-middle">{props.children}</div>}
    </div>
  );
}

/** The field that a sentence is about, where it does not name it itself. */
function fieldOf(error: ApiError): string {
  const about = error.errors.find((one) => one.detail === error.detail)?.pointer ?? '';
  const name = about.replace(/^\//, '').replaceAll('/', '.');
  return error.detail.includes(name) ? '' : name;
}

/** Where another region has this page, if the server says so and it answers. */
function placeThere(error: ApiError): string | undefined {
  if (error.code !== 'HOME_ELSEWHERE') return undefined;
  const there = /: ask at (https?:\/\/[^\s"]+)\.$/.exec(error.detail)?.[1];
  return there && `${there}${location.pathname}${location.search}`;
}

/** What the server refused, in its own words, and where its code is explained. */
export function Problem(props: { error: ApiError | Error; onRetry?: () => void }): JSX.Element {
  const error = asApiError(props.error);
  const more = error.errors.filter((one) => one.detail && one.detail !== error.detail);
  const field = fieldOf(error);
  const there = placeThere(error);
  return (
    <div class="problem" role="alert">
      <Icon name="failures" />
      <div class="problem-words">
        <p class="problem-title">{error.title}</p>
        {error.detail && (
          <p>
            {field && <code>{field}</code>}
            {field && ': '}
            {withCode(error.detail)}
          </p>
        )}
        {there && (
          <p>
            <a href={there}>Look at it there</a>
          </p>
        )}
        {more.length > 0 && (
          <ul>
            {more.map((one) => (
              <li key={one.pointer}>
                <code>{one.pointer}</code> {withCode(one.detail ?? '')}
              </li>
            ))}
          </ul>
        )}
        <p class="problem-small">
          {error.type.startsWith('/problems/') ? (
            <a href={error.type} target="_blank" rel="noreferrer">
              {error.code}
            </a>
          ) : (
            <span>{error.code}</span>
          )}
          {error.requestId && <span> · request {error.requestId}</span>}
        </p>
      </div>
      {props.onRetry && <Button onClick={props.onRetry}>Try again</Button>}
    </div>
  );
}

interface LoadsProps<T> {
  of: { data: T | undefined; error: ApiError | undefined; reload: () => void };
  lines?: number;
  children: (data: T) => ComponentChildren;
}

/** As `Loads`, for what not every server has: that it is not there is said, and is no refusal. */
export function LoadsIfThere<T>(props: LoadsProps<T> & { missing: ComponentChildren }): JSX.Element {
  const { missing, ...loads } = props;
  if (props.of.data === undefined && props.of.error?.status === 404) return <>{missing}</>;
  return <Loads {...loads} />;
}

/** The three states of something loaded, around what shows it. */
export function Loads<T>(props: LoadsProps<T>): JSX.Element {
  const { data, error, reload } = props.of;
  return (
    <>
      {error && <Problem error={error} onRetry={reload} />}
      {data !== undefined ? props.children(data) : !error && <Loading lines={props.lines ?? 4} />}
    </>
  );
}
