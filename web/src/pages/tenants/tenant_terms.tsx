/** Changes a tenant's terms, and says before saving what a new weight will do. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { act, useAct, useLoad, withQuery } from '../../api';
import { Button, Dialog, DialogFoot, Field, Form, Grid, Meter, Problem, Select, TextInput, toast } from '../../components';
import { percent } from '../../format';
import { useLive } from '../../live';
import type { SharePage, Tenant, Tier } from '../../types';
import { othersWeight, type Preview, previewOf } from './share_preview';

const NUMBERS = ['weight', 'cap', 'rate_per_second', 'burst', 'depth_limit'] as const;
type NumberName = (typeof NUMBERS)[number];
type Wish = Record<NumberName, string> & { tier: string; reserved: Record<string, string> };

function wishOf(tenant: Tenant): Wish {
  const text = (n: number | null): string => (n === null ? '' : String(n));
  return {
    tier: tenant.tier,
    weight: text(tenant.weight),
    cap: text(tenant.cap),
    rate_per_second: text(tenant.rate_per_second),
    burst: text(tenant.burst),
    depth_limit: text(tenant.depth_limit),
    reserved: Object.fromEntries(Object.entries(tenant.reserved).map(([pool, n]) => [pool, String(n)])),
  };
}

/** What differs only: empty takes the tier's value again. */
function changesOf(tenant: Tenant, wish: Wish): Record<string, unknown> {
  const before = wishOf(tenant);
  const changes: Record<string, unknown> = {};
  if (wish.tier !== before.tier) changes['tier'] = wish.tier;
  for (const name of NUMBERS) {
    if (wish[name].trim() !== before[name]) {
      changes[name] = wish[name].trim() === '' ? null : Number(wish[name]);
    }
  }
  if (JSON.stringify(wish.reserved) !== JSON.stringify(before.reserved)) {
    const slots = Object.entries(wish.reserved).filter(([, n]) => Number(n) > 0);
    changes['reserved'] = Object.fromEntries(slots.map(([pool, n]) => [pool, Number(n)]));
  }
  return changes;
}

/** The weight that would hold: its own, else that of the tier. */
function weightOf(wish: Wish, tiers: readonly Tier[]): number | null {
  const own = wish.weight.trim();
  const found = own === '' ? tiers.find((tier) => tier.name === wish.tier)?.weight : Number(own);
  return found !== undefined && Number.isInteger(found) && found >= 1 ? found : null;
}

export function TermsDialog(props: { tenant: Tenant; onClose: () => void; onDone: () => void }): JSX.Element {
  const { tenant } = props;
  const tiers = useLoad<{ tiers: Tier[] }>('/v1/tiers', { tenant: null });
  const [wish, setWish] = useState(() => wishOf(tenant));
  const { busy, error, run } = useAct();
  const known = tiers.data?.tiers ?? [];
  const changes = changesOf(tenant, wish);
  const set = (name: NumberName | 'tier') => (value: string) => setWish({ ...wish, [name]: value });
  const save = async (): Promise<void> => {
    if (!(await run(() => act('PATCH', `/v1/tenants/${encodeURIComponent(tenant.name)}`, changes)))) return;
    toast(`The terms of ${tenant.name} hold from now on.`);
    props.onDone();
    props.onClose();
  };
  return (
    <Dialog title={`Terms of ${tenant.name}`} open onClose={props.onClose} wide>
      <Form onSubmit={() => void save()}>
        <Grid columns={2}>
          <Field label="Weight" hint="Its share of slot-time beside the weights of others. Empty: its tier’s.">
            <TextInput type="number" min={1} max={100_000} value={wish.weight} onInput={set('weight')} autoFocus />
          </Field>
          <Field label="Tier" hint="Where values come from that it has not of its own.">
            <Select
              value={wish.tier}
              onChange={set('tier')}
              choices={
                known.length
                  ? known.map((one) => ({ value: one.name, label: `${one.name} · weight ${one.weight}` }))
                  : [{ value: wish.tier, label: wish.tier }]
              }
            />
          </Field>
        </Grid>
        <WeightPreview tenant={tenant} weight={weightOf(wish, known)} />
        <Grid columns={2}>
          <Field label="Cap in a pool" hint="Jobs that may run at once in one pool. Empty: its tier’s.">
            <TextInput type="number" min={1} value={wish.cap} onInput={set('cap')} />
          </Field>
          <Field label="Jobs that may wait">
            <TextInput type="number" min={0} value={wish.depth_limit} onInput={set('depth_limit')} />
          </Field>
          <Field label="Submits a second">
            <TextInput type="number" min={1} value={wish.rate_per_second} onInput={set('rate_per_second')} />
          </Field>
          <Field label="Submits at once">
            <TextInput type="number" min={1} value={wish.burst} onInput={set('burst')} />
          </Field>
        </Grid>
        <Reserved wish={wish} onChange={(reserved) => setWish({ ...wish, reserved })} />
        {error && <Problem error={error} />}
        <DialogFoot>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="primary" submit busy={busy} disabled={Object.keys(changes).length === 0}>
            Save
          </Button>
        </DialogFoot>
      </Form>
    </Dialog>
  );
}

