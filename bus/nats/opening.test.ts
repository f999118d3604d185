import { type JetStreamManager, jetstreamManager, type StreamConfig } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterEach, expect, it } from 'vitest';
import { z } from 'zod';
import { type Log, silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../scripts/servers/test-services.mjs';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import type { Bus } from '../bus.ts';
import { Collector, eventually, START } from '../conformance/under-test.ts';
import type { BusUser } from '../subjects.ts';
import { openNatsBus } from './nats-bus.ts';
import { defaultSettings } from './settings.ts';
import { upgradeStreams } from './upgrade-streams.ts';

const opened: { close(): Promise<void> }[] = [];
const servers: NatsServer[] = [];
afterEach(async () => {
  for (const bus of opened.splice(0)) await bus.close();
  for (const server of servers.splice(0)) await server.close();
});

async function serverWith(config?: string): Promise<NatsServer> {
  const server = await startNatsServer(config === undefined ? {} : { config });
  servers.push(server);
  return server;
}

/** Of a start that fails: a test waits for its end. */
const BUDGET_MS = 1_500;
/** Of all others, on a busy machine. */
const GENEROUS_MS = 60_000;
/** Longer than a test: retries up to the budget fail it. */
const ENDLESS_MS = 600_000;

async function open(
  url: string,
  user: BusUser | null = null,
  password: string | null = null,
  log: Log = silentLog,
  connectBudgetMs = GENEROUS_MS,
): Promise<Bus> {
  const bus = await openNatsBus({ servers: url, user, password, log, settings: { connectBudgetMs } });
  opened.push(bus);
  return bus;
}

const TWO_USERS = `authorization { users: [
  { user: router-worker, password: right }
  { user: operator, password: right, permissions: { publish: { deny: ["evt.>", "work.tool"] }, subscribe: { deny: ["ctl.>"] } } }
] }`;

it('names the address when it is unreachable, within its budget', async () => {
  const server = await serverWith();
  await server.stop();

  await expect(open(server.url, null, null, silentLog, BUDGET_MS)).rejects.toMatchObject({
    code: 'service.unreachable',
    message: expect.stringMatching(new RegExp(`${server.url}.* within ${BUDGET_MS / 1_000} s`)),
  });
});

it('connects to no server without TLS, when its address begins with tls://', async () => {
  const server = await serverWith();

  await expect(open(server.url.replace('nats://', 'tls://'), null, null, silentLog, BUDGET_MS)).rejects.toMatchObject({
    code: 'service.unreachable',
    cause: expect.objectContaining({ message: expect.stringContaining("does not support 'tls'") }),
  });
  expect((await open(server.url)).isReady()).toBe(true);
});

it('waits for a broker that starts late', async () => {
  const server = await serverWith();
  await server.stop();
  const opening = open(server.url);
  await server.start();

  expect((await opening).isReady()).toBe(true);
});

it('names the user, and never the password, when the broker refuses them, and does so at once', async () => {
  const server = await serverWith(TWO_USERS);
  const error: unknown = await open(server.url, 'router-worker', 'a wrong secret', silentLog, ENDLESS_MS).catch((reason) => reason);

  const words = /refused the user 'router-worker' \(Authorization Violation\): NATS_PASSWORD is not the password/;
  expect(error).toMatchObject({ code: 'service.unreachable', message: expect.stringMatching(words) });
  expect(String(error)).not.toContain('a wrong secret');
});

it('names the setting when the broker requires a password, and none is given', async () => {
  const server = await serverWith(TWO_USERS);

  await expect(open(server.url, null, null, silentLog, ENDLESS_MS)).rejects.toMatchObject({
    code: 'service.unreachable',
    message: expect.stringMatching(/refused a connection without a user \(Authorization Violation\): set NATS_PASSWORD/),
  });
});

it('logs once that the broker refuses it, when a restarted one has another password, and goes on when that is mended', async () => {
  const [port, monitor] = [await freePort(), await freePort()];
  const settings = `http: "127.0.0.1:${monitor}"\n${TWO_USERS}`;
  const withPassword = (password: string) => startNatsServer({ port, config: settings.replace('password: right', `password: ${password}`) });
  const before = await withPassword('right');
  const refusals: string[] = [];
  const note = (fields: Record<string, unknown>, text: string) => {
    if (text === 'NATS refuses this process') refusals.push(String(fields['err']));
  };
  const bus = await open(before.url, 'router-worker', 'right', { ...silentLog, error: note });
  await before.close();
  const changed = await withPassword('changed');
  const attempts = async () =>
    z.object({ total_connections: z.number() }).parse(await (await fetch(`http://127.0.0.1:${monitor}/varz`)).json()).total_connections;
  await eventually(attempts, (count) => count >= 8);
  await changed.close();
  servers.push(await withPassword('right'));
  await eventually(
    async () => bus.isReady(),
    (isReady) => isReady,
  );

  // One for each of its two connections.
  expect(refusals).toHaveLength(2);
  for (const refusal of refusals) expect(refusal).toMatch(/refused the user 'router-worker' \(Authorization Violation\): NATS_PASSWORD/);
});

it('reports a broker without JetStream for its account', async () => {
  const server = await serverWith('accounts { deployment { users: [{ user: operator, password: right }] } }');

  // Retried to the end of the budget, which has to have room for the connection on a busy machine.
  await expect(open(server.url, 'operator', 'right', silentLog, 3 * BUDGET_MS)).rejects.toMatchObject({
    code: 'service.unreachable',
    message: expect.stringContaining('streams'),
  });
});

it('refuses an address with credentials, without printing them', async () => {
  const error: unknown = await open('nats://someuser:secret@127.0.0.1:4222').catch((reason) => reason);

  expect(error).toMatchObject({ code: 'config.invalid' });
  expect(String(error)).not.toContain('secret');
});

it('DESIGN 3: a process declares the streams that its user uses, and no others', async () => {
  const server = await serverWith();
  const gateway = await openNatsBus({ servers: server.url, user: 'router-gateway', password: '', log: silentLog });
  opened.push(gateway);

  await gateway.work.publish('router.call', 'w1', 'a');
  expect(await gateway.tokens.replay('tok.a.b')).toEqual([]);
  const host = await open(server.url, 'actor-host', '');
  expect((await host.commands.state()).lastSequence).toBe(0);
});

it('DESIGN 11: a process uses a stream with other settings unchanged, and logs the command that changes it; the operator runs it and loses nothing', async () => {
  const server = await serverWith();
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (fields, message) => warnings.push(`${message} ${JSON.stringify(fields)}`) };
  const account = { servers: server.url, user: null, password: null };
  const openWith = async (commandMaxBytes: number) => {
    const bus = await openNatsBus({ ...account, log, settings: { commandMaxBytes } });
    opened.push(bus);
    return bus;
  };
  const body = 'x'.repeat(400_000);
  const before = await openWith(1_000_000);
  await before.commands.append(1, 'm1', 'a');
  expect(warnings).toEqual([]);
  const after = await openWith(2_000_000);
  for (const index of [1, 2]) await after.commands.append(1, `large${index}`, body);

  expect(warnings).toEqual([expect.stringMatching(/'npm run operator -- streams'.*"stream":"CMD".*max_bytes/)]);
  await expect(after.commands.append(1, 'large3', body)).rejects.toMatchObject({ code: 'bus.full' });

  const settings = { commandMaxBytes: 2_000_000 };
  const changed = (await upgradeStreams(account, settings)).filter(({ outcome }) => outcome !== 'unchanged');
  expect(changed).toEqual([{ name: 'CMD', outcome: 'changed', differences: [{ field: 'max_bytes', found: 1_000_000, declared: 2_000_000 }] }]);
  expect((await upgradeStreams(account, settings)).map(({ outcome }) => outcome)).toEqual(['CMD', 'WORK', 'TOK', 'BLOB', 'USAGE'].map(() => 'unchanged'));
  await after.commands.append(1, 'large3', body);
  expect(await after.commands.at(1)).toMatchObject({ messageId: 'm1' });
});

