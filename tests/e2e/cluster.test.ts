import { existsSync, readFileSync, statSync } from 'node:fs';
import OpenAI from 'openai';
import { beforeAll, describe, expect, it } from 'vitest';
import { agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { runProgram } from '../helpers/run-program.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';

const MODEL = 'scripted/assistant';
const TWO_OF_EACH = { 'router-gateway': 2, 'agent-gateway': 2, 'actor-host': 2, 'router-worker': 2, 'effect-worker': 2 };

let cluster: Cluster;

describe('two processes of each service', () => {
  // Ten processes start at once and race to migrate, to declare the streams and to store the configuration.
  beforeAll(async () => {
    cluster = await startCluster({ roles: TWO_OF_EACH, env: { LOG_LEVEL: 'info' }, isFirstStart: true });
  });

  it('start together, each with a management listener that reports it', async () => {
    expect(cluster.processes).toHaveLength(10);
    for (const { role, managementUrl, pid } of cluster.processes) {
      const ready = await fetch(`${managementUrl}/ready`);

      expect(ready.status, role).toBe(200);
      expect(await ready.json()).toMatchObject({ status: 'ready', checks: { bus: 'ok' } });
      expect(await (await fetch(`${managementUrl}/live`)).json()).toEqual({ status: 'ok' });
      const metrics = await fetch(`${managementUrl}/metrics`);
      expect([metrics.status, metrics.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/plain; version=0.0.4')]);
      expect(await metrics.text()).toContain('nodejs_eventloop_lag_seconds ');
      expect(pid).toBeGreaterThan(0);
    }
    // Not on a public port: there these paths are unknown.
    for (const url of [...cluster.routerUrls, ...cluster.agentUrls]) {
      for (const path of ['/ready', '/metrics']) expect([401, 404]).toContain((await fetch(`${url}${path}`)).status);
    }
  });

  it('answer the openai client at every router gateway, streamed and whole', async () => {
    expect(cluster.routerUrls).toHaveLength(2);
    for (const url of cluster.routerUrls) {
      const client = new OpenAI({ baseURL: `${url}/api/v1`, apiKey: cluster.keys.routerKey, maxRetries: 0, timeout: 60_000 });
      const body = { model: MODEL, messages: [{ role: 'user' as const, content: 'What is a quay?' }] };
      const whole = await client.chat.completions.create(body);
      const streamed = await client.chat.completions.stream(body).finalChatCompletion();

      expect(whole.choices[0]?.message.content).toMatch(/\w+ \w+/);
      expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content);
      expect(streamed.choices[0]?.finish_reason).toBe('stop');
    }
  });

  it('serve one conversation over both agent gateways', async () => {
    const [one, other] = cluster.agentUrls.map((url) => agentClient(url, cluster.keys.agentKey));
    if (one === undefined || other === undefined) throw new Error('there are two gateways');
    const { id } = await one.createSession();
    await other.postMessage(id, 'How long is the warranty?');
    const first = await one.logUntil(id, ({ kind, ...event }) => kind === 'status' && 'status' in event && event.status === 'ready');
    await one.postMessage(id, 'And how do I descale the machine?');
    const log = await other.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready' && event.offset > first.length);

    expect(log.slice(0, first.length)).toEqual(first);
    expect(log.map((event) => event.offset)).toEqual(log.map((_, index) => index));
    expect(log.map((event) => (event.kind === 'status' ? event.status : event.kind)).join(' ')).toBe(
      Array(2).fill('user_message acknowledged processing typing assistant_message ready').join(' '),
    );
  });

  it('send no deltas unless asked to', async () => {
    const agent = agentClient(cluster.agentUrls[0] ?? '', cluster.keys.agentKey);
    const { id } = await agent.createSession();
    const following = agent.streamUntil(id, ({ data }) => data.status === 'ready');
    await agent.postMessage(id, 'How long is the warranty?');

    expect((await following).map(({ event }) => event)).not.toContain('delta');
  });

  it('go on when one of each is killed, and use one more of each', async () => {
    for (const role of ['router-gateway', 'agent-gateway', 'actor-host', 'router-worker', 'effect-worker'] as const) {
      const [victim] = cluster.running(role);
      victim?.signal('SIGKILL');
      expect(await victim?.exited).toEqual({ code: null, signal: 'SIGKILL' });
      await cluster.add(role);
      expect(cluster.running(role).map(({ index }) => index)).toEqual([2, 3]);
    }
    for (const url of cluster.agentUrls) {
      const agent = agentClient(url, cluster.keys.agentKey);
      const { id } = await agent.createSession();
      await agent.postMessage(id, 'How long is the warranty?');
      await agent.logUntil(id, (event) => event.kind === 'assistant_message');
    }
  });

  it('drain without a failure, at one signal', async () => {
    await cluster.stop();

    const exits = await Promise.all(cluster.processes.map(({ exited }) => exited));
    expect(exits.filter(({ signal }) => signal !== 'SIGKILL')).toEqual(Array(10).fill({ code: 0, signal: null }));
    const errors = cluster
      .output()
      .split('\n')
      .filter((line) => line.includes('"level":"error"'));
    expect(errors).toEqual([]);
  });
});

describe('npm run cluster', () => {
  it('prints its usage for --help, and names a wrong argument', async () => {
    const help = runProgram([process.execPath, 'scripts/cluster.mjs', '--help']);
    expect(await help.exited).toEqual({ code: 0, signal: null });
    expect(help.output()).toContain('--actor-host 3');
    const wrong = runProgram([process.execPath, 'scripts/cluster.mjs', '--router-worker', 'many']);
    expect(await wrong.exited).toEqual({ code: 2, signal: null });
    expect(wrong.output()).toContain('--router-worker takes a number');
  });

  it('prints what runs where in JSON, reports a process that is killed, and stops everything at SIGTERM', async () => {
    const program = runProgram(['npm', 'run', '--silent', 'cluster'], { env: { AGENT_API_KEY: 'sk-agent-of-the-operator' } });
    const events = () => program.output().split('\n').flatMap(eventOf);
    const ready = await eventually(() => events().find(({ event }) => event === 'ready') ?? (program.hasExited() ? { routerUrls: [], keysFile: '' } : null), {
      timeoutMs: 60_000,
    });
    await eventually(() => program.output().includes('The cluster is running.'));
    const processes = events().filter(({ event }) => event === 'process');
    expect(processes.map(({ role }) => role).sort()).toEqual(['actor-host', 'agent-gateway', 'effect-worker', 'router-gateway', 'router-worker']);
    const keys = JSON.parse(readFileSync(ready.keysFile, 'utf8')) as { router_key: string };
    expect(Object.keys(keys)).toEqual(['router_key', 'router_management_key']);
    expect(statSync(ready.keysFile).mode & 0o777).toBe(0o600);
    const answer = await fetch(`${ready.routerUrls[0]}/api/v1/models`, { headers: { authorization: `Bearer ${keys.router_key}` } });
    expect(answer.status).toBe(200);
    const [, line = ''] = /^ {2}(DATA_DIR=.* ask -- "Hello")$/m.exec(program.output()) ?? [];
    const asked = runProgram(['bash', '-c', line]);
    expect(await asked.exited).toEqual({ code: 0, signal: null });
    expect(asked.output()).toMatch(/^Hello! /);

    const worker = processes.find(({ role }) => role === 'effect-worker');
    process.kill(worker?.pid ?? 0, 'SIGKILL');
    await eventually(() => events().some(({ event, pid, signal }) => event === 'exit' && pid === worker?.pid && signal === 'SIGKILL'));
    program.signal('SIGTERM');

    expect(await program.exited).toEqual({ code: 0, signal: null });
    expect(program.output()).toContain('Stopped.');
    for (const key of [keys.router_key, 'sk-agent-of-the-operator']) expect(program.output()).not.toContain(key);
    expect(existsSync(ready.keysFile)).toBe(false);
    for (const { pid } of processes) expect(() => process.kill(pid ?? 0, 0), `process ${pid}`).toThrow();
  });
});

interface ClusterEvent {
  event: string;
  role?: string;
  pid?: number;
  signal?: string | null;
  routerUrls: string[];
  /** Of the generated keys. */
  keysFile: string;
}

/** A line of JSON that the cluster prints; log lines stand behind the name of their process. */
function eventOf(line: string): ClusterEvent[] {
  return line.startsWith('{"event"') ? [JSON.parse(line) as ClusterEvent] : [];
}
