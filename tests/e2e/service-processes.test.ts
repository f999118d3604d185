import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile, rename, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, inject, it, onTestFinished, type TestContext } from 'vitest';
import { startNatsServer } from '../../scripts/servers/test-services.mjs';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import { freshDatabase } from '../../shared/storage/conformance/fresh-database.ts';
import { openPostgres } from '../../shared/storage/postgres/open-postgres.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { openStream } from '../helpers/open-stream.ts';
import { type RunningProgram, root, runProgram } from '../helpers/run-program.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { startStandalone } from '../helpers/start-standalone.ts';
import { casesOfToday } from '../helpers/tier.ts';

/** For a failing start, from the command to the exit code: a multiple of the contract's ten seconds, for a busy machine. */
const FAILED_START = { timeoutMs: 90_000 };

const CLEAN = { code: 0, signal: null };
/** A few seconds of stream: long enough to be in flight when the signal arrives, short enough to be waited for. */
const SHORT_STREAM = '!slow 100 Hello!';
/** More than an hour of stream: a process that waits for its end has not stopped at once. */
const ENDLESS_STREAM = '!slow 1000 !repeat 200 Hello!';

/** The stores alone. */
let cluster: Cluster;
beforeAll(async () => {
  const none = 0;
  cluster = await startCluster({ roles: { 'router-gateway': none, 'agent-gateway': none, 'actor-host': none, 'router-worker': none, 'effect-worker': none } });
});

type Role = Parameters<Cluster['running']>[0];
/** Of the test's own context: cases run side by side. */
type OnTestFinished = TestContext['onTestFinished'];

function startService(role: Role, env: Record<string, string | undefined>, args: string[] = []): RunningProgram {
  return runProgram([process.execPath, `dist/services/${role}/main.js`, ...args], { env: { ...cluster.environmentOf(role), ...env } });
}

/** Starts a service that can't start, and returns its output when it ended. */
async function whyItEnds(role: Role, env: Record<string, string | undefined>, args: string[] = []): Promise<string> {
  const program = startService(role, env, args);
  await eventually(() => program.hasExited(), FAILED_START);
  const exit = await program.exited;

  expect(exit, program.output()).toEqual({ code: 1, signal: null });
  return program.output();
}

/** The lines that are not of the log. */
function plainLines(output: string): string[] {
  return output.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
}

