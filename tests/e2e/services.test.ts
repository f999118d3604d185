import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import pg from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';

/** Connects to the server of a URL, says something, and returns its first answer. */
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
  const [verb = '', ...info] = (await ask(inject('natsUrl'), '')).split(' ');

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
