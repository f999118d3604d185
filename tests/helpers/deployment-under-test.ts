import { join } from 'node:path';
import { z } from 'zod';
import type { Role } from '../../scripts/servers/start-cluster.mjs';
import { type AgentClient, agentClient } from './agent-client.ts';
import { type Cluster, startCluster } from './start-cluster.ts';
import { startStandalone } from './start-standalone.ts';

/** A deployment of either shape, as clients see it. */
export interface DeploymentUnderTest {
  /** Of the next router gateway: those of a cluster are used in turn, so the effect of one is read at another. */
  nextRouterUrl(): string;
  nextAgentUrl(): string;
  /** Of the management listeners of all running processes. */
  managementUrls(): string[];
  keys: { routerKey: string; agentKey: string };
  /** Uses the agent gateways in turn. */
  agent: AgentClient;
  /** Log lines of its processes so far. */
  logLines(): LogLine[];
  /** The last output of its processes, for the message of a failing test. */
  output(): string;
  /** Null for the standalone shape. */
  cluster: Cluster | null;
  /** Drains it. @throws with the output when a process exited with a failure */
  stop(): Promise<void>;
}

const logLine = z.looseObject({ level: z.string(), service: z.string(), msg: z.string(), trace_id: z.string().optional() });
type LogLine = z.infer<typeof logLine>;

export interface Shape {
  /** For the names of tests. */
  name: string;
  /** Whether it has several processes, which can be stopped and added. */
  isCluster: boolean;
  /**
   * Starts one, on the scripted model, and waits until it is ready.
   *
   * @param env settings of every process
   * @param roles how many processes of each a cluster has; default: two
   * @param programs folder of the program in one process; default: that of the clone
   */
  start(env?: Record<string, string>, roles?: Roles, programs?: string): Promise<DeploymentUnderTest>;
}

type Roles = Partial<Record<Role, number>>;

const TWO_OF_EACH = { 'router-gateway': 2, 'agent-gateway': 2, 'actor-host': 2, 'router-worker': 2, 'effect-worker': 2 };
/** Enough for every line of a file's cases; a deployment that logs more has a fault. */
const MAX_LINES = 200_000;

/** For tests that only call the model router. */
export const ROUTERS: Roles = { 'router-gateway': 2, 'agent-gateway': 0, 'actor-host': 0, 'router-worker': 2, 'effect-worker': 0 };

export const inOneProcess: Shape = { name: 'in one process', isCluster: false, start: startOneProcess };
export const asCluster: Shape = { name: 'as a cluster', isCluster: true, start: startProcesses };

/** Both shapes of a deployment, which have the same behaviour. */
export const shapes: readonly Shape[] = [inOneProcess, asCluster];

async function startOneProcess(env: Record<string, string> = {}, _: Roles = {}, programs?: string): Promise<DeploymentUnderTest> {
  const deployment = await startStandalone({
    env: { LOG_LEVEL: 'info', MANAGEMENT_PORT: '0', ...env },
    ...(programs === undefined ? {} : { command: [process.execPath, join(programs, 'dist/services/standalone/main.js')] }),
  });
  return {
    nextRouterUrl: () => deployment.routerUrl,
    nextAgentUrl: () => deployment.agentUrl,
    managementUrls: () => (deployment.managementUrl === undefined ? [] : [deployment.managementUrl]),
    keys: deployment.keys,
    agent: agentClient(deployment.agentUrl, deployment.keys.agentKey),
    // The last one may not be complete yet.
    logLines: () => deployment.output().split('\n').slice(0, -1).flatMap(logLineOf),
    output: deployment.output,
    cluster: null,
    stop: async () => {
      const { code, signal } = await deployment.stop();
      if (code !== 0) throw new Error(`it ended with ${signal ?? code}; it printed:\n${deployment.output()}`);
    },
  };
}

async function startProcesses(env: Record<string, string> = {}, roles: Roles = TWO_OF_EACH): Promise<DeploymentUnderTest> {
  const lines: LogLine[] = [];
  const keep = (line: string) => {
    if (lines.length < MAX_LINES) lines.push(...logLineOf(line));
  };
  const cluster = await startCluster({ roles, env: { LOG_LEVEL: 'info', ...env }, onLine: keep });
  const nextAgentUrl = inTurn(() => cluster.agentUrls);
  return {
    nextRouterUrl: inTurn(() => cluster.routerUrls),
    nextAgentUrl,
    managementUrls: () => cluster.processes.flatMap((one) => (one.hasExited() ? [] : [one.managementUrl])),
    keys: cluster.keys,
    agent: agentClient(nextAgentUrl, cluster.keys.agentKey),
    logLines: () => lines,
    output: cluster.output,
    cluster,
    stop: async () => {
      await cluster.stop();
      const exits = await Promise.all(cluster.processes.map(async (one) => ({ ...one, ...(await one.exited) })));
      const failed = exits.filter(({ code }) => code !== 0).map(({ role, index, code, signal }) => `${role}-${index} ended with ${signal ?? code}`);
      if (failed.length > 0) throw new Error(`${failed.join(', ')}; they printed:\n${cluster.output()}`);
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

/** Lines that are not JSON are no log lines. */
function logLineOf(line: string): LogLine[] {
  return line.startsWith('{') ? [logLine.parse(JSON.parse(line))] : [];
}
