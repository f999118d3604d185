import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import type { ClusterProcess } from '../../../scripts/servers/start-cluster.mjs';
import { eventually } from '../eventually.ts';
import { root } from '../run-program.ts';
import type { Cluster } from '../start-cluster.ts';
import type { AlertCause } from './alert-causes.ts';
import { lockTable, publish } from './store-access.ts';

const HOUR_MS = 3_600_000;
const WITHIN = { timeoutMs: 180_000, lookAgainMs: 250 };
const LONG = { timeoutMs: 300_000, lookAgainMs: 1_000 };
const PARTITIONS = 64;
/** Longer than others take to acquire the partitions of a paused host: a scrape of it is late, and does not fail. */
const SCRAPES_OUTLAST_A_PAUSE_SECONDS = 40;
/** More than the rules' hundred items, and than a tenth of an item per second over five minutes. */
const CALLS = 120;
const CALLS_OF_ONE_REPETITION = 40;
/** Four repetitions are beyond the rule's thousand. */
const COMMANDS_OF_ONE_REPETITION = 300;
/** The server refuses a mail for good. */
const MAIL_NEVER = 550;

/** Those that take a store or a process away, or minutes, in this order: the first one begins with new hosts, and the last two change the deployment for good. */
export const deepAlertCauses: readonly AlertCause[] = [
  {
    alerts: ['HostPaused'],
    what: 'a host is paused over a commit until another one owns its partitions',
    scrapeSeconds: SCRAPES_OUTLAST_A_PAUSE_SECONDS,
    begin: async ({ cluster, pausing, prometheus, say }) => {
      const other = cluster.running('actor-host').find((host) => host !== pausing);
      if (pausing === null || other === undefined) throw new Error('two hosts are needed');
      // The first scrapes of the two hosts are at different times, which looks like a start.
      const isSteady = 'min_over_time(count(switchyard_partitions_owned)[2m:30s]) == 2';
      await eventually(async () => (await prometheus.query(isSteady)).length > 0, LONG);
      await eventually(() => {
        void say('Hello');
        return pausing.output().includes('fail point commit.sending: SIGSTOP');
      }, WITHIN);
      await eventually(async () => (await partitionsOf(other)) === PARTITIONS, WITHIN);
      pausing.signal('SIGCONT');
    },
  },
  {
    alerts: ['SpendingGrows'],
    what: 'a model is called that costs 20 USD, and was called once before',
    begin: async ({ complete, prometheus }) => {
      await eventually(() => complete('test/costly'), WITHIN);
      await eventually(async () => (await prometheus.query('increase(switchyard_cost_usd_total[1h] offset 30s)')).length > 0, WITHIN);
    },
    again: ({ complete }) => complete('test/costly'),
  },
  {
    alerts: ['TurnsFail'],
    what: 'a provider fails the calls of turns',
    begin: async () => {},
    again: ({ say }) => say('!fail 500 Hello'),
  },
  {
    alerts: ['TelemetryDropped'],
    what: 'the collector does not answer',
    begin: async ({ collector }) => {
      collector.answer(null);
      return async () => collector.answer(200);
    },
    again: ({ complete }) => complete('scripted/assistant'),
  },
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
    what: 'a key is exposed, and the mail server refuses the mail for now',
    begin: ({ cluster }) => exposeKey(cluster),
  },
  {
    alerts: ['OwnerOfExposedKeyNotNotified'],
    what: 'a key is exposed, and the mail server refuses the mail for good',
    begin: ({ cluster, mails }) => {
      mails.status = MAIL_NEVER;
      return exposeKey(cluster);
    },
  },
  {
    alerts: ['UsageNotBilled'],
    what: 'a usage record cannot be read',
    begin: async () => {},
    again: ({ cluster }) => publish(cluster, 'usage.record', '{}'),
  },
  {
    alerts: ['WorkQueueGrows'],
    what: 'a provider hangs',
    begin:
      async ({ providers }) =>
      async () =>
        providers.release(),
    again: ({ complete }) => Promise.all(Array.from({ length: CALLS_OF_ONE_REPETITION }, () => complete('test/silent', {}, DETACHED))),
  },
  {
    alerts: ['WorkRedelivered'],
    what: 'a worker is killed in the middle of many calls',
    begin: async ({ cluster, providers, complete, prometheus }) => {
      const [worker] = cluster.running('router-worker');
      const before = providers.waiting();
      const calls = Array.from({ length: CALLS }, () => complete('test/silent', {}, DETACHED).catch(() => 0));
      await eventually(() => providers.waiting() >= before + CALLS, WITHIN);
      // One that starts later: the calls that are running stay with the first.
      const other = new URL((await cluster.add('router-worker')).managementUrl).host;
      await prometheus.scrape(other);
      await eventually(async () => (await prometheus.query(`switchyard_work_redeliveries_total{instance="${other}"}`)).length > 0, WITHIN);
      worker?.signal('SIGKILL');
      return async () => {
        providers.release();
        await Promise.all(calls);
      };
    },
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
    alerts: ['CommandLogGrows'],
    what: 'the statements of the hosts wait for a lock, and commands are stored',
    begin: ({ cluster }) => lockTable(cluster, 'parts', { against: 'writes' }),
    again: ({ cluster }) => publish(cluster, 'cmd.7', '{}', COMMANDS_OF_ONE_REPETITION),
  },
  {
    alerts: ['LedgerBehind'],
    what: 'the ledger cannot write',
    begin: ({ cluster }) => lockTable(cluster, 'usage_ledger'),
    again: ({ complete }) => complete('scripted/assistant'),
  },
  {
    alerts: ['EventLoopLate'],
    what: 'a process computes for a second and a half at a time',
    begin: async () => {},
    again: async ({ cluster }) => {
      const [worker] = cluster.running('effect-worker');
      worker?.signal('SIGUSR2');
      await fetch(`${worker?.managementUrl}/live`, { signal: AbortSignal.timeout(WITHIN.timeoutMs) });
    },
    atOnce: 1,
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

const DETACHED = { 'x-detach': 'true' };

/** @returns how many it owns, as its own metrics have it */
async function partitionsOf({ managementUrl }: ClusterProcess): Promise<number> {
  const metrics = await (await fetch(`${managementUrl}/metrics`, { signal: AbortSignal.timeout(WITHIN.timeoutMs) })).text();
  return Number(/^switchyard_partitions_owned (\d+)/m.exec(metrics)?.[1] ?? 0);
}

async function exposeKey(cluster: Cluster): Promise<void> {
  const made = keyAnswer.parse(await manage(cluster, '/keys', { name: 'Shop', owner_email: 'owner@example.com' }));
  await manage(cluster, `/keys/${made.data.hash}/exposed`, { where: 'https://code.example/acme/.env' });
}

const keyAnswer = z.object({ data: z.object({ hash: z.string() }) });

async function manage(cluster: Cluster, path: string, body: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${cluster.keys.managementKey}`, 'content-type': 'application/json' };
  const response = await fetch(`${cluster.routerUrls[0]}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`);
  return response.json();
}
