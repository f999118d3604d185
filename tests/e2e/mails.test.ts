import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import type { ClusterProcess } from '../../scripts/servers/start-cluster.mjs';
import { eventually } from '../helpers/eventually.ts';
import { startSmtpReceiver } from '../helpers/smtp-receiver.ts';
import { startCluster } from '../helpers/start-cluster.ts';

const TIMEOUT = { timeoutMs: 60_000 };
const OTHERS = { 'agent-gateway': 0, 'actor-host': 0, 'effect-worker': 0 };

it('DESIGN 11: a router worker that is killed as a mail is accepted leaves it to another, which sends it again with the same Message-ID', async () => {
  const killed: ClusterProcess[] = [];
  const receiver = await startSmtpReceiver({
    onMail: async () => {
      // Before the server replies, and so before the worker can store that it was sent.
      for (const worker of killed.splice(0)) {
        worker.signal('SIGKILL');
        await worker.exited;
      }
    },
  });
  onTestFinished(() => receiver.close());
  const env = { SMTP_URL: `smtp://${receiver.host}:${receiver.port}`, MAIL_FROM: 'keys@switchyard.example' };
  const cluster = await startCluster({ roles: { ...OTHERS, 'router-gateway': 1, 'router-worker': 1 }, env });
  killed.push(...cluster.running('router-worker'));
  const client = new pg.Client({ connectionString: cluster.postgres.url });
  await client.connect();
  const send = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${cluster.keys.managementKey}`, 'content-type': 'application/json' };
    const response = await fetch(`${cluster.routerUrls[0]}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await response.json()) as { key: string; data: { hash: string; label: string; disabled: boolean }; mail_queued: boolean };
  };

  const made = await send('/keys', { name: 'Shop', owner_email: 'owner@example.com' });
  const exposed = await send(`/keys/${made.data.hash}/exposed`, { where: 'https://code.example/acme/.env' });
  expect(exposed).toMatchObject({ mail_queued: true, data: { disabled: true } });
  await eventually(() => receiver.received.length === 1, TIMEOUT);
  await eventually(() => cluster.running('router-worker').length === 0, TIMEOUT);
  expect((await client.query('select attempts, sent_at from mails')).rows).toEqual([{ attempts: 1, sent_at: null }]);

  // The lease of the dead worker.
  await client.query('update mails set next_attempt_at = now()');
  await cluster.add('router-worker');
  await eventually(async () => (await client.query('select 1 from mails where sent_at is not null')).rowCount === 1, TIMEOUT);
  expect(receiver.received).toHaveLength(2);
  expect(new Set(receiver.received.map(({ source }) => source)).size).toBe(1);
  for (const { source } of receiver.received) {
    expect(source).toContain(made.data.label);
    for (const secret of [made.key.slice(20), made.data.hash]) expect(source).not.toContain(secret);
  }
  await client.end();
  await cluster.stop();
});
