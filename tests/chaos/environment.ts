import pg from 'pg';
import { type Figures, newFigures } from '../../scripts/chaos-figures.mjs';
import type { ClusterProcess, Relay, Role } from '../../scripts/servers/start-cluster.mjs';
import { eventually } from '../helpers/eventually.ts';
import { type RetryingClient, retryingClient } from '../helpers/retrying-client.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { openScriptedUpstream, type ScriptedUpstream } from '../upstreams/scripted-upstream.ts';
import { WEBHOOK_SECRET, writeAgentFiles } from './agent-files.ts';
import { type Auditor, openAuditor } from './auditor.ts';
import { callRedeliveries } from './call-redeliveries.ts';
import { type CountingTools, openCountingTools } from './counting-tools.ts';
import { CpuWaits } from './cpu-waits.ts';
import { type ModelUpstream, openModelUpstream } from './model-upstream.ts';
import { PrintedLines } from './printed-lines.ts';
import { openReceiverProcess, type ReceiverProcess } from './receiver-process.ts';

export type HostRole = 'actor-host' | 'agent';

/** An actor host, by itself or with a gateway in one process, by the name of its connections. */
export interface NamedHost extends ClusterProcess {
  name: string;
}

/** A cluster with its upstreams, tools, receivers and auditor. */
export interface Environment {
  cluster: Cluster;
  database: pg.Pool;
  auditor: Auditor;
  receiver: ReceiverProcess;
  tools: CountingTools;
  /** The agent's model. */
  model: ModelUpstream;
  /** The provider of clients' streams. */
  upstream: ScriptedUpstream;
  figures: Figures;
  /** In [0, 1), from the seed of the pass. */
  random(): number;
  /** Uses the agent gateways in turn. */
  client: RetryingClient;
  /** The same, and repeats a message until its answer is 201. */
  stubbornClient: RetryingClient;
  nextRouterUrl(): string;
  nextAgentUrl(): string;
  /** The running hosts. */
  hosts(): NamedHost[];
  /** One more process of a role, which is restarted if it exits before it is ready, as a process supervisor does. */
  add(role: Role, env?: Record<string, string>, folder?: string): Promise<ClusterProcess>;
  /** With `avoidsEnded`: requests that were refused otherwise than by a 503 with Retry-After, and those whose connection was lost. */
  refusals: string[];
  /** With `avoidsEnded`: what the processes have printed about a call, with what any of them warned of at the time. */
  printedAbout(callId: string, at: Date): string[];
  /** With `avoidsEnded`: the longest share of the time before a worker lost the lease of a call in which that worker waited for a CPU, 0 to 1. 0: none was lost. */
  waitedForCpu(callId: string): number;
  /** @param folder the folder of another `dist/` to run */
  addHost(env?: Record<string, string>, folder?: string, role?: HostRole): Promise<NamedHost>;
  /** Processes that received a signal. */
  ended: ReadonlySet<ClusterProcess>;
  /** Of all router workers so far, but for what one that was ended got behind the signal. */
  callRedeliveries(): Promise<number>;
  /** Ends a process and resolves when it has ended. @throws when it was drained and exited with a failure */
  end(process: ClusterProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  /** Ends a store. PostgreSQL is killed by SIGQUIT (immediate shutdown) rather than by SIGKILL. */
  endStore(store: 'nats' | 'postgres' | 'redis', signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL' | 'SIGQUIT'): Promise<void>;
  /** Waits until every partition has a running owner. */
  everyPartitionOwned(excluded?: string): Promise<void>;
  close(): Promise<void>;
}

const NONE = { 'router-gateway': 0, 'agent-gateway': 0, 'router-worker': 0, 'effect-worker': 0 } as const;
const HOSTS = 3;
export const TIMEOUT_MS = 60_000;
const DRAIN_SECONDS = '20';
/** How long the broker's reply to an extension may be missing before a lease is lost. */
const LEASE_MS = 4_000;
/** A process gives up when it has not reached the stores for 10 s, as on a machine that is too busy. */
const MAX_STARTS = 4;

interface EnvironmentOptions {
  /** Servers of the broker; by default one. */
  brokers?: number;
  /** Between these servers, and from the services to them; by default they connect directly. */
  relay?: Relay;
  /** The folder of another `dist/`, which the first processes run. */
  folder?: string;
  /** Requests go to no gateway that has received a signal, as with a proxy that asks gateways whether they are ready. */
  avoidsEnded?: boolean;
}

const COUNTS = { 'router-gateway': 2, 'agent-gateway': 2, 'router-worker': 2, 'effect-worker': 1 } as const;

/** Starts it all. @param random made from the seed that the caller has printed */
export async function openEnvironment(
  random: () => number,
  { brokers = 1, relay, folder: first, avoidsEnded = false }: EnvironmentOptions = {},
): Promise<Environment> {
  const [receiver, tools, model, upstream] = await Promise.all([openReceiverProcess(), openCountingTools(), openModelUpstream(), openScriptedUpstream()]);
  const files = await writeAgentFiles(tools.port, model.baseUrl, upstream.baseUrl('first'));
  const figures = newFigures();
  const printed = new PrintedLines();
  const cluster = await startCluster({
    brokers,
    relay,
    // Another release migrates the database as far as it knows.
    isFirstStart: first !== undefined,
    roles: { ...(first === undefined ? COUNTS : NONE), 'actor-host': 0 },
    env: {
      ...files,
      PLATFORM_PUBLIC_KEY: 'pk-chaos',
      PLATFORM_SECRET_KEY: 'sk-chaos',
      LOG_LEVEL: avoidsEnded ? 'info' : 'warn',
      COALESCE_MS: '100',
      OUTBOUND_ALLOW_HOSTS: receiver.host,
      SHUTDOWN_DRAIN_TIMEOUT_SECONDS: DRAIN_SECONDS,
      WEBHOOK_SECRET,
    },
    onLine: (line, { role, index }) => {
      if (avoidsEnded) printed.add(`${role}-${index}`, line);
      if (line.includes('the command log is not the one that was read')) figures.rollBacksNoticed += 1;
    },
  });
  const cpuWaits = new CpuWaits(cluster.processes);
  const database = new pg.Pool({ connectionString: cluster.postgres.url, max: 4 });
  // The test's own pool loses the server too; a query in flight then fails by itself.
  database.on('error', () => {});
  const hosts: NamedHost[] = [];
  let named = 0;
  const ended = new Set<ClusterProcess>();
  const add = async (role: Role, env: Record<string, string> = {}, folder?: string) => {
    for (let starts = 1; ; starts += 1) {
      try {
        return await cluster.add(role, env, folder);
      } catch (error) {
        const gaveUp = error instanceof Error && error.message.includes('before it was ready');
        if (!gaveUp || starts >= MAX_STARTS) throw error;
      }
    }
  };
  if (first !== undefined) {
    const roles = (Object.keys(COUNTS) as (keyof typeof COUNTS)[]).flatMap((role) => Array.from({ length: COUNTS[role] }, () => role));
    await Promise.all(roles.map((role) => add(role, {}, first)));
  }
  const auditor = await openAuditor(database);
  const addHost = async (env: Record<string, string> = {}, folder?: string, role: HostRole = 'actor-host') => {
    named += 1;
    const name = `host-${named}`;
    const one = await add(role, { DATABASE_URL: `${cluster.postgres.url}?application_name=${name}`, ...env }, folder);
    const host = Object.assign(one, { name });
    hosts.push(host);
    return host;
  };
  await Promise.all(Array.from({ length: HOSTS }, () => addHost({}, first)));
  const everyPartitionOwned = async (excluded?: string) => {
    await eventually(async () => (await auditor.partitionsWithoutOwner(excluded)) === 0, { timeoutMs: TIMEOUT_MS });
  };
  await everyPartitionOwned();
  const urlsOf =
    (...roles: Role[]) =>
    () =>
      roles.flatMap((role) => cluster.running(role)).flatMap((one) => (one.url === null || (avoidsEnded && ended.has(one)) ? [] : [one.url]));
  const refusals: string[] = [];
  let redeliveredToEnded = 0;
  const onRetry = (path: string, status: number | null, hasRetryAfter: boolean) => {
    if (avoidsEnded && !(status === 503 && hasRetryAfter)) refusals.push(`${path}: ${status ?? 'the connection was lost'}`);
  };
  const client = { nextUrl: inTurn(urlsOf('agent-gateway', 'agent')), key: cluster.keys.agentKey, timeoutMs: TIMEOUT_MS, onRetry };
  return {
    cluster,
    database,
    auditor,
    receiver,
    tools,
    model,
    upstream,
    figures,
    random,
    client: retryingClient(client),
    stubbornClient: retryingClient({ ...client, retriesAccepted: true }),
    nextRouterUrl: inTurn(urlsOf('router-gateway')),
    nextAgentUrl: inTurn(urlsOf('agent-gateway', 'agent')),
    refusals,
    printedAbout: (callId, at) => printed.about(callId, at),
    waitedForCpu: (callId) => Math.max(0, ...printed.lostLeases(callId).map(({ by, atMs }) => cpuWaits.shareOf(by, atMs - LEASE_MS, atMs))),
    ended,
    callRedeliveries: async () => {
      const running = cluster.running('router-worker').filter((one) => !ended.has(one));
      return redeliveredToEnded + (await callRedeliveries(running));
    },
    end: async (one, signal) => {
      const redelivered = one.role === 'router-worker' ? await callRedeliveries([one]) : 0;
      redeliveredToEnded += redelivered;
      ended.add(one);
      one.signal(signal);
      const exit = await one.exited;
      if (signal === 'SIGKILL') figures.kills[one.role] = (figures.kills[one.role] ?? 0) + 1;
      else if (exit.code !== 0) throw new Error(`${one.role}-${one.index} ended with ${exit.signal ?? exit.code}; it printed:\n${one.output()}`);
    },
    endStore: async (store, signal) => {
      await cluster[store].end(signal);
      const counted = signal === 'SIGKILL' || signal === 'SIGQUIT' ? figures.kills : figures.restarts;
      counted[store] = (counted[store] ?? 0) + 1;
    },
    hosts: () => hosts.filter((one) => !one.hasExited()),
    add,
    addHost,
    everyPartitionOwned,
    close: async () => {
      cpuWaits.stop();
      await database.end();
      await cluster.stop();
      await Promise.all([receiver.close(), tools.close(), model.close(), upstream.close()]);
    },
  };
}

/** Round-robin over the addresses of the moment. */
function inTurn(urls: () => readonly string[]): () => string {
  let turn = 0;
  return () => {
    const now = urls();
    const url = now[turn % now.length];
    if (url === undefined) throw new Error('there is no gateway left');
    turn += 1;
    return url;
  };
}