/** The broker's API without our checks. */
async function managerOf(server: NatsServer): Promise<JetStreamManager> {
  const connection = await connect({ servers: server.url });
  opened.push(connection);
  return jetstreamManager(connection, { checkAPI: false });
}

const tokenStream = { name: 'TOK', subjects: ['tok.>'], storage: 'memory' } satisfies Partial<StreamConfig>;

it.each<[string, Partial<StreamConfig> & { name: string }]>([
  ['sources', { ...tokenStream, sources: [{ name: 'CMD' }] }],
  ['mirror', { name: 'TOK', storage: 'memory', mirror: { name: 'CMD' } }],
  ['republish', { ...tokenStream, republish: { src: 'tok.>', dest: 'ans.>' } }],
])('DESIGN 11: a process refuses to start on a stream with %s, and names both; the operator refuses to change it', async (field, config) => {
  const server = await serverWith();
  const { streams } = await managerOf(server);
  await streams.add({ name: 'CMD', subjects: ['cmd.*'] });
  await streams.add(config);
  const naming = new RegExp(`TOK .*${field}`);

  await expect(open(server.url, 'router-gateway', '')).rejects.toMatchObject({ code: 'bus.stream_refused', message: expect.stringMatching(naming) });
  const upgrades = await upgradeStreams({ servers: server.url, user: null, password: null });
  expect(upgrades.find(({ name }) => name === 'TOK')).toMatchObject({ outcome: 'refused', reason: expect.stringMatching(naming) });
  expect((await streams.info('TOK')).config).toHaveProperty(field);
});

