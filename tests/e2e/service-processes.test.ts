import { once } from 'node:events';
import { createServer } from 'node:net';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { type RunningProgram, runProgram } from '../helpers/run-program.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';

/** What a start that fails may take, from the command to the exit code. */
const LIMIT_MS = 10_000;

/** The stores alone. */
let cluster: Cluster;
beforeAll(async () => {
  const none = 0;
  cluster = await startCluster({ roles: { 'router-gateway': none, 'agent-gateway': none, 'actor-host': none, 'router-worker': none, 'effect-worker': none } });
});

type Role = Parameters<Cluster['environmentOf']>[0];

function startService(role: Role, env: Record<string, string | undefined>, args: string[] = []): RunningProgram {
  return runProgram([process.execPath, `dist/services/${role}/main.js`, ...args], { env: { ...cluster.environmentOf(role), ...env } });
}

/** Starts a service that can't, and returns what it said when it ended. */
async function whyItEnds(role: Role, env: Record<string, string | undefined>, args: string[] = []): Promise<string> {
  const startedAtMs = performance.now();
  const program = startService(role, env, args);
  const exit = await program.exited;

  expect(exit, program.output()).toEqual({ code: 1, signal: null });
  expect(performance.now() - startedAtMs, program.output()).toBeLessThan(LIMIT_MS);
  return program.output();
}

/** The lines that are not of the log. */
function plainLines(output: string): string[] {
  return output.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
}

describe('a service whose store is not there', () => {
  // Each takes as long as a start may, so they are one test, side by side.
  it('ends within 10 s and says on one line which one, and where, without its credentials', async () => {
    const silent = await listen();
    const cases: [Role, Record<string, string>, RegExp][] = [
      ['agent-gateway', { DATABASE_URL: 'postgres://anna:hunter2@127.0.0.1:1/house' }, /PostgreSQL at 127\.0\.0\.1:1\b/],
      ['agent-gateway', { REDIS_URL: 'redis://:hunter2@127.0.0.1:1' }, /Redis at (?:redis:\/\/)?127\.0\.0\.1:1\b/],
      ['router-gateway', { NATS_URL: 'nats://127.0.0.1:1', NATS_PASSWORD: 'hunter2' }, /NATS at (?:nats:\/\/)?127\.0\.0\.1:1\b/],
      ['actor-host', { DATABASE_URL: `postgres://anna:hunter2@127.0.0.1:${silent}/house` }, new RegExp(`PostgreSQL at 127\\.0\\.0\\.1:${silent}\\b`)],
      ['effect-worker', { NATS_URL: `nats://127.0.0.1:${silent}`, NATS_PASSWORD: 'hunter2' }, new RegExp(`NATS at (?:nats://)?127\\.0\\.0\\.1:${silent}\\b`)],
      ['agent-gateway', { REDIS_URL: `redis://:hunter2@127.0.0.1:${silent}` }, new RegExp(`Redis at (?:redis://)?127\\.0\\.0\\.1:${silent}\\b`)],
    ];
    await Promise.all(
      cases.map(async ([role, env, names]) => {
        const output = await whyItEnds(role, env);

        expect(plainLines(output), output).toHaveLength(1);
        expect(plainLines(output)[0]).toMatch(/^[a-z-]+ can't start: /);
        expect(output).toMatch(names);
        expect(output).not.toMatch(/hunter2|anna/);
      }),
    );
  });

  it('ends at once when the broker does not know its password', async () => {
    const output = await whyItEnds('router-worker', { NATS_PASSWORD: 'hunter2' });

    expect(output).toMatch(/refused the user 'router-worker'/);
    expect(output).not.toContain('hunter2');
  });
});

describe('a service that is not set up', () => {
  it('ends with every setting that is missing or wrong', async () => {
    const output = await whyItEnds('agent-gateway', { NATS_URL: '', HOUSE_SECRET: 'hunter2', DATABASE_URL: 'mysql://hunter2', STREAMING: 'perhaps' });

    for (const name of ['NATS_URL', 'HOUSE_SECRET', 'DATABASE_URL', 'STREAMING']) expect(output).toContain(name);
    expect(output).not.toContain('hunter2');
  });

  it.each<[Role, string]>([
    ['agent-gateway', 'AGENT_API_KEY'],
    ['effect-worker', 'AGENT_API_KEY'],
    ['router-gateway', 'ROUTER_API_KEY'],
  ])('%s ends with the name of the variable that its configuration refers to: %s', async (role, variable) => {
    expect(await whyItEnds(role, { [variable]: undefined })).toContain(`the environment variable ${variable} is not set`);
  });

  it('does not ask for secrets that it has no use for', async () => {
    const secrets = { AGENT_API_KEY: undefined, ROUTER_API_KEY: undefined, PLATFORM_SECRET_KEY: undefined, HOUSE_SECRET: undefined };
    const worker = startService('router-worker', { ...secrets, LOG_LEVEL: 'info' });
    await becomesReady(worker);
    worker.signal('SIGTERM');

    expect(await worker.exited).toEqual({ code: 0, signal: null });
  });

  it('an effect worker ends for a kind that there is not, and works on those of its command line', async () => {
    expect(await whyItEnds('effect-worker', {}, ['--kinds', 'tool,retrieval'])).toContain('must be one or more of tool, delivery');
    const worker = startService('effect-worker', { EFFECT_KINDS: 'nothing', LOG_LEVEL: 'info' }, ['--kinds', 'delivery']);
    await becomesReady(worker);
    worker.signal('SIGTERM');

    expect(await worker.exited).toEqual({ code: 0, signal: null });
  });
});

/** A server that accepts connections and never says anything. @returns its port */
async function listen(): Promise<number> {
  const server = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return address.port;
}

async function becomesReady(program: RunningProgram): Promise<void> {
  await eventually(() => program.output().includes('"msg":"ready"') || program.hasExited(), { timeoutMs: 30_000 });
  expect(program.output()).toContain('"msg":"ready"');
}
