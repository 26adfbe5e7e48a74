/** Server-sent events by fetch: an EventSource cannot say for which tenant an operator asks.

A browser has six connections to a server, so a tab that nobody looks at holds none: the stream
ends when the page is hidden and goes on, with the last id it has, when it is seen again. */

import { credentials } from '../../api';
import { tenantOfPage } from '../../router';

export interface Told {
  event: string;
  data: string;
}

export interface Following {
  tell: (told: Told) => void;
  /** Whether news come by themselves at this moment. */
  isLive?: (live: boolean) => void;
}

const FIRST_PAUSE_MS = 500;
const PAUSE_MAX_MS = 15_000;

/** Follow a path until it says 204, refuses, or the answer is called. */
export function follow(path: string, { tell, isLive }: Following): () => void {
  let over = false;
  let lastId = '';
  let current: AbortController | null = null;
  let pauseMs = FIRST_PAUSE_MS;
  let timer = 0;

  const end = () => {
    over = true;
    isLive?.(false);
  };

  const later = () => {
    isLive?.(false);
    if (over || document.hidden) return;
    timer = window.setTimeout(start, pauseMs);
    pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS);
  };

  const read = async (signal: AbortSignal) => {
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    const tenant = tenantOfPage();
    if (tenant !== null && credentials.isOperator) headers['Fairway-Tenant'] = tenant;
    if (lastId) headers['Last-Event-ID'] = lastId;
    const reply = await fetch(path, { headers, signal, credentials: 'same-origin' });
    if (reply.status === 204 || (reply.status >= 400 && reply.status < 500 && reply.status !== 429)) {
      end();
      return;
    }
    if (!reply.ok || !reply.body) return;
    isLive?.(true);
    await eachEvent(reply.body, (told, id) => {
      pauseMs = FIRST_PAUSE_MS;
      if (id) lastId = id;
      tell(told);
    });
  };

  const start = () => {
    window.clearTimeout(timer);
    if (over || document.hidden || current) return;
    const mine = new AbortController();
    current = mine;
    read(mine.signal)
      .catch(() => undefined) // the server is away, or the page is hidden: it is asked again
      .finally(() => {
        if (current === mine) current = null;
        later();
      });
  };

  const seen = () => {
    if (document.hidden) current?.abort();
    else start();
  };

  document.addEventListener('visibilitychange', seen);
  start();
  return () => {
    over = true;
    window.clearTimeout(timer);
    current?.abort();
    document.removeEventListener('visibilitychange', seen);
  };
}

async function eachEvent(
  body: ReadableStream<Uint8Array>,
  tell: (told: Told, id: string) => void,
): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    const blocks = rest.split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const found = parsed(block);
      if (found.data) tell({ event: found.event, data: found.data }, found.id);
    }
  }
}

function parsed(block: string): { event: string; data: string; id: string } {
  const found = { event: 'message', data: '', id: '' };
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon < 1) continue; // a comment: the server is still there
    const value = line.slice(colon + 1).replace(/^ /, '');
    const name = line.slice(0, colon);
    if (name === 'event') found.event = value;
    else if (name === 'id') found.id = value;
    else if (name === 'data') found.data += found.data ? `\n${value}` : value;
  }
  return found;
}
