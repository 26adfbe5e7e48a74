/** Charts over time by uPlot: columns as the server sends them, colours from the stylesheet. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';

import 'uplot/dist/uPlot.min.css';

import { UNKNOWN, brief, compact, moment, percent, rate } from '../format';
import { useTheme } from '../theme';
import { Empty } from './states';

export type Unit = 'count' | 'per_second' | 'seconds' | 'percent';

export interface Series {
  key: string;
  label: string;
  tone?: 'accent' | 'ok' | 'warn' | 'bad' | 'muted' | 'second';
  /** Filled below its line. */
  fill?: boolean;
  /** A line of dashes, for what is only a measure for the others. */
  dashed?: boolean;
}

/** `at` in unix seconds, and a column of the same length for every series; null is a gap. */
export interface Columns {
  at: number[];
}

export interface ChartProps {
  data: Columns;
  series: readonly Series[];
  height?: number;
  unit?: Unit;
  /** What the chart shows, for those who listen to the page. */
  label?: string;
  /** Deploys, incidents, changes: lines at moments. */
  marks?: readonly ChartMark[];
}

export interface ChartMark {
  /** In unix seconds; what lasted has an end. */
  at: number;
  until?: number | null;
  kind: 'deploy' | 'incident' | 'note' | 'change';
  label: string;
}

/** Colours of their lines; each kind has dashes of its own, for those who see no colours. */
const MARKS: Record<ChartMark['kind'], { tone: string; dash: number[] }> = {
  incident: { tone: '--chart-bad', dash: [] },
  deploy: { tone: '--chart-accent', dash: [6, 3] },
  note: { tone: '--chart-warn', dash: [4, 2, 1, 2] },
  change: { tone: '--chart-muted', dash: [2, 3] },
};

const WORDS: Record<Unit, (n: number | null | undefined) => string> = {
  count: compact,
  per_second: (n) => (n === null || n === undefined ? UNKNOWN : `${rate(n)} /s`),
  seconds: brief,
  percent,
};

/** Round steps of time, of which hundreds of seconds are none. */
const STEPS_OF_TIME = [
  ...[1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1].flatMap((n) => [n, 2 * n, 5 * n]),
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400],
  ...[2, 5, 10, 20, 50, 100].map((days) => days * 86_400),
];

function columnOf(data: Columns, key: string): (number | null)[] {
  const column = (data as unknown as Record<string, unknown>)[key];
  return Array.isArray(column) ? (column as (number | null)[]) : data.at.map(() => null);
}

function alignedOf(data: Columns, series: readonly Series[]): uPlot.AlignedData {
  return [data.at, ...series.map((one) => columnOf(data, one.key))];
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || '#888';
}

function optionsOf(
  props: ChartProps,
  width: number,
  onCursor: (index: number | null) => void,
): uPlot.Options {
  const unit = WORDS[props.unit ?? 'count'];
  const axis = {
    stroke: colour('--muted'),
    grid: { stroke: colour('--line-soft'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  };
  return {
    width,
    height: props.height ?? 180,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: true }, y: { range: (_, low, high) => rangeOf(low, high) } },
    axes: [
      { ...axis, grid: { show: false }, size: 26, space: 70, values: clockValues },
      {
        ...axis,
        size: 62,
        space: 34,
        values: (_, splits) => splits.map((n) => unit(n)),
        ...(props.unit === 'seconds' ? { incrs: STEPS_OF_TIME } : {}),
      },
    ],
    series: [
      {},
      ...props.series.map((one): uPlot.Series => {
        const tone = colour(`--chart-${one.tone ?? 'accent'}`);
        return {
          label: one.label,
          stroke: tone,
          width: 1.5,
          points: { show: (plot, at) => isSparse(plot.data[at]), size: 4 },
          ...(one.fill ? { fill: `${tone}1f` } : {}),
          ...(one.dashed ? { dash: [4, 4] } : {}),
        };
      }),
    ],
    hooks: {
      setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)],
      draw: [(plot) => drawMarks(plot, props.marks ?? [])],
    },
  };
}

/** A line of one or two points is not seen without them. */
function isSparse(column: ArrayLike<number | null | undefined> | undefined): boolean {
  let known = 0;
  for (let i = 0; i < (column?.length ?? 0) && known < 4; i += 1) known += column?.[i] == null ? 0 : 1;
  return known < 4;
}

function rangeOf(low: number | null, high: number | null): [number, number] {
  const top = Math.max(high ?? 0, 0);
  return [Math.min(low ?? 0, 0), top === 0 ? 1 : top * 1.1];
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });

function clockValues(_: uPlot, splits: number[]): string[] {
  const first = splits[0] ?? 0;
  const last = splits[splits.length - 1] ?? 0;
  const isOfDays = last - first > 2 * 86_400;
  return splits.map((at) => (isOfDays ? DAY : CLOCK).format(at * 1000));
}

