/** The first page of operators: is it well, why not, and how long is the line. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { useLoad } from '../../api';
import { Badge, Card, Empty, Loading, Page, Problem, Row, Stat, Tabs, Time } from '../../components';
import { count } from '../../format';
import { useLive } from '../../live';
import { Link } from '../../router';
import type { Overview } from '../../types';
import { AlarmRow, worstFirst } from './alarm_row';
import { HistoryCharts, SpanSelect, useSpan } from './history';
import { PoolCard } from './pool_card';

export function OverviewPage(): JSX.Element {
  const live = useLive();
  const first = useLoad<Overview>('/v1/overview', { tenant: null });
  const overview = live.overview ?? first.data;
  return (
    <Page title="Overview" about="The waiting line, pool by pool, as it is now.">
      {overview === undefined && (first.error ? <Problem error={first.error} onRetry={first.reload} /> : <Loading lines={8} />)}
      {overview !== undefined && <Shown overview={overview} past={live.past} />}
    </Page>
  );
}

function Shown(props: { overview: Overview; past: readonly Overview[] }): JSX.Element {
  const { overview } = props;
  return (
    <>
      <Health overview={overview} />
      {overview.pools.length === 0 ? (
        <Card>
          <Empty title="No pool has been seen yet" text="Numbers come with the first server that owns shards." />
        </Card>
      ) : (
        <div class="pool-cards">
          {overview.pools.map((pool) => (
            <PoolCard key={pool.name} pool={pool} past={props.past} />
          ))}
        </div>
      )}
      <Past overview={overview} />
    </>
  );
}

const WORDS = {
  ok: ['ok', 'All is well'],
  warning: ['warn', 'Needs a look'],
  critical: ['bad', 'Something is wrong'],
} as const;

function Health({ overview }: { overview: Overview }): JSX.Element {
  const [tone, words] = WORDS[overview.health?.status ?? 'ok'];
  const reasons = overview.health?.reasons ?? [];
  const alarms = worstFirst(overview.alarms ?? []);
  return (
    <section class={`card health health-${tone}`} aria-label="Health">
      <div class="health-state">
        <Badge tone={tone}>{words}</Badge>
        <span class="stat-hint">
          as of <Time at={overview.at} />
        </span>
      </div>
      {reasons.length > 0 && (
        <ul class="reasons">
          {reasons.map((reason) => (
            <li key={`${reason.code} ${reason.text}`}>
              <span>{reason.text}</span>{' '}
              {reason.link.startsWith('/ui') && <Link to={reason.link}>Show</Link>}
            </li>
          ))}
        </ul>
      )}
      {alarms.length > 0 && (
        <div class="health-alarms">
          {alarms.slice(0, 4).map((alarm) => (
            <AlarmRow key={`${alarm.name} ${alarm.subject}`} alarm={alarm} isShort />
          ))}
          {alarms.length > 4 && <Link to="/ui/alarms">{count(alarms.length - 4)} more alarms</Link>}
        </div>
      )}
      <Fleet overview={overview} />
    </section>
  );
}

function Fleet({ overview }: { overview: Overview }): JSX.Element {
  const { workers, shards } = overview;
  const held: Partial<Record<string, number>> = overview.restraints ?? {};
  const isUnowned = shards !== undefined && (shards.owned ?? 0) < (shards.total ?? 0);
  return (
    <div class="stats health-stats">
      <Stat
        label="Workers"
        value={<Link to="/ui/workers">{count(workers?.live)}</Link>}
        {...(workers?.draining ? { hint: `${count(workers.draining)} draining` } : {})}
        {...(workers?.live === 0 ? { tone: 'bad' as const } : {})}
      />
      <Stat
        label="Shards owned"
        value={`${count(shards?.owned)} of ${count(shards?.total)}`}
        {...(isUnowned ? { tone: 'bad' as const } : {})}
      />
      {(['circuit', 'quarantine', 'throttle'] as const).map((kind) => (
        <Stat
          key={kind}
          label={HOLDS[kind]}
          value={<Link to="/ui/restraints">{count(held[kind])}</Link>}
          {...(held[kind] ? { tone: 'warn' as const } : {})}
        />
      ))}
    </div>
  );
}

const HOLDS = { circuit: 'Open circuits', quarantine: 'Quarantines', throttle: 'Throttled' };

function Past({ overview }: { overview: Overview }): JSX.Element | null {
  const [picked, setPicked] = useState<string>();
  const [span, setSpan] = useSpan();
  const pool = overview.pools.find((one) => one.name === picked) ?? overview.pools[0];
  if (pool === undefined) return null;
  return (
    <section class="past" aria-label="History">
      <Row class="row-between">
        <Tabs
          label="Pools"
          tabs={overview.pools.map((one) => ({ key: one.name, title: one.name }))}
          current={pool.name}
          onPick={setPicked}
        />
        <SpanSelect span={span} onChange={setSpan} />
      </Row>
      <HistoryCharts of="pool" name={pool.name} target={pool.slo_seconds} span={span} />
    </section>
  );
}