function Reserved(props: { wish: Wish; onChange: (reserved: Record<string, string>) => void }): JSX.Element | null {
  const pools = useLoad<{ pools: { name: string }[] }>('/v1/pools', { tenant: null });
  const names = (pools.data?.pools ?? []).map((pool) => pool.name);
  if (names.length === 0) return null;
  return (
    <fieldset class="fieldset">
      <legend>Reserved slots, kept for it even while idle</legend>
      <div class="reserved">
        {names.map((name) => (
          <Field key={name} label={name}>
            <TextInput
              type="number"
              min={0}
              placeholder="0"
              value={props.wish.reserved[name] ?? ''}
              onInput={(value) => {
                const reserved = { ...props.wish.reserved, [name]: value };
                if (value.trim() === '') delete reserved[name];
                props.onChange(reserved);
              }}
            />
          </Field>
        ))}
      </div>
    </fieldset>
  );
}

/** In every pool where it has work, or where somebody has. */
function WeightPreview({ tenant, weight }: { tenant: Tenant; weight: number | null }): JSX.Element | null {
  const shares = useLoad<SharePage>('/v1/shares', { tenant: null, every: 5000 });
  const mine = useLoad<SharePage>(withQuery('/v1/shares', { tenant: tenant.name }), { tenant: null, every: 5000 });
  const overview = useLive().overview;
  if (weight === null || shares.data === undefined || mine.data === undefined) return null;
  const others = shares.data.items.filter((one) => one.tenant !== tenant.name);
  const items = [...mine.data.items, ...others];
  const pools = [...new Set(items.map((one) => one.pool))];
  const previews = pools.map((pool) => {
    const own = items.find((one) => one.pool === pool && one.tenant === tenant.name);
    const entitled = own?.share_entitled;
    return previewOf(pool, tenant.weight, weight, entitled, othersWeight(tenant.name, pool, items));
  });
  const contended = previews.filter((one) => one.isContended);
  return (
    <section class="preview" aria-live="polite">
      <h3 class="small-title">{weight === tenant.weight ? 'What its weight gives it now' : 'What this will do'}</h3>
      {contended.length === 0 ? (
        <p class="muted">Nobody else has work now, so it gets all it can use at any weight.</p>
      ) : (
        contended.map((one) => (
          <PreviewLine key={one.pool} preview={one} slots={overview?.pools.find((p) => p.name === one.pool)?.slots ?? null} />
        ))
      )}
      <p class="field-hint">
        While it has work, among those who have work now. By weights alone: floors, caps and reserved slots come on top.
      </p>
    </section>
  );
}

function PreviewLine({ preview, slots }: { preview: Preview; slots: number | null }): JSX.Element {
  const { before, after } = preview;
  const inSlots = slots === null ? '' : `, about ${Math.round(after * slots)} of ${slots} slots`;
  return (
    <div class="preview-line">
      <b>{preview.pool}</b>
      <Meter part={after} mark={before} label={`${percent(before)} now, ${percent(after)} then${inSlots}`} />
      <span class="num">
        {after !== before && `${percent(before)} → `}
        <b>{percent(after)}</b>
        <span class="muted">{inSlots}</span>
      </span>
    </div>
  );
}
