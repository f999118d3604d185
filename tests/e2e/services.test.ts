import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import pg from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';
import { startNatsServer } from '../../scripts/servers/test-services.mjs';
import { eventually } from '../helpers/eventually.ts';
import { type RunningProgram, runProgram } from '../helpers/run-program.ts';

/** Connects to the server of a URL, sends a text, and returns the first answer. */
async function ask(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  expect(hostname).toBe('127.0.0.1');
  const socket = connect({ host: hostname, port: Number(port), timeout: 5_000 });
  onTestFinished(() => void socket.destroy());
  socket.write(bytes);
  const [answer] = await once(socket, 'data');
  return String(answer);
}

it('has a NATS server with JetStream', async () => {
  const server = await startNatsServer();
  onTestFinished(() => server.close());
  const [verb = '', ...info] = (await ask(server.url, '')).split(' ');

  expect(verb).toBe('INFO');
  expect(JSON.parse(info.join(' '))).toMatchObject({ jetstream: true, version: expect.stringMatching(/^\d+\.\d+/) });
});

it('has a Redis', async () => {
  expect(await ask(inject('redisUrl'), 'PING\r\n')).toBe('+PONG\r\n');
});

it('has a PostgreSQL of version 15 or later', async () => {
  const client = new pg.Client({ connectionString: inject('postgresUrl') });
  onTestFinished(() => client.end());
  await client.connect();

  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect((await client.query(`select current_setting('server_version_num')::int >= 150000 as is_new`)).rows).toEqual([{ is_new: true }]);
});

it('has a browser', () => {
  const { status, stdout } = spawnSync(inject('chromiumPath'), ['--version'], { encoding: 'utf8' });

  expect(stdout).toMatch(/(?:Chromium|Chrome) \d+/);
  expect(status).toBe(0);
});

it('reports a PG_BIN that leads nowhere', async () => {
  const services = runProgram([process.execPath, 'scripts/servers/test-services.mjs'], { env: { PG_BIN: '/nowhere' } });

  expect(await services.exited).toEqual({ code: 1, signal: null });
  expect(services.output()).toBe('PG_BIN is /nowhere, which does not contain initdb, postgres, psql.\n');
});

it('ends its servers at the end of the run, and those of a killed run at the next', async () => {
  const killed = await startServices();
  killed.program.signal('SIGKILL');
  await killed.program.exited;
  for (const url of killed.urls) expect(await answers(url), url).toBe(true);

  const next = await startServices();
  for (const url of killed.urls) await eventually(async () => !(await answers(url)));
  for (const url of next.urls) expect(await answers(url), url).toBe(true);

  next.program.signal('SIGTERM');
  expect(await next.program.exited).toEqual({ code: 143, signal: null });
  for (const url of next.urls) await eventually(async () => !(await answers(url)));
});

/** A further set of servers, as `node scripts/servers/test-services.mjs` starts it. */
async function startServices(): Promise<{ program: RunningProgram; urls: string[] }> {
  const program = runProgram([process.execPath, 'scripts/servers/test-services.mjs']);
  await eventually(() => program.output().includes('Ctrl-C ends them.') || program.hasExited(), { timeoutMs: 60_000 });
  const urls = program.output().match(/^\w+:\/\/\S+$/gm) ?? [];
  expect(urls, program.output()).toHaveLength(3);
  return { program, urls };
}

/** Whether a process listens there. */
function answers(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    const finish = (isThere: boolean) => {
      socket.destroy();
      resolve(isThere);
    };
    socket.once('connect', () => finish(true));
    socket.once('error', () => finish(false));
  });
}
