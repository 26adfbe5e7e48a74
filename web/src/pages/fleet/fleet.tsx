/** How many workers each pool has, how many it wants, and why that was decided. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useLoad } from '../../api';
import { Card, Confirm, Empty, LoadsIfThere, Page, toast } from '../../components';
import type { ScaledPool, ShardList } from '../../types';
import { Decisions } from './decisions';
import { Moves } from './moves';
import { OverrideDialog, overridePath } from './override_dialog';
import { Regions } from './regions';
import { ScaleCard } from './scale_card';
import { Servers } from './servers';

const EVERY_MS = 5000;

export function FleetPage(): JSX.Element {
  const found = useLoad<{ pools: ScaledPool[] }>('/v1/autoscale', { tenant: null, every: EVERY_MS });
  const shards = useLoad<ShardList>('/v1/shards', { tenant: null, every: EVERY_MS });
  const moves = shards.data?.moves ?? [];
  return (
    <Page title="Fleet" about="Servers and their shards; how many workers each pool has and wants, and why.">
      <Servers moving={moves.filter((one) => !one.finished_at).length} />
      <Moves moves={moves} />
      <Regions />
      <LoadsIfThere of={found} lines={8} missing={<NotThere />}>
        {({ pools }) => <Pools pools={pools} reload={found.reload} />}
      </LoadsIfThere>
    </Page>
  );
}

function NotThere(): JSX.Element {
  return (
    <Card>
      <Empty
        title="This server does not scale workers"
        text="Workers are started and drained by people: the pages of pools and workers tell when there are too few."
      />
    </Card>
  );
}

function Pools(props: { pools: ScaledPool[]; reload: () => void }): JSX.Element {
  const { pools } = props;
  const [changing, setChanging] = useState<ScaledPool>();
  const [ending, setEnding] = useState<ScaledPool>();
  const isOff = pools.every((one) => one.mode === 'off');
  if (pools.length === 0) {
    return (
      <Card>
        <Empty title="No pool is scaled yet" text="Pools come here with the first server that owns shards." />
      </Card>
    );
  }
  return (
    <>
      {isOff && (
        <Card>
          <Empty
            title="Autoscaling is off"
            text={
              <>
                The numbers below are what it would go by. <code>fairway autoscale set {pools[0]?.pool} mode=dry_run</code>{' '}
                has decisions written down, and nobody acts on them; <code>mode=on</code> has fleets act.
              </>
            }
          />
        </Card>
      )}
      <div class="pool-cards">
        {pools.map((one) => (
          <ScaleCard key={one.pool} pool={one} onOverride={() => setChanging(one)} onEnd={() => setEnding(one)} />
        ))}
      </div>
      <Decisions pools={pools} />
      {changing && <OverrideDialog pool={changing} onClose={() => setChanging(undefined)} onDone={props.reload} />}
      <Confirm
        title={`End the override of ${ending?.pool ?? ''}?`}
        open={ending !== undefined}
        onClose={() => setEnding(undefined)}
        action="End it"
        kind="primary"
        onConfirm={async () => {
          await act('DELETE', overridePath(ending?.pool ?? ''), undefined, { tenant: null });
          toast('The pool is scaled by its work again.');
          props.reload();
        }}
      >
        <p>The pool is scaled by its work again, from the next decision on.</p>
      </Confirm>
    </>
  );
}
