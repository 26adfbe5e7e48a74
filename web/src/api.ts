/** Talking to the server: JSON in and out, problem+json as errors, and loading for pages. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

import { tenantOfPage } from './router';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface FieldError {
  pointer: string;
  detail: string;
}

/** What the server refused, or that it could not be asked. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string,
    readonly errors: FieldError[] = [],
    readonly requestId: string = '',
    /** The page on this server that explains the code. */
    readonly type: string = '',
  ) {
    super(detail || title);
  }
}

/** What requests carry; the session sets it (`session.ts`). */
export const credentials = {
  csrf: '',
  isOperator: false,
  onLost: (): void => undefined,
};

export interface RequestOptions {
  /** Whose things: a tenant's name; null: nobody's; left out: the picked one on tenants' pages. */
  tenant?: string | null;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

export async function request<T>(
  method: Method,
  path: string,
  body?: unknown,
  options: RequestOptions = {},
): Promise<T> {
  const headers: Record<string, string> = { Accept: 'application/json', ...options.headers };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (method !== 'GET' && credentials.csrf) headers['X-Fairway-Csrf'] = credentials.csrf;
  const session = credentials.csrf;
  const tenant = options.tenant === undefined ? tenantOfPage() : options.tenant;
  if (tenant !== null && credentials.isOperator) headers['Fairway-Tenant'] = tenant;
  const response = await sent(path, {
    method,
    headers,
    credentials: 'same-origin',
    cache: 'no-store',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  if (!response.ok) {
    const isLost = response.status === 401 && !path.startsWith('/session');
    if (isLost && session === credentials.csrf) credentials.onLost(); // not one that came since
    throw await refusal(response);
  }
  const text = await response.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

async function sent(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(
      0,
      'UNREACHABLE',
      'The server does not answer',
      'Check your connection; the page tries again by itself where it is live.',
    );
  }
}

async function refusal(response: Response): Promise<ApiError> {
  let problem: Partial<{
    code: string;
    title: string;
    detail: string;
    errors: FieldError[];
    request_id: string;
    type: string;
  }> = {};
  try {
    problem = (await response.json()) as typeof problem;
  } catch {
    // A proxy in between answers as it likes.
  }
  return new ApiError(
    response.status,
    problem.code ?? `HTTP_${response.status}`,
    problem.title ?? `The server answered ${response.status}`,
    problem.detail ?? '',
    problem.errors ?? [],
    problem.request_id ?? response.headers.get('X-Request-Id') ?? '',
    problem.type ?? '',
  );
}

/** Does something; throws ApiError when it is refused. */
export function act<T = unknown>(
  method: Exclude<Method, 'GET'>,
  path: string,
  body?: unknown,
  options: RequestOptions = {},
): Promise<T> {
  return request<T>(method, path, body, options);
}

/** A path with a query; what is null, undefined or '' is left out. */
export function withQuery(
  path: string,
  query: Record<string, string | number | boolean | null | undefined>,
): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') params.set(name, String(value));
  }
  const text = params.toString();
  return text ? `${path}${path.includes('?') ? '&' : '?'}${text}` : path;
}

export interface Loaded<T> {
  data: T | undefined;
  error: ApiError | undefined;
  /** True until the first answer for this path, good or bad. */
  loading: boolean;
  reload: () => void;
}

export interface LoadOptions extends Pick<RequestOptions, 'tenant'> {
  /** Milliseconds between looks; none while the tab is hidden. */
  every?: number;
}

/** Whoever asks again takes a reply that others were given a moment ago, but none that is older
 * than its own last one: what was changed on this page never seems undone. */
function askingAgain(everyMs: number): Record<string, string> {
  const seconds = Math.floor(everyMs / 1000) - 1;
  return seconds > 0 ? { 'Cache-Control': `max-age=${Math.min(seconds, 10)}` } : {};
}

/** Asks for a path and keeps the answer; null asks nothing. Old data stays while new is asked. */
export function useLoad<T>(path: string | null, options: LoadOptions = {}): Loaded<T> {
  const tenant = options.tenant === undefined ? tenantOfPage() : options.tenant;
  const key = path === null ? null : `${tenant ?? ''} ${path}`;
  const [state, setState] = useState<{ key: string | null; data?: T; error?: ApiError }>({ key });
  const [turn, setTurn] = useState(0);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isFirst = true;
    const ask = async (): Promise<void> => {
      if (isFirst || !document.hidden) {
        const headers = isFirst ? {} : askingAgain(options.every ?? 0);
        isFirst = false;
        try {
          const how = { tenant, signal: stop.signal, headers };
          const data = await request<T>('GET', path, undefined, how);
          setState({ key, data });
        } catch (error) {
          if (stop.signal.aborted) return;
          const seen = asApiError(error);
          setState((old) =>
            old.key === key && old.data !== undefined
              ? { key, data: old.data, error: seen }
              : { key, error: seen },
          );
        }
      }
      if (options.every && !stop.signal.aborted) timer = setTimeout(() => void ask(), options.every);
    };
    void ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key, turn, options.every]);
  const isOurs = state.key === key;
  const data = isOurs ? state.data : undefined;
  const error = isOurs ? state.error : undefined;
  return { data, error, loading: path !== null && !data && !error, reload };
}

