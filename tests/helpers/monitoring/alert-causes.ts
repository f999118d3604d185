import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { pathToFileURL } from 'node:url';
import { connect } from '@nats-io/transport-node';
import pg from 'pg';
import { z } from 'zod';
import { eventually } from '../eventually.ts';
import { root } from '../run-program.ts';
import type { Cluster } from '../start-cluster.ts';

/** What the causes act on. */
export interface Monitored {
  cluster: Cluster;
  /** The file that all router processes read. */
  routerFile: string;
  /** Makes Prometheus scrape one more process. */
  scrape(managementUrl: string): Promise<void>;
  /** One model call. @returns its status */
  complete(model: string, fields?: object): Promise<number>;
  /** One message in a conversation of its own. @returns whether it was accepted */
  say(text: string): Promise<boolean>;
}

export interface AlertCause {
  alerts: readonly string[];
  what: string;
  /** Begins it. @returns ends it, once the alerts were raised */
  begin(monitored: Monitored): Promise<(() => Promise<void>) | void>;
  /** Repeated until the alerts are raised: of counters without a value before their first count, the second one shows. */
  again?(monitored: Monitored): Promise<unknown>;
}

/** Their provider's base URL ends with the status that it answers. */
export const REFUSING_MODELS = { 'test/credential': 401, 'test/missing': 404, 'test/limited': 429 } as const;
/** More than the rule's tenth of a request per second, over five minutes. */
const REFUSED_REQUESTS = 60;
const HOUR_MS = 3_600_000;

/** In this order: the last two change the deployment for good. Each alert of a rule that is not listed is held by made-up series alone (alert-cases.ts). */
export const alertCauses: readonly AlertCause[] = [
  {
    alerts: ['ProviderRefusesCredential', 'ProviderLacksModel', 'ProviderLimitsRate', 'ProviderDown', 'ProviderFails'],
    what: 'providers answer 401, 404 and 429, and one cannot be reached',
    begin: async () => {},
    again: ({ complete }) => Promise.all(['test/gone', ...Object.keys(REFUSING_MODELS)].map((model) => complete(model))),
  },
  {
    alerts: ['RequestsRefused'],
    what: 'requests fit no endpoint',
    begin: async ({ complete }) => {
      const refused = Array.from({ length: REFUSED_REQUESTS }, () => complete('scripted/assistant', { provider: { only: ['nothing-of-this-name'] } }));
      await Promise.all(refused);
    },
  },
  {
    alerts: ['RouterFileRefused'],
    what: "the router's file has an error",
    begin: async ({ cluster, routerFile }) => {
      const before = await readFile(routerFile, 'utf8');
      await writeFile(routerFile, before.replace('{', '{ "no_such_field": 1,'));
      for (const role of ['router-gateway', 'router-worker'] as const) cluster.running(role)[0]?.signal('SIGHUP');
      return () => writeFile(routerFile, before);
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
    alerts: ['CommandsWithoutRight'],
    what: 'a command has no tag',
    begin: ({ cluster }) => publish(cluster, 'cmd.7', JSON.stringify({ v: 1, type: 'session.create', sessionId: 'ses_forged' })),
  },
  { alerts: ['UsageNotBilled'], what: 'a usage record cannot be read', begin: ({ cluster }) => publish(cluster, 'usage.record', '{}') },
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
    alerts: ['CommitsRefused', 'DeadLetters'],
    what: 'the database refuses a statement',
    begin: async ({ cluster, say }) => {
      await query(cluster, 'alter table events add constraint refused check (false) not valid');
      void say('Hello');
      return () => query(cluster, 'alter table events drop constraint refused');
    },
  },
  {
    alerts: ['CommandsWait'],
    what: 'the database does not answer',
    begin: async ({ cluster, say }) => {
      const client = new pg.Client({ connectionString: cluster.postgres.url });
      await client.connect();
      await client.query('begin');
      await client.query('lock table events in access exclusive mode');
      void say('Hello');
      return () => client.end();
    },
  },
  {
    alerts: ['EventLoopHeld'],
    what: 'one tick takes a second and a half',
    begin: async ({ cluster }) => cluster.running('effect-worker')[0]?.signal('SIGUSR2'),
  },
  {
    alerts: ['RouterFilesDiffer', 'ClockOff'],
    what: 'a worker has another router file, and a clock that is wrong by an hour',
    begin: async ({ cluster, routerFile, scrape }) => {
      const other = `${routerFile}.other.json`;
      const { models = [], ...rest } = JSON.parse(await readFile(routerFile, 'utf8')) as { models?: unknown[] };
      await writeFile(other, JSON.stringify({ ...rest, models: models.slice(0, -1) }));
      const preload = `--import=${pathToFileURL(`${root}tests/helpers/shifted-date.mjs`)}`;
      const worker = await cluster.add('router-worker', { ROUTER_CONFIG: other, NODE_OPTIONS: preload, SHIFT_DATE_MS: String(HOUR_MS) });
      await scrape(worker.managementUrl);
    },
  },
  {
    alerts: ['PartitionsWithoutOwner', 'ProcessDown'],
    what: 'a host is killed, whose partitions have no other',
    begin: async ({ cluster }) => cluster.running('actor-host')[0]?.signal('SIGKILL'),
  },
];

const keyAnswer = z.object({ data: z.object({ hash: z.string() }) });

async function manage(cluster: Cluster, path: string, body: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${cluster.keys.managementKey}`, 'content-type': 'application/json' };
  const response = await fetch(`${cluster.routerUrls[0]}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`);
  return response.json();
}

/** As a user that may send any message. */
async function publish(cluster: Cluster, subject: string, body: string): Promise<void> {
  const { NATS_PASSWORD: pass = '' } = cluster.environmentOf('operator');
  const connection = await connect({ servers: cluster.nats.url, user: 'operator', pass, inboxPrefix: '_INBOX.operator' });
  connection.publish(subject, body);
  await connection.flush();
  await connection.close();
}

async function query(cluster: Cluster, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: cluster.postgres.url });
  await client.connect();
  await client.query(text).finally(() => client.end());
}

/** A provider for each of REFUSING_MODELS. */
export async function openRefusingProviders(): Promise<{ baseUrlOf(status: number): string; close(): Promise<void> }> {
  const server: Server = createServer((request, response) => {
    request.resume();
    const status = Number(request.url?.split('/')[1]);
    response.writeHead(status, { 'content-type': 'application/json', ...(status === 429 ? { 'retry-after': '120' } : {}) });
    response.end(JSON.stringify({ error: { message: 'refused', type: 'test', code: null } }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return {
    baseUrlOf: (status) => `http://127.0.0.1:${address.port}/${status}/v1`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
