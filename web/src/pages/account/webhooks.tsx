/** Where a tenant's events are sent, and whether that goes well. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { useLoad } from '../../api';
import { Badge, Button, Card, type Column, Empty, Loads, Page, Table, Tag, Time } from '../../components';
import { navigate } from '../../router';
import { useMay } from '../../session';
import { Secret } from '../parts/secret';
import type { Webhook } from '../../types';
import { WebhookDialog } from './webhook_dialog';

const EVERY_MS = 10_000;

export function WebhooksPage(): JSX.Element {
  const may = useMay('operate');
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<Webhook & { secret: string }>();
  const found = useLoad<{ webhooks: Webhook[] }>('/v1/webhooks', { every: EVERY_MS });
  return (
    <Page
      title="Webhooks"
      about="Events of your log, sent to receivers of your own and signed by Standard Webhooks."
      actions={
        may && (
          <Button kind="primary" onClick={() => setMaking(true)}>
            New webhook
          </Button>
        )
      }
    >
      <Loads of={found}>
        {({ webhooks }) => (
          <Card flush>
            <Table
              rows={webhooks}
              columns={COLUMNS}
              rowKey={(one) => one.id}
              href={(one) => `/ui/webhooks/${one.id}`}
              tone={(one) => (one.failing_since || one.disabled_because ? 'warn' : undefined)}
              label="Webhooks"
              empty={
                <Empty
                  title="No webhooks yet"
                  text="Make one, and a program of yours hears of dead jobs, open circuits and spent caps as they happen."
                />
              }
            />
          </Card>
        )}
      </Loads>
      {isMaking && (
        <WebhookDialog
          onClose={() => setMaking(false)}
          onMade={(webhook) => {
            setMaking(false);
            setMade(webhook);
            found.reload();
          }}
        />
      )}
      {made && (
        <Secret
          title="The webhook's secret"
          about="It signs every delivery and is shown only now. Keep it where your receiver is."
          label="secret"
          text={made.secret}
          onClose={() => navigate(`/ui/webhooks/${made.id}`)}
        />
      )}
    </Page>
  );
}

export function WebhookState(props: { webhook: Webhook }): JSX.Element {
  const { webhook } = props;
  if (webhook.disabled_because) {
    return (
      <Badge tone="bad" title={webhook.disabled_because}>
        switched off
      </Badge>
    );
  }
  if (!webhook.enabled) return <Badge tone="muted">off</Badge>;
  if (webhook.failing_since) return <Badge tone="warn">failing</Badge>;
  return <Badge tone="ok">on</Badge>;
}

const COLUMNS: Column<Webhook>[] = [
  {
    name: 'url',
    title: 'Receiver',
    wide: true,
    cell: (one) => (
      <>
        <span class="job-type">{one.url}</span>
        {one.description && <span class="job-id">{one.description}</span>}
      </>
    ),
  },
  { name: 'state', title: 'State', cell: (one) => <WebhookState webhook={one} /> },
  {
    name: 'kinds',
    title: 'Events',
    cell: (one) => (one.kinds.length ? one.kinds.map((kind) => <Tag key={kind}>{kind}</Tag>) : 'all'),
  },
  {
    name: 'failing',
    title: 'Failing since',
    minor: true,
    cell: (one) => (one.failing_since ? <Time at={one.failing_since} relative /> : 'not at all'),
  },
  { name: 'made', title: 'Made', minor: true, cell: (one) => <Time at={one.created_at} /> },
];