// The cases wait for the ten seconds that a start may take, so they wait together.
describe('a service whose store is not there', { concurrent: true }, () => {
  // Each takes as long as a start may, so they are one test, side by side.
  it('ends within 10 s and says on one line which one, and where, without its credentials', async ({ onTestFinished }) => {
    const silent = await listen(onTestFinished);
    const cases: [Role, Record<string, string>, RegExp][] = [
      ['agent-gateway', { DATABASE_URL: 'postgres://anna:hunter2@127.0.0.1:1/agents' }, /PostgreSQL at 127\.0\.0\.1:1\b/],
      ['router-gateway', { NATS_URL: 'nats://127.0.0.1:1', NATS_PASSWORD: 'hunter2' }, /NATS at (?:nats:\/\/)?127\.0\.0\.1:1\b/],
      ['actor-host', { DATABASE_URL: `postgres://anna:hunter2@127.0.0.1:${silent}/agents` }, new RegExp(`PostgreSQL at 127\\.0\\.0\\.1:${silent}\\b`)],
      ['effect-worker', { NATS_URL: `nats://127.0.0.1:${silent}`, NATS_PASSWORD: 'hunter2' }, new RegExp(`NATS at (?:nats://)?127\\.0\\.0\\.1:${silent}\\b`)],
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

  it('is found out beside the others: a start that waits for its database has begun to connect to the broker, and to the cache', async ({ onTestFinished }) => {
    const silent = await listen(onTestFinished);
    const roles = casesOfToday(['agent-gateway', 'actor-host', 'router-worker', 'effect-worker'] as const);
    await Promise.all(
      roles.map(async (role) => {
        const asked = new Set<string>();
        const [nats, redis] = await Promise.all([listen(onTestFinished, () => asked.add('NATS')), listen(onTestFinished, () => asked.add('Redis'))]);
        const stores = { DATABASE_URL: `postgres://anna@127.0.0.1:${silent}/agents`, NATS_URL: `nats://127.0.0.1:${nats}` };
        const service = startService(role, { ...stores, ...(role === 'agent-gateway' && { REDIS_URL: `redis://127.0.0.1:${redis}` }) });
        await eventually(() => service.hasExited() || asked.size === (role === 'agent-gateway' ? 2 : 1), FAILED_START);
        service.signal('SIGKILL');

        expect([...asked].sort(), service.output()).toEqual(role === 'agent-gateway' ? ['NATS', 'Redis'] : ['NATS']);
      }),
    );
  });

  it('goes on when its store is merely slow: it waits for a migration longer than a start that fails may take, and says which session migrates', async ({
    onTestFinished,
  }) => {
    const fresh = await databaseThatMigrates(onTestFinished);
    const service = startService('effect-worker', { DATABASE_URL: fresh.url, LOG_LEVEL: 'info' });

    await eventually(() => /still starting: .*migrated by a long migration \(from 127\.0\.0\.1, session \d+\) \(1\d s\)/.test(service.output()), {
      timeoutMs: 60_000,
    });
    await fresh.end();
    await eventually(() => service.output().includes('"msg":"ready"'), { timeoutMs: 60_000 });
    service.signal('SIGTERM');

    expect(await service.exited).toEqual(CLEAN);
  });

  it('DESIGN 10: a gateway whose start waits is alive and not ready on its public port, and serves there once it is ready', async ({ onTestFinished }) => {
    const fresh = await databaseThatMigrates(onTestFinished);
    const gateway = startService('agent-gateway', { DATABASE_URL: fresh.url, PORT: '0', LOG_LEVEL: 'info' });
    const url = await eventually(() => /"url":"([^"]+)","msg":"listening, and not ready yet"/.exec(gateway.output())?.[1], { timeoutMs: 60_000 });
    await eventually(() => /still starting: migrating the schema /.test(gateway.output()), { timeoutMs: 60_000 });

    expect(await answerAt(`${url}/health/live`)).toEqual([200, { status: 'ok', service: 'agent-server' }]);
    for (const path of ['/health', '/health/ready']) expect(await answerAt(url + path)).toEqual([503, { status: 'booting' }]);
    expect(await answerAt(`${url}/sessions/s-1`)).toEqual([503, { error: 'the server is still starting', code: 'not_ready' }]);

    await fresh.end();
    await eventually(async () => (await answerAt(`${url}/health`))[0] === 200, { timeoutMs: 60_000 });
    expect(await answerAt(`${url}/sessions/s-1`)).toMatchObject([401, {}]);
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toEqual(CLEAN);
  });

  it('DESIGN 10: a router gateway that waits for its broker is alive and not ready on its public port, until it gives up', async ({ onTestFinished }) => {
    const silent = await listen(onTestFinished);
    const gateway = startService('router-gateway', { NATS_URL: `nats://127.0.0.1:${silent}`, PORT: '0', LOG_LEVEL: 'info' });
    const url = await eventually(() => /"url":"([^"]+)","msg":"listening, and not ready yet"/.exec(gateway.output())?.[1], { timeoutMs: 60_000 });

    expect(await answerAt(`${url}/health/live`)).toEqual([200, { status: 'ok' }]);
    expect(await answerAt(`${url}/health/ready`)).toEqual([503, { status: 'booting' }]);
    expect(await answerAt(`${url}/api/v1/models`)).toMatchObject([503, { error: { code: 503 } }]);
    expect((await gateway.exited).code).toBe(1);
    await expect(answerAt(`${url}/health/live`)).rejects.toThrow();
  });

  it('a port that is taken ends the start before any store is asked', async ({ onTestFinished }) => {
    const taken = await listen(onTestFinished);
    const output = await whyItEnds('agent-gateway', { PORT: String(taken), DATABASE_URL: 'postgres://127.0.0.1:1/none' });

    expect(plainLines(output)).toHaveLength(1);
    expect(output).toContain(`agent-gateway can't start: Port ${taken} of 127.0.0.1 is taken by another program. Set PORT to a free port, or 0 for any`);
  });

  it('names the user and the setting when the broker does not know its password, though another address of it does not answer', async ({ onTestFinished }) => {
    const silent = await listen(onTestFinished);
    const wrong = { NATS_PASSWORD: 'hunter2', NATS_URL: `nats://127.0.0.1:${silent},${cluster.nats.url}` };
    const roles = casesOfToday(['router-gateway', 'agent-gateway', 'actor-host', 'router-worker', 'effect-worker', 'router', 'agent'] as const);
    const refusedTo = (user: string) => new RegExp(`refused the user '${user}' \\(Authorization Violation\\): NATS_PASSWORD is not the password`);
    await Promise.all(
      roles.map(async (role) => {
        const output = await whyItEnds(role, wrong);

        expect(plainLines(output), output).toHaveLength(1);
        expect(output).toMatch(refusedTo(role));
        expect(output).not.toContain('hunter2');
      }),
    );
    const doctor = runProgram([process.execPath, 'dist/services/operator/main.js', 'doctor', '--offline'], {
      env: { ...cluster.environmentOf('operator'), ...wrong },
    });
    await doctor.exited;
    expect(doctor.output()).toMatch(new RegExp(`failed +broker: .*${refusedTo('operator').source}`));
    expect(doctor.output()).not.toContain('hunter2');
  });
});

describe('a service whose broker is not that of the running hosts', () => {
  it('ends within 10 s and names both logs and the hosts', async () => {
    const host = await cluster.add('actor-host');
    const other = await startNatsServer();
    onTestFinished(async () => {
      host.signal('SIGKILL');
      await other.close();
    });
    const refused = (['agent-gateway', 'actor-host', 'effect-worker', 'router-worker'] as const).map((role) => whyItEnds(role, { NATS_URL: other.url }));
    for (const output of await Promise.all(refused)) {
      expect(plainLines(output), output).toHaveLength(1);
      expect(output).toMatch(/can't start: .*a broker whose command log was created at 2\S+, and hosts .* have another log: host-\S+ \(2\S+\)\. .*NATS_URL/);
    }
    host.signal('SIGTERM');
    expect(await host.exited).toEqual(CLEAN);
  });
});

describe('a service that is not set up', () => {
  it('ends with every setting that is missing or wrong', async () => {
    const output = await whyItEnds('agent-gateway', { NATS_URL: '', HOUSE_SECRET: 'hunter2', DATABASE_URL: 'mysql://hunter2', STREAMING: 'perhaps' });

    for (const name of ['NATS_URL', 'HOUSE_SECRET', 'DATABASE_URL', 'STREAMING']) expect(output).toContain(name);
    expect(output).not.toContain('hunter2');
  });

  it.each(
    casesOfToday<[Role, string]>([
      ['agent-gateway', 'AGENT_API_KEY'],
      ['effect-worker', 'AGENT_API_KEY'],
      ['router-gateway', 'ROUTER_API_KEY'],
      ['router-worker', 'ROUTER_API_KEY'],
      ['actor-host', 'ROUTER_API_KEY'],
    ]),
  )('DESIGN 10: %s ends within 10 s with the name of the variable that its configuration refers to: %s', async (role, variable) => {
    expect(await whyItEnds(role, { [variable]: undefined })).toContain(`the environment variable ${variable} is not set`);
  });

  it('requires no secret that it does not use', async () => {
    const platform = { PLATFORM_PUBLIC_KEY: undefined, PLATFORM_SECRET_KEY: undefined, ROUTER_MANAGEMENT_KEY: undefined };
    const worker = startService('router-worker', { ...platform, AGENT_API_KEY: undefined, HOUSE_SECRET: undefined, LOG_LEVEL: 'info' });
    const gateway = startService('agent-gateway', { ...platform, PORT: '0', LOG_LEVEL: 'info' });
    for (const service of [worker, gateway]) {
      await becomesReady(service);
      service.signal('SIGTERM');
    }

    expect([await worker.exited, await gateway.exited]).toEqual([CLEAN, CLEAN]);
  });

  it('an effect worker ends for an unknown kind, and works on those of its command line', async () => {
    expect(await whyItEnds('effect-worker', {}, ['--kinds', 'tool,retrieval'])).toContain('must be one or more of tool, delivery');
    const worker = startService('effect-worker', { EFFECT_KINDS: 'nothing', LOG_LEVEL: 'info' }, ['--kinds', 'delivery']);
    await becomesReady(worker);
    worker.signal('SIGTERM');

    expect(await worker.exited).toEqual(CLEAN);
  });
});

describe('a service that is stopped by a signal', () => {
  it('fails its readiness probe, lets a stream end, and exits with 0', async () => {
    const gateway = await cluster.add('router-gateway');
    const worker = await cluster.add('router-worker');
    const { text } = await openStream({ routerUrl: gateway.url ?? '', keys: cluster.keys, output: cluster.output }, SHORT_STREAM);
    gateway.signal('SIGTERM');
    await eventually(async () => (await readinessAt(gateway.managementUrl)) === '503 draining');
    const live = await fetch(`${gateway.managementUrl}/live`);
    worker.signal('SIGTERM');

    expect(live.status).toBe(200);
    expect(await text).toContain('[DONE]');
    expect(await gateway.exited).toEqual(CLEAN);
    expect(await worker.exited).toEqual(CLEAN);
  });

  it('does not wait for a stream at a second signal, a second later', async () => {
    const gateway = await cluster.add('router-gateway');
    const worker = await cluster.add('router-worker');
    const { text } = await openStream({ routerUrl: gateway.url ?? '', keys: cluster.keys, output: cluster.output }, ENDLESS_STREAM);
    gateway.signal('SIGTERM');
    await eventually(async () => (await readinessAt(gateway.managementUrl)) === '503 draining');
    await delay(1_100); // a signal within a second counts as the same request, and that second is what is tested
    expect(gateway.hasExited()).toBe(false);
    gateway.signal('SIGINT');

    expect(await gateway.exited).toEqual({ code: 130, signal: null });
    await expect(text).rejects.toThrow();
    worker.signal('SIGKILL'); // a drain would finish the call
    await worker.exited;
  });
});

describe('an actor host', () => {
  it('sweeps the store once its delay is over, and drains', async () => {
    const host = startService('actor-host', { STORE_GC_DELAY_SECONDS: '1', LOG_LEVEL: 'info' });
    await eventually(() => host.output().includes('the store was swept'));
    host.signal('SIGTERM');

    expect(await host.exited, host.output()).toEqual(CLEAN);
  });
});

describe('a process with a fault', () => {
  it.each([
    ['thrown', 'throw new Error("with postgres://anna:hunter2@db")'],
    ['rejected', 'await Promise.reject(new Error("with postgres://anna:hunter2@db"))'],
  ])('that is %s ends with 1 and logs it, without secrets', async (_, fault) => {
    const script = `
      import { exitOnFault } from './dist/shared/lifecycle/exit-on-fault.js';
      import { createLog } from './dist/shared/telemetry/log.js';
      exitOnFault(createLog({ level: 'info', service: 'faulty' }));
      setTimeout(async () => { ${fault} }, 0);
      setInterval(() => {}, 1_000);`;
    const program = runProgram([process.execPath, '--input-type=module', '--eval', script]);

    expect(await program.exited).toEqual({ code: 1, signal: null });
    const [line = ''] = program.output().split('\n');
    expect(JSON.parse(line)).toMatchObject({ level: 'error', service: 'faulty', err: { message: 'with postgres://[redacted]@db' } });
    expect(program.output()).not.toContain('hunter2');
  });
});

describe('npm start', () => {
  it('DESIGN 10: npm start is alive and not ready on both public ports while it starts, and serves there once it is ready', async () => {
    // The management listener is there when a port is set for it; first-lines.test.ts has a start without one.
    // The start reads its configuration from a pipe, and waits until something is written to it.
    const folder = await freeFolder('configuration');
    const path = join(folder, 'router.yaml');
    await promisify(execFile)('mkfifo', [path]);
    const pipe = await open(path, 'r+');
    onTestFinished(() => pipe.close());
    const [router, agent] = [`http://127.0.0.1:${await freePort()}`, `http://127.0.0.1:${await freePort()}`];
    const ports = { ROUTER_PORT: new URL(router).port, AGENT_PORT: new URL(agent).port, MANAGEMENT_PORT: '0' };
    const starting = startStandalone({ env: { ...ports, ROUTER_CONFIG: path, OPENAI_API_KEY: 'sk-unused', SHOP_FRONT_KEY: 'sk-shop' } });
    starting.catch(() => {});

    await eventually(async () => (await answerAt(`${router}/health/live`))[0] === 200, { timeoutMs: 60_000 });
    expect(await answerAt(`${agent}/health/live`)).toEqual([200, { status: 'ok', service: 'agent-server' }]);
    for (const url of [router, agent]) expect(await answerAt(`${url}/health/ready`)).toEqual([503, { status: 'booting' }]);

    const text = await readFile(join(root, 'examples/router.yaml'), 'utf8');
    const file = join(folder, 'as-a-file.yaml');
    await writeFile(file, text);
    await rename(file, path);
    await pipe.write(text);
    await pipe.close();
    const standalone = await starting;

    expect([standalone.routerUrl, standalone.agentUrl]).toEqual([router, agent]);
    for (const url of [router, agent]) expect((await answerAt(`${url}/health/ready`))[0]).toBe(200);
    expect(await readinessAt(standalone.managementUrl ?? '')).toBe('200 ready');
    expect(await standalone.stop()).toEqual(CLEAN);
  });
});

/** An empty database that another session migrates until released. */
async function databaseThatMigrates(onTestFinished: OnTestFinished): Promise<{ url: string; end(): Promise<void> }> {
  const fresh = await freshDatabase(inject('postgresUrl'));
  onTestFinished(() => fresh.drop());
  const migrator = await openPostgres({ url: fresh.url, applicationName: 'a long migration', log: silentLog, statementTimeoutMs: 60_000 });
  onTestFinished(() => migrator.close());
  let over = () => {};
  const isOver = new Promise<void>((resolve) => {
    over = resolve;
  });
  let holds = () => {};
  const isHeld = new Promise<void>((resolve) => {
    holds = resolve;
  });
  const migrating = migrator.transaction(async (handle) => {
    // The server ends a transaction that is idle for ten seconds.
    await handle.query("set local idle_in_transaction_session_timeout = '60s'");
    await handle.query('select pg_advisory_xact_lock(5317204011)');
    holds();
    await isOver;
  });
  await isHeld;
  return {
    url: fresh.url,
    end: () => {
      over();
      return migrating;
    },
  };
}

async function answerAt(url: string): Promise<[status: number, body: unknown]> {
  const response = await fetch(url);
  return [response.status, await response.json()];
}

async function readinessAt(managementUrl: string): Promise<string> {
  const response = await fetch(`${managementUrl}/ready`);
  const { status } = (await response.json()) as { status: string };
  return `${response.status} ${status}`;
}

/** A server that accepts connections and never sends anything. @returns its port */
async function listen(onTestFinished: OnTestFinished, onConnection: () => void = () => {}): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    onConnection();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return address.port;
}

async function becomesReady(program: RunningProgram): Promise<void> {
  await eventually(() => program.output().includes('"msg":"ready"') || program.hasExited(), { timeoutMs: 60_000 });
  expect(program.output()).toContain('"msg":"ready"');
}
