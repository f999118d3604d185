import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { eventually } from '../eventually.ts';
import { root } from '../run-program.ts';
import type { Cluster } from '../start-cluster.ts';
import type { AlertCause } from './alert-causes.ts';
import { lockTable, publish } from './store-access.ts';

const HOUR_MS = 3_600_000;

/** Those that take a store or a process away, or minutes, in this order: the last two change the deployment for good. */
export const deepAlertCauses: readonly AlertCause[] = [
  {
    alerts: ['RouterFileRefused'],
    what: "the router's file has an error",
    begin: async ({ routerFile }) => {
      const before = await readFile(routerFile, 'utf8');
      await writeFile(routerFile, before.replace('{', '{ "no_such_field": 1,'));
      return () => writeFile(routerFile, before);
    },
    again: ({ cluster }) => {
      for (const role of ['router-gateway', 'router-worker'] as const) cluster.running(role)[0]?.signal('SIGHUP');
    },
  },
  {
    alerts: ['MailsWait'],
    what: 'a key is exposed, and no mail server is set',
    begin: async ({ cluster }) => {
      const made = keyAnswer.parse(await manage(cluster, '/keys', { name: 'Shop', owner_email: 'owner@example.com' }));
      await manage(cluster, `/keys/${made.data.hash}/exposed`, { where: 'https://code.example/acme/.env' });
    },
  },
  {
    alerts: ['UsageNotBilled'],
    what: 'a usage record cannot be read',
    begin: async () => {},
    again: ({ cluster }) => publish(cluster, 'usage.record', '{}'),
  },
  {
    alerts: ['WorkRefused'],
    what: 'the broker is away',
    begin: async ({ cluster, say }) => {
      await cluster.nats.end('SIGKILL');
      return async () => {
        await cluster.nats.start();
        await eventually(() => say('Hello'), { timeoutMs: 120_000 });
      };
    },
    again: ({ complete }) => complete('scripted/assistant'),
  },
  {
    alerts: ['CommandsWait'],
    what: 'the database does not answer',
    begin: ({ cluster }) => lockTable(cluster, 'events'),
    again: ({ say }) => say('Hello'),
  },
  {
    alerts: ['RouterFilesDiffer', 'ClockOff'],
    what: 'a worker has another router file, and a clock that is wrong by an hour',
    begin: async ({ cluster, routerFile, prometheus }) => {
      const other = `${routerFile}.other.json`;
      const { models = [], ...rest } = JSON.parse(await readFile(routerFile, 'utf8')) as { models?: unknown[] };
      await writeFile(other, JSON.stringify({ ...rest, models: models.slice(0, -1) }));
      const preload = `--import=${pathToFileURL(`${root}tests/helpers/shifted-date.mjs`)}`;
      const worker = await cluster.add('router-worker', { ROUTER_CONFIG: other, NODE_OPTIONS: preload, SHIFT_DATE_MS: String(HOUR_MS) });
      await prometheus.scrape(new URL(worker.managementUrl).host);
    },
  },
  {
    alerts: ['PartitionsWithoutOwner', 'ProcessDown'],
    what: 'all hosts are killed',
    begin: async ({ cluster }) => {
      for (const host of cluster.running('actor-host')) host.signal('SIGKILL');
    },
  },
];

const keyAnswer = z.object({ data: z.object({ hash: z.string() }) });

async function manage(cluster: Cluster, path: string, body: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${cluster.keys.managementKey}`, 'content-type': 'application/json' };
  const response = await fetch(`${cluster.routerUrls[0]}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`);
  return response.json();
}
