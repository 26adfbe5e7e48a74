/** Several regions, as the one that answers sees them: who is there, how many tenants are at home where, what is held. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { useLoad } from '../../api';
import { Badge, Card, type Column, Duration, Loads, Table, Tag } from '../../components';
import { count, plural } from '../../format';
import type { Region, RegionList } from '../../types';

const EVERY_MS = 5000;

/** Nothing where there is one region only: the server answers 404 then, and is not asked again. */
export function Regions(): JSX.Element | null {
  const [isThere, setThere] = useState(false);
  const found = useLoad<RegionList>('/v1/regions', { tenant: null, every: isThere ? EVERY_MS : 0 });
  const isKnown = found.data !== undefined;
  useEffect(() => setThere(isKnown), [isKnown]);
  if (found.loading || found.error?.status === 404) return null;
  return (
    <Card title="Regions" about={found.data && inWords(found.data)} flush>
      <Loads of={found}>
        {(all) => (
          <Table
            label="Regions"
            rows={all.regions}
            columns={COLUMNS}
            rowKey={(one) => one.name}
            tone={(one) => (one.is_here || one.is_reachable ? undefined : 'warn')}
            empty={null}
          />
        )}
      </Loads>
    </Card>
  );
}

function inWords(all: RegionList): string {
  const where = all.directory === all.here ? 'here' : `in ${all.directory}`;
  const words = [`This region is ${all.here}. Tenants, keys and homes are changed ${where}.`];
  if (all.held > 0) {
    words.push(`${plural(all.held, 'job')} of other regions’ tenants ${all.held === 1 ? 'is' : 'are'} held here.`);
  }
  if (all.held_in_doubt > 0) {
    words.push(`${count(all.held_in_doubt)} in doubt: only the region that was asked can say whether it has them.`);
  }
  if (all.conflicts > 0) {
    words.push(`${plural(all.conflicts, 'tenant')} of the directory cannot be known here: names or numbers clash.`);
  }
  for (const one of all.regions) if (one.trouble) words.push(`${one.name} ${one.trouble}.`);
  return words.join(' ');
}

const COLUMNS: Column<Region>[] = [
  {
    name: 'region',
    title: 'Region',
    cell: (one) => (
      <>
        <span class="row">
          <b class="break">{one.name}</b>
          {one.is_directory && <Tag>directory</Tag>}
        </span>
        <div class="muted break">
          {one.urls.join(', ')}
          {one.is_here && ' · answers this page'}
        </div>
      </>
    ),
  },
  { name: 'state', title: 'State', cell: (one) => <State region={one} /> },
  { name: 'tenants', title: 'Tenants', numeric: true, cell: (one) => count(one.tenants) },
  { name: 'term', title: 'Directory term', numeric: true, minor: true, cell: (one) => count(one.directory_term) },
  {
    name: 'latency',
    title: 'Latency',
    numeric: true,
    minor: true,
    cell: (one) => <Duration seconds={one.latency_ms === null ? null : one.latency_ms / 1000} />,
  },
];

function State({ region }: { region: Region }): JSX.Element {
  if (region.is_here) return <Badge tone="ok">Here</Badge>;
  if (region.trouble) {
    return (
      <Badge tone={region.is_reachable ? 'warn' : 'bad'} title={`${region.name} ${region.trouble}.`}>
        Set up otherwise
      </Badge>
    );
  }
  if (region.is_reachable) return <Badge tone="ok">Answers</Badge>;
  return (
    <Badge tone="bad" title="What is handed in for its tenants is held here until it is back, or failed over.">
      No answer
    </Badge>
  );
}