function drawMarks(plot: uPlot, marks: readonly ChartMark[]): void {
  const { ctx, bbox } = plot;
  const right = bbox.left + bbox.width;
  ctx.save();
  for (const mark of marks) {
    const { tone, dash } = MARKS[mark.kind];
    const x = Math.round(plot.valToPos(mark.at, 'x', true));
    const end = mark.until ? Math.round(plot.valToPos(mark.until, 'x', true)) : x;
    if (end < bbox.left || x > right) continue;
    ctx.strokeStyle = ctx.fillStyle = colour(tone);
    if (end > x) {
      const from = Math.max(x, bbox.left);
      ctx.globalAlpha = 0.1;
      ctx.fillRect(from, bbox.top, Math.min(end, right) - from, bbox.height);
      ctx.globalAlpha = 1;
    }
    if (x < bbox.left) continue;
    ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (mark.kind !== 'change') drawFlag(ctx, x, bbox.top);
  }
  ctx.restore();
}

/** A small flag at the top of a line, so that the few that matter are found. */
function drawFlag(ctx: CanvasRenderingContext2D, x: number, top: number): void {
  const size = 5 * devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x + size * 1.4, top + size * 0.7);
  ctx.lineTo(x, top + size * 1.4);
  ctx.fill();
}

export function Chart(props: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [index, setIndex] = useState<number | null>(null);
  const theme = useTheme();
  const shape = JSON.stringify([props.series, props.height, props.unit, props.marks, theme]);
  const isEmpty = props.data.at.length === 0;
  useEffect(() => {
    const element = box.current;
    if (element === null || isEmpty) return undefined;
    const width = Math.max(120, element.clientWidth);
    const made = new uPlot(optionsOf(props, width, setIndex), alignedOf(props.data, props.series), element);
    plot.current = made;
    const watcher = new ResizeObserver(() => {
      const wide = Math.max(120, element.clientWidth);
      if (wide !== made.width) made.setSize({ width: wide, height: props.height ?? 180 });
    });
    watcher.observe(element);
    return () => {
      watcher.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, isEmpty]);
  useEffect(() => plot.current?.setData(alignedOf(props.data, props.series)), [props.data]);
  if (isEmpty) return <Empty title="No history yet" text="The first points come within a minute or two." />;
  return (
    <figure class="chart" aria-label={props.label}>
      <Legend {...props} index={index} />
      <div class="chart-box" ref={box} role="img" aria-label={spoken(props)} />
    </figure>
  );
}

/** Names and values: those under the cursor, else the newest. */
function Legend(props: ChartProps & { index: number | null }): JSX.Element {
  const unit = WORDS[props.unit ?? 'count'];
  const at = props.index === null ? undefined : props.data.at[props.index];
  const mark = at === undefined ? undefined : nearest(props.marks ?? [], at, stepOf(props.data));
  return (
    <figcaption class="legend">
      {props.series.map((one) => {
        const column = columnOf(props.data, one.key);
        const value = props.index === null ? newest(column) : column[props.index];
        return (
          <span key={one.key} class={`legend-item legend-${one.tone ?? 'accent'}${one.dashed ? ' legend-dashed' : ''}`}>
            {one.label} <b class="num">{unit(value)}</b>
          </span>
        );
      })}
      {mark && <span class="legend-mark">{mark.label}</span>}
      <span class="legend-at">{at === undefined ? 'now' : moment(at)}</span>
    </figcaption>
  );
}

function stepOf(data: Columns): number {
  return (data.at[1] ?? 0) - (data.at[0] ?? 0);
}

/** The mark that is next to the cursor, give or take a step. */
function nearest(marks: readonly ChartMark[], at: number, step: number): ChartMark | undefined {
  const away = (mark: ChartMark): number => Math.abs(mark.at - at);
  return marks.filter((mark) => away(mark) <= step).sort((a, b) => away(a) - away(b))[0];
}

function newest(column: (number | null)[]): number | null {
  for (let i = column.length - 1; i >= 0; i -= 1) {
    const value = column[i];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}

function spoken(props: ChartProps): string {
  const unit = WORDS[props.unit ?? 'count'];
  const parts = props.series.map((one) => `${one.label} ${unit(newest(columnOf(props.data, one.key)))}`);
  return `${props.label ?? 'Chart'}: ${parts.join(', ')}`;
}

/** A line as small as a word: no axes, only the way it went. */
export function Sparkline(props: {
  values: readonly (number | null)[];
  tone?: 'accent' | 'ok' | 'warn' | 'bad' | 'muted';
  label: string;
  width?: number;
  height?: number;
}): JSX.Element {
  const width = props.width ?? 96;
  const height = props.height ?? 24;
  const top = Math.max(1e-9, ...props.values.map((value) => value ?? 0));
  const step = props.values.length > 1 ? width / (props.values.length - 1) : width;
  let line = '';
  let isDown = false;
  props.values.forEach((value, i) => {
    if (value === null) {
      isDown = false;
      return;
    }
    const y = height - 1.5 - (value / top) * (height - 3);
    line += `${isDown ? 'L' : 'M'}${(i * step).toFixed(1)} ${y.toFixed(1)}`;
    isDown = true;
  });
  return (
    <svg
      class={`spark spark-${props.tone ?? 'accent'}`}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={props.label}
    >
      <path d={line} />
    </svg>
  );
}