export interface Pages<T> {
  rows: T[] | undefined;
  error: ApiError | undefined;
  loading: boolean;
  /** Asks for the next page; null when there is none. */
  more: (() => void) | null;
  isLoadingMore: boolean;
  reload: () => void;
}

/** A list that comes in pages. `pick` takes rows and the next cursor out of one reply. */
export function usePages<Reply, T>(
  path: string | null,
  pick: (reply: Reply) => { rows: T[]; next: string | null | undefined },
  options: LoadOptions = {},
): Pages<T> {
  const first = useLoad<Reply>(path, options);
  const [later, setLater] = useState<{ of: Reply | undefined; rows: T[]; next: string | null }>();
  const [failed, setFailed] = useState<ApiError>();
  const [isLoadingMore, setLoadingMore] = useState(false);
  const picking = useRef(pick);
  picking.current = pick;
  const head = first.data === undefined ? undefined : picking.current(first.data);
  const tail = later !== undefined && later.of === first.data ? later : undefined;
  const next = (tail ? tail.next : head?.next) ?? null;
  const more = (): void => {
    if (path === null || next === null || isLoadingMore) return;
    setLoadingMore(true);
    setFailed(undefined);
    const tenant = options.tenant === undefined ? {} : { tenant: options.tenant };
    request<Reply>('GET', withQuery(path, { cursor: next }), undefined, tenant)
      .then((reply) => {
        const page = picking.current(reply);
        const rows = [...(tail?.rows ?? []), ...page.rows];
        setLater({ of: first.data, rows, next: page.next ?? null });
      })
      .catch((error: unknown) => setFailed(asApiError(error)))
      .finally(() => setLoadingMore(false));
  };
  return {
    rows: head === undefined ? undefined : [...head.rows, ...(tail?.rows ?? [])],
    error: first.error ?? failed,
    loading: first.loading,
    more: next === null ? null : more,
    isLoadingMore,
    reload: first.reload,
  };
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new ApiError(0, 'BROKEN_REPLY', 'The reply cannot be read', text);
}

/** For a button that does something: whether it is busy, what went wrong, and doing it. */
export function useAct(): {
  busy: boolean;
  error: ApiError | undefined;
  run: (work: () => Promise<unknown>) => Promise<boolean>;
  clear: () => void;
} {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const run = useCallback(async (work: () => Promise<unknown>): Promise<boolean> => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
      return true;
    } catch (problem) {
      setError(asApiError(problem));
      return false;
    } finally {
      setBusy(false);
    }
  }, []);
  return { busy, error, run, clear: useCallback(() => setError(undefined), []) };
}