it('DESIGN 11: a process stays unready when the broker comes back with a stream that copies messages, and goes on once that is gone', async () => {
  const server = await serverWith();
  const refused = new Collector<string>();
  const log: Log = { ...silentLog, warn: ({ err }) => err instanceof Error && refused.add(err.message) };
  const bus = await open(server.url, 'actor-host', '', log);
  await (await managerOf(server)).streams.update('BLOB', { sources: [{ name: 'CMD' }] });
  await server.stop();
  await server.start();
  await eventually(
    async () => refused.items.some((message) => /BLOB .*sources/.test(message)),
    (isRefused) => isRefused,
  );
  expect(bus.isReady()).toBe(false);

  await (await managerOf(server)).streams.delete('BLOB');
  await eventually(
    async () => bus.isReady(),
    (isReady) => isReady,
  );
  expect(await bus.work.publish('tool', 'w1', 'a')).toEqual({ duplicate: false });
});

it('lets concurrently starting processes declare the same streams', async () => {
  const { commandMaxBytes, workMaxBytes, blobMaxBytes, usageMaxBytes, tokenMaxBytes } = defaultSettings;
  // Exactly what the streams need. The broker reports to most processes that there is no storage, or that a name or subject is in use.
  const onDisk = commandMaxBytes + workMaxBytes + blobMaxBytes + usageMaxBytes;
  const server = await serverWith(`jetstream { max_memory_store: ${tokenMaxBytes}, max_file_store: ${onDisk} }`);
  const opening = Array.from({ length: 10 }, () => openNatsBus({ servers: server.url, user: null, password: null, log: silentLog }));
  const buses = await Promise.all(opening);
  opened.push(...buses);

  await Promise.all(buses.map((bus, index) => bus.commands.append(1, `m${index}`, 'a')));
  expect((await buses[0]?.commands.state())?.lastSequence).toBe(10);
});

it('gives up at once, and reports why, when there is no storage for a stream', async () => {
  const server = await serverWith('jetstream { max_file_store: 1000000 }');

  await expect(open(server.url, null, null, silentLog, ENDLESS_MS)).rejects.toMatchObject({
    code: 'service.unreachable',
    cause: { message: expect.stringContaining('insufficient') },
  });
});

it('logs what the broker does not allow, and goes on', async () => {
  const server = await serverWith(TWO_USERS);
  const complaints = new Collector<string>();
  const log: Log = { ...silentLog, error: ({ err }) => complaints.add(String(err)) };
  const bus = await open(server.url, 'operator', 'right', log);
  bus.notices.publish('evt.s1', 'not for an operator');
  bus.notices.subscribe('ctl.*', () => {});
  await complaints.atLeast(2);

  expect(complaints.items.join()).toMatch(/evt\.s1/);
  expect(await bus.commands.append(1, 'm1', 'a')).toEqual({ sequence: 1, duplicate: false });
});

it('fails a call at once, with the reason, when its user may not do it', async () => {
  const server = await serverWith(TWO_USERS);
  const bus = await open(server.url, 'operator', 'right');

  await expect(bus.work.publish('tool', 'w1', '{}')).rejects.toMatchObject({ name: 'RequestError', cause: { name: 'PermissionViolationError' } });
});

it('connects two processes: commands, large bodies, notices, tokens', async () => {
  const server = await serverWith();
  const [one, other] = [await open(server.url), await open(server.url)];
  const [bodies, notices, frames] = [new Collector<string>(), new Collector<string>(), new Collector<string>()];
  other.commands.read(1, START, async (commands) => {
    for (const { body } of commands) bodies.add(body);
  });
  other.notices.subscribe('evt.*', (subject, body) => notices.add(`${subject} ${body}`));
  other.tokens.subscribe('tok.gw1.*', (_, frame) => frames.add(Buffer.from(frame).toString()));
  const large = '\u{1f600}'.repeat(200 * 1024);
  await one.commands.append(1, 'm1', large);
  // Until the broker has the subscription, publishes are lost.
  await eventually(
    async () => {
      one.notices.publish('evt.s1', 'news');
      one.tokens.publish('tok.gw1.call1', Buffer.from('frame'));
      return notices.items.length > 0 && frames.items.length > 0;
    },
    (both) => both,
  );

  expect((await bodies.atLeast(1))[0] === large).toBe(true);
  expect(notices.items[0]).toBe('evt.s1 news');
  expect(frames.items[0]).toBe('frame');
  expect((await other.tokens.replay('tok.gw1.call1')).length).toBeGreaterThan(0);
});

it('retains what was published last before a process closed, though it may be retained later', async () => {
  const server = await serverWith();
  const [one, other] = [await open(server.url), await open(server.url)];
  for (const text of ['ta', 'tb']) one.tokens.publish('tok.gw1.call1', Buffer.from(text));
  await one.close();
  const retained = await eventually(
    () => other.tokens.replay('tok.gw1.call1'),
    (frames) => frames.length > 1,
  );

  expect(retained.map((frame) => Buffer.from(frame).toString())).toEqual(['ta', 'tb']);
});
