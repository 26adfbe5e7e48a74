/** What a job's runs said. Lines come by themselves while it is not over. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { useLoad, withQuery } from '../../api';
import { Badge, Button, Empty, Loading, Problem } from '../../components';
import { moment, plural, utc } from '../../format';
import { follow } from '../parts/follow';
import type { LogLine, LogPage } from '../../types';
import type { Tone } from '../parts/words';

const LINES_SHOWN_MAX = 5000;
const PAGE = 1000;
const TONES: Record<string, Tone> = { warning: 'warn', error: 'bad', critical: 'bad', info: 'info' };

export function Logs(props: { id: string; isOver: boolean }): JSX.Element {
  // what was live stays so until it is left: the last lines come after the word of the end
  const [wasLive] = useState(!props.isOver);
  return wasLive ? <LiveLogs id={props.id} /> : <KeptLogs id={props.id} />;
}

function LiveLogs(props: { id: string }): JSX.Element {
  const [lines, setLines] = useState<LogLine[]>([]);
  const [isLive, setLive] = useState(false);
  const [hasEnded, setEnded] = useState(false);
  useEffect(() => {
    setLines([]);
    const stop = follow(`/v1/jobs/${props.id}/logs`, {
      isLive: setLive,
      tell: (told) => {
        if (told.event === 'end') {
          setEnded(true);
          stop();
        } else if (told.event === 'line') {
          const line = JSON.parse(told.data) as LogLine;
          setLines((old) => [...old, line].slice(-LINES_SHOWN_MAX));
        }
      },
    });
    return stop;
  }, [props.id]);
  return (
    <>
      <p class="muted" role="status">
        {hasEnded ? 'The job has ended; these are all lines.' : liveWords(isLive)}
      </p>
      <Lines lines={lines} isTail />
    </>
  );
}

function liveWords(isLive: boolean): string {
  return isLive ? 'Live: lines come as they are said.' : 'Connecting…';
}

function KeptLogs(props: { id: string }): JSX.Element {
  const [cursors, setCursors] = useState<string[]>([]);
  const cursor = cursors.at(-1) ?? null;
  const path = withQuery(`/v1/jobs/${props.id}/logs`, { limit: PAGE, cursor });
  const { data, error } = useLoad<LogPage>(path);
  const next = data?.next_cursor;
  return (
    <>
      {error && <Problem error={error} />}
      {!data && !error && <Loading />}
      {data && <Lines lines={data.lines} />}
      {(cursor || next) && (
        <nav class="pager" aria-label="Pages of the log">
          <Button disabled={!cursor} onClick={() => setCursors(cursors.slice(0, -1))}>
            Earlier
          </Button>
          <Button disabled={!next} onClick={() => next && setCursors([...cursors, next])}>
            Later
          </Button>
        </nav>
      )}
    </>
  );
}

function Lines(props: { lines: LogLine[]; isTail?: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const seen = box.current;
    if (!props.isTail || !seen) return;
    const isAtEnd = seen.scrollHeight - seen.scrollTop - seen.clientHeight < 80;
    if (isAtEnd) seen.scrollTop = seen.scrollHeight;
  }, [props.lines.length]);
  if (!props.lines.length) {
    return (
      <Empty title="No lines" text="What the handler says by ctx.log or logging is kept here." />
    );
  }
  return (
    <div class="log" ref={box} tabIndex={0} role="log" aria-label="Log lines">
      {props.lines.map((line, n) => (
        <Line key={n} line={line} isNewRun={props.lines[n - 1]?.attempt !== line.attempt} />
      ))}
    </div>
  );
}

function Line(props: { line: LogLine; isNewRun: boolean }): JSX.Element {
  const { line } = props;
  return (
    <>
      {props.isNewRun && <div class="log-run">Attempt {line.attempt}</div>}
      {line.dropped > 0 ? (
        <div class="log-line muted">… {plural(line.dropped, 'line')} left out for want of room …</div>
      ) : (
        <div class="log-line">
          <time dateTime={line.at} title={utc(line.at)}>
            {moment(line.at)}
          </time>
          <Badge tone={TONES[line.level] ?? 'muted'}>{line.level}</Badge>
          <span class="log-text">{line.text}</span>
        </div>
      )}
    </>
  );
}
