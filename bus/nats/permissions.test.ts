import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Log, silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../scripts/servers/test-services.mjs';
import type { Bus, WorkItem, WorkKind } from '../bus.ts';
import { Collector, eventually, gate, START } from '../conformance/under-test.ts';
import { addresses, type BusRole, type BusUser, patternOf, rolesOf, subjectOf } from '../subjects.ts';
import { workQueues } from '../work-queues.ts';
import { inboxPrefixOf } from './connection/dial.ts';
import { openNatsBus } from './nats-bus.ts';
import { busUsers, permissionsOf } from './permissions.ts';
import { natsServerConfig, passwordVariableOf } from './server-config.ts';
import type { NatsSettings } from './settings.ts';
import { streams } from './streams.ts';
import { upgradeStreams } from './upgrade-streams.ts';

const PARTITION = 7;
/** Larger than one message. */
const LARGE = 'x'.repeat(600 * 1024);
const LEASE_MS = 5_000;
const DROPPED = 'dropped by the test';
/** The filter subject differs from that in the request's subject. */
const FILTER_MISMATCH = 10131;
/** The stream exists with another configuration. */
const NAME_IN_USE = 10058;

const passwordOf = (user: BusUser) => `password-of-${user}`;

let server: NatsServer;
const opened: { close(): Promise<void> }[] = [];
const complaints: string[] = [];

function complain(fields: Record<string, unknown>, message: string): void {
  // Dropping an item is logged as an error, and expected here.
  if (fields.reason !== DROPPED) complaints.push(`${message}: ${fields.err instanceof Error ? fields.err.message : ''}`);
}

/** One server per group, so that groups share no messages. */
async function startServer(without: string | null = null): Promise<void> {
  // The server would read them from its environment.
  const config = busUsers.reduce((text, user) => text.replaceAll(`$${passwordVariableOf(user)}`, JSON.stringify(passwordOf(user))), natsServerConfig());
  const lines = config.split('\n').filter((line) => without === null || !line.includes(without));
  server = await startNatsServer({ config: lines.join('\n') });
}
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()));
  // Some refusals of the broker are in the driver's log only.
  expect(complaints.splice(0)).toEqual([]);
});

async function open(user: BusUser, settings: Partial<NatsSettings> = {}, { isLocal = false } = {}): Promise<Bus> {
  const log: Log = { ...silentLog, warn: complain, error: complain };
  const bus = await openNatsBus({ servers: server.url, user, password: passwordOf(user), isLocal, log, settings });
  opened.push(bus);
  return bus;
}

/** A connection without the driver, as of an attacker in that process. */
async function enter(user: BusUser): Promise<NatsConnection> {
  const connection = await connect({ servers: server.url, user, pass: passwordOf(user), inboxPrefix: inboxPrefixOf(user) });
  opened.push(connection);
  return connection;
}

/** Refusals from now on. */
function refusalsOf(connection: NatsConnection): string[] {
  const refused: string[] = [];
  void (async () => {
    for await (const status of connection.status()) {
      if (status.type === 'error') refused.push(status.error.message);
    }
  })();
  return refused;
}

async function configOf(connection: NatsConnection, stream: string): Promise<Record<string, unknown>> {
  const answer = (await connection.request(`$JS.API.STREAM.INFO.${stream}`)).json();
  return z.object({ config: z.record(z.string(), z.unknown()) }).parse(answer).config;
}

/** Whether the broker accepts the publish; it reaches no subscriber. */
async function mayPublish(user: BusUser, subject: string): Promise<boolean> {
  const connection = await enter(user);
  const refused = refusalsOf(connection);
  connection.publish(subject, '{}');
  await connection.flush();
  // In order: a refusal comes before the PONG of the second flush.
  await connection.flush();
  return refused.length === 0;
}

async function maySubscribe(user: BusUser, pattern: string): Promise<boolean> {
  const connection = await enter(user);
  let refused = false;
  connection.subscribe(pattern, {
    callback: (error) => {
      refused ||= error !== null;
    },
  });
  await connection.flush();
  await connection.flush();
  return !refused;
}

/** A wildcard stands for any token. */
const filled = (pattern: string) => pattern.replaceAll('*', 'x1').replaceAll('>', 'x1');

describe('the broker’s permissions: ', () => {
  beforeAll(() => startServer());
  afterAll(() => server.close());

  it('DESIGN 11: no connection is opened without a password, or with that of another service', async () => {
    await expect(openNatsBus({ servers: server.url, user: null, password: null, log: silentLog })).rejects.toMatchObject({ code: 'service.unreachable' });
    const mistaken = openNatsBus({ servers: server.url, user: 'actor-host', password: passwordOf('router-worker'), log: silentLog });
    await expect(mistaken).rejects.toMatchObject({ code: 'service.unreachable' });
  });

  it.each(busUsers)('%s may not delete or seal a stream, list streams, or subscribe to the broker’s own subjects', async (user) => {
    for (const stream of ['CMD', 'WORK', 'TOK', 'BLOB', 'USAGE']) {
      expect(await mayPublish(user, `$JS.API.STREAM.DELETE.${stream}`), stream).toBe(false);
      expect(await mayPublish(user, `$JS.API.STREAM.MSG.DELETE.${stream}`), stream).toBe(false);
      expect(await mayPublish(user, `$JS.API.STREAM.SNAPSHOT.${stream}`), stream).toBe(false);
      const readsAll = (stream === 'CMD' && rolesOf(user).includes('actor-host')) || (stream === 'USAGE' && rolesOf(user).includes('router-worker'));
      expect(await mayPublish(user, `$JS.API.STREAM.PURGE.${stream}`), stream).toBe(readsAll);
      expect(await mayPublish(user, `$JS.API.STREAM.MSG.GET.${stream}`), stream).toBe(readsAll);
    }
    for (const subject of ['$JS.API.STREAM.LIST', '$JS.API.STREAM.NAMES', '$JS.API.STREAM.CREATE.OTHER']) expect(await mayPublish(user, subject)).toBe(false);
    for (const pattern of ['>', '$SYS.>', '$JS.>', '_INBOX.>', 'cmd.*', 'work.>', 'blob.>', 'usage.>'])
      expect(await maySubscribe(user, pattern), pattern).toBe(false);
  });

  it.each(busUsers)('%s can not read what is meant for another user, or reply in its place', async (user) => {
    for (const other of busUsers.filter((one) => one !== user)) {
      expect(await maySubscribe(user, `${inboxPrefixOf(other)}.>`), other).toBe(false);
      expect(await mayPublish(user, `${inboxPrefixOf(other)}.x1`), other).toBe(false);
    }
  });

  it.each(busUsers)('DESIGN 11: %s publishes and reads what the table allows, and nothing else', async (user) => {
    for (const address of [...Object.values(addresses), ...Object.values(workQueues)]) {
      const { publish, read }: { publish: readonly BusRole[]; read: readonly BusRole[] } = address;
      const isOneOf = (roles: readonly BusRole[]) => rolesOf(user).some((role) => roles.includes(role));
      expect(await mayPublish(user, filled(address.pattern)), `publish ${address.pattern}`).toBe(isOneOf(publish));
      // Stored subjects have consumers and no subscribers.
      const isStored = /^(?:cmd|work|usage)\./.test(address.pattern);
      expect(await maySubscribe(user, address.pattern), `read ${address.pattern}`).toBe(!isStored && isOneOf(read));
    }
  });

  it.each<[BusUser, string, string]>([
    ['router-gateway', 'commands', '$JS.API.CONSUMER.CREATE.CMD.spy.cmd.*'],
    ['agent-gateway', 'commands', '$JS.API.CONSUMER.CREATE.CMD.spy.cmd.*'],
    ['router-worker', 'commands', '$JS.API.STREAM.MSG.GET.CMD'],
    ['effect-worker', 'model calls', '$JS.API.CONSUMER.MSG.NEXT.WORK.router-call'],
    ['router-worker', 'tool calls', '$JS.API.CONSUMER.CREATE.WORK.tool.work.tool'],
    ['router-worker', 'any work by a consumer of its own', '$JS.API.CONSUMER.CREATE.WORK.spy.work.>'],
    ['actor-host', 'tool calls', '$JS.API.CONSUMER.MSG.NEXT.WORK.tool'],
    ['router-gateway', 'the number of turns that wait', '$JS.API.CONSUMER.INFO.WORK.router-turn'],
    ['agent-gateway', 'the number of tool calls that wait', '$JS.API.CONSUMER.INFO.WORK.tool'],
    ['agent-gateway', 'large bodies', '$JS.API.DIRECT.GET.BLOB.blob.x1.0'],
    ['effect-worker', 'acks of model calls', '$JS.ACK.WORK.router-turn.1.1.1.1.0'],
    ['router-gateway', 'usage', '$JS.API.CONSUMER.MSG.NEXT.USAGE.usage'],
    ['effect-worker', 'usage', '$JS.API.STREAM.INFO.USAGE'],
    ['router-worker', 'usage by a consumer of its own', '$JS.API.CONSUMER.CREATE.USAGE.spy.usage.record'],
    ['operator', 'commands', '$JS.API.CONSUMER.MSG.NEXT.CMD.spy'],
  ])('%s gets at %s by the broker’s own interface', async (user, _, subject) => {
    expect(await mayPublish(user, subject)).toBe(false);
  });

  it.each(Object.values(streams))('DESIGN 11: only the operator changes the stream $name', async ({ name }) => {
    for (const user of busUsers) expect(await mayPublish(user, `$JS.API.STREAM.UPDATE.${name}`), user).toBe(user === 'operator');
  });

  it('no user changes a stream by creating it with other settings', async () => {
    await open('router-gateway');
    const intruder = await enter('router-gateway');
    const before = await configOf(intruder, 'WORK');
    const other = { name: 'WORK', subjects: ['work.>'], retention: 'workqueue', storage: 'file', max_msgs: 1, discard: 'old' };

    expect((await intruder.request('$JS.API.STREAM.CREATE.WORK', JSON.stringify(other))).json()).toMatchObject({ error: { err_code: NAME_IN_USE } });
    expect(await configOf(intruder, 'WORK')).toEqual(before);
  });

  it('no user copies commands into the tokens by an update, or by creating that stream again', async () => {
    await open('router-worker');
    const intruder = await enter('router-worker');
    const refused = refusalsOf(intruder);
    const copying = { ...(await configOf(intruder, 'TOK')), sources: [{ name: 'CMD' }] };
    const created = await intruder.request('$JS.API.STREAM.CREATE.TOK', JSON.stringify(copying));
    intruder.publish('$JS.API.STREAM.UPDATE.TOK', JSON.stringify(copying));
    for (const _ of ['sent', 'answered']) await intruder.flush();

    expect(created.json()).toMatchObject({ error: { err_code: NAME_IN_USE } });
    expect(refused.join()).toContain('STREAM.UPDATE.TOK');
    expect(await configOf(intruder, 'TOK')).not.toHaveProperty('sources');
  });

  it('no user widens a consumer that it may have: the filter in the subject is the one that counts', async () => {
    const worker = await enter('router-worker');
    await open('router-worker');
    const request = {
      stream_name: 'WORK',
      config: { name: 'router-turn', durable_name: 'router-turn', filter_subject: 'work.>', ack_policy: 'explicit', deliver_policy: 'all' },
    };
    const answer = await worker.request('$JS.API.CONSUMER.CREATE.WORK.router-turn.work.router.turn', JSON.stringify(request));

    expect(answer.json()).toMatchObject({ error: { err_code: FILTER_MISMATCH } });
  });
});

describe('the driver works for', () => {
  beforeAll(() => startServer());
  afterAll(() => server.close());

  it.each(busUsers)('%s, which declares what it uses', async (user) => {
    const bus = await open(user);

    expect(bus.isReady()).toBe(true);
    expect(bus.hasCapacity()).toBe(true);
  });

  it('the operator, which upgrades every stream', async () => {
    const account = { servers: server.url, user: 'operator', password: passwordOf('operator') } as const;
    await upgradeStreams(account);

    expect((await upgradeStreams(account, { tokenMaxAgeMs: 60_000 })).map(({ name, outcome }) => `${name} ${outcome}`)).toEqual([
      'CMD unchanged',
      'WORK unchanged',
      'TOK changed',
      'BLOB unchanged',
      'USAGE unchanged',
    ]);
    await upgradeStreams(account);
  });

  it.each<[BusUser, WorkKind]>([
    ['router-gateway', 'router.call'],
    ['agent-gateway', 'router.turn'],
  ])('%s, which asks how long what it lets in would wait: %s', async (user, kind) => {
    expect(await mayPublish(user, `$JS.API.CONSUMER.INFO.WORK.${workQueues[kind].consumer}`)).toBe(true);
  });

  it.each<BusUser>(['agent-gateway', 'actor-host', 'router-worker', 'effect-worker', 'operator'])(
    'commands of %s, large ones too, to the actor host',
    async (user) => {
      const [sender, host] = [await open(user), await open('actor-host')];
      const delivered = new Collector<{ messageId: string; body: string }>();
      const { sequence: before } = await host.commands.append(PARTITION, `before-${user}`, 'before');
      const reading = host.commands.read(PARTITION, { sequence: before, fingerprint: `before-${user}` }, async (commands) => commands.forEach(delivered.add));
      const { sequence } = await sender.commands.append(PARTITION, `small-${user}`, 'small');
      await sender.commands.append(PARTITION, `large-${user}`, LARGE);

      expect((await delivered.atLeast(2)).map(({ messageId, body }) => [messageId, body.length])).toEqual([
        [`small-${user}`, 5],
        [`large-${user}`, LARGE.length],
      ]);
      await reading.stop();
      expect(await host.commands.at(sequence)).toMatchObject({ messageId: `small-${user}` });
      expect(await host.commands.lastOf(PARTITION)).toBe(sequence + 1);
    },
  );

  it('the actor host, which purges what is read and begins at the start of a log', async () => {
    const host = await open('actor-host');
    const { sequence } = await host.commands.append(PARTITION, 'last', 'last');
    await host.commands.purge(sequence);
    const delivered = new Collector<{ messageId: string }>();
    const reading = host.commands.read(PARTITION, START, async (commands) => commands.forEach(delivered.add));

    expect((await host.commands.state()).firstSequence).toBe(sequence);
    expect((await delivered.atLeast(1))[0]).toMatchObject({ messageId: 'last' });
    await reading.stop();
  });

  it('a process with both roles of the router, which hands a dispatch, a frame and a notice to itself', async () => {
    const bus = await open('router', {}, { isLocal: true });
    const delivered = new Collector<string>();
    bus.work.consume('router.call', { concurrency: 8, ackWaitMs: LEASE_MS }, async (item) => delivered.add(item.body));
    bus.tokens.subscribe(patternOf(addresses.tokens, 'origin'), (_, frame) => delivered.add(Buffer.from(frame).toString()));
    bus.notices.subscribe(addresses.control.pattern, (_, body) => delivered.add(body));
    bus.work.dispatch('router.call', 'call-1', Buffer.from('item'));
    bus.tokens.publish(subjectOf(addresses.tokens, 'origin', 'call-1'), Buffer.from('frame'));
    bus.notices.publish(subjectOf(addresses.control, 'call-1'), 'notice');

    expect([...(await delivered.atLeast(3))].sort()).toEqual(['frame', 'item', 'notice']);
    await bus.usage.append('gen-both', '{}');
  });

  it('a process with both roles of the agent server, which hands a reply, a new event and a frame to itself, and stores commands', async () => {
    const bus = await open('agent', {}, { isLocal: true });
    const delivered = new Collector<string>();
    bus.notices.subscribe(subjectOf(addresses.replies, 'gateway-1'), (_, body) => delivered.add(body));
    bus.notices.subscribe(addresses.notices.pattern, (_, body) => delivered.add(body));
    bus.notices.publish(subjectOf(addresses.replies, 'gateway-1'), 'reply');
    bus.notices.publish(subjectOf(addresses.notices, 'ses-1'), 'event');
    await bus.commands.append(11, 'msg-agent', 'command');
    const reading = bus.commands.read(11, START, async (commands) => {
      for (const { body } of commands) delivered.add(body);
    });

    expect([...(await delivered.atLeast(3))].sort()).toEqual(['command', 'event', 'reply']);
    await reading.stop();
  });

  it.each<[WorkKind, BusUser, BusUser]>([
    ['router.turn', 'agent', 'router'],
    ['tool', 'agent', 'effect-worker'],
    ['router.call', 'router', 'router-worker'],
    ['router.call', 'router-gateway', 'router'],
    ['router.turn', 'actor-host', 'router-worker'],
    ['router.call', 'router-gateway', 'router-worker'],
    ['tool', 'actor-host', 'effect-worker'],
    ['delivery', 'actor-host', 'effect-worker'],
    ['delivery', 'operator', 'effect-worker'],
  ])('work of the kind %s from %s to %s: extended, nakked, acked, dropped', async (kind, from, to) => {
    const [sender, worker] = [await open(from), await open(to)];
    const delivered = new Collector<string>();
    const consuming = worker.work.consume(kind, { concurrency: 8, ackWaitMs: LEASE_MS }, async (item: WorkItem) => {
      await item.working();
      if (item.body === 'drop') await item.term(DROPPED);
      else if (item.deliveryCount === 1) await item.nak(0);
      else await item.ack();
      delivered.add(`${item.body.slice(0, 5)} ${item.deliveryCount}`);
    });
    await sender.work.publish(kind, `${kind}-${from}-${to}-small`, 'small');
    await sender.work.publish(kind, `${kind}-${from}-${to}-large`, LARGE);
    await sender.work.publish(kind, `${kind}-${from}-${to}-drop`, 'drop');

    expect([...(await delivered.atLeast(5))].sort()).toEqual(['drop 1', 'small 1', 'small 2', 'xxxxx 1', 'xxxxx 2']);
    await consuming.stop();
  });

  it.each<[BusUser, BusUser]>([
    ['actor-host', 'router-worker'],
    ['agent', 'router'],
  ])('dispatches of model calls of actors from %s to %s, which stores what finds no free slot, and reports it', async (from, to) => {
    const [sender, worker] = [await open(from), await open(to)];
    const [begun, stored, refused] = [new Collector<string>(), new Collector<string>(), new Collector<string>()];
    sender.work.onStored(stored.add);
    sender.work.onRefused(refused.add);
    sender.work.dispatch('router.turn', `${from}-0`, Buffer.from('body'));
    // Of a worker of a release before, too, which does not subscribe.
    expect(await refused.atLeast(1)).toEqual([`${from}-0`]);
    const blocked = gate();
    const consuming = worker.work.consume('router.turn', { concurrency: 8, ackWaitMs: LEASE_MS }, async (item) => {
      begun.add(item.messageId);
      await blocked.opened;
      await item.ack();
    });
    let calls = 0;
    await eventually(
      async () => {
        calls += 1;
        sender.work.dispatch('router.turn', `${from}-${calls}`, Buffer.from('body'));
        return stored.items.length;
      },
      (count) => count > 0,
    );
    expect(begun.items).not.toContain(stored.items[0]);
    blocked.open();
    await eventually(
      async () => begun.items,
      (ids) => ids.includes(stored.items[0] ?? ''),
    );
    await consuming.stop();
  });

  it('usage from one router worker to another', async () => {
    const [sender, ledger] = [await open('router-worker'), await open('router-worker')];
    const delivered = new Collector<string>();
    let rejected = false;
    const consuming = ledger.usage.consume(
      async (records) => {
        if (!rejected) {
          rejected = true;
          throw new Error(DROPPED);
        }
        for (const { messageId } of records) delivered.add(messageId);
      },
      { maxBatch: 10 },
    );
    await sender.usage.append('gen-1', '{}');
    await delivered.atLeast(1);
    await eventually(
      () => sender.usage.backlog(),
      ({ records }) => records === 0,
    );
    await consuming.stop();
    // The handler rejected once, which is a warning.
    expect(complaints.splice(0)).toEqual([`a batch of usage records was rejected: it is delivered again: ${DROPPED}`]);
  });

  it.each<BusUser>(['router-gateway', 'agent-gateway'])('tokens of the router worker to %s, live and read back', async (user) => {
    const [worker, reader] = [await open('router-worker'), await open(user)];
    const delivered = new Collector<string>();
    const listening = reader.tokens.subscribe(patternOf(addresses.tokens, 'origin'), (_, frame) => delivered.add(Buffer.from(frame).toString()));
    const subject = subjectOf(addresses.tokens, 'origin', `call-${user}`);
    // Until the broker has the subscription, publishes are lost.
    await eventually(
      async () => {
        worker.tokens.publish(subject, Buffer.from('frame'));
        worker.tokens.publish(subject, Buffer.from('text'));
        return new Set(delivered.items).size;
      },
      (count) => count > 1,
    );

    expect(new Set(delivered.items)).toEqual(new Set(['frame', 'text']));
    const retained = await eventually(
      () => reader.tokens.replay(subject),
      (frames) => frames.length > 0,
    );
    expect(Buffer.from(retained[0] ?? []).toString()).toBe('frame');
    await listening.stop();
  });

  it('DESIGN 7: a worker replays what another has published of a call that it takes over, and receives no live frames', async () => {
    const [one, other] = [await open('router-worker'), await open('router-worker')];
    const subject = subjectOf(addresses.tokens, 'origin', 'call-taken-over');
    one.tokens.publish(subject, Buffer.from('frame'));
    const retained = await eventually(
      () => other.tokens.replay(subject),
      (frames) => frames.length > 0,
    );

    expect(Buffer.from(retained[0] ?? []).toString()).toBe('frame');
    for (const { pattern } of [addresses.tokens, addresses.liveTokens]) expect(permissionsOf('router-worker').subscribe).not.toContain(pattern);
  });

  it.each(
    (['notices', 'partitions', 'hosts', 'replies', 'control', 'keys'] as const).flatMap((name) => {
      const { pattern, publish, read }: { pattern: string; publish: readonly BusRole[]; read: readonly BusRole[] } = addresses[name];
      return publish.flatMap((from) => read.map((to) => [pattern, from, to] as const));
    }),
  )('%s from %s to %s', async (pattern, from, to) => {
    const [sender, reader] = [await open(from), await open(to)];
    const delivered = new Collector<string>();
    const listening = reader.notices.subscribe(pattern, (subject) => delivered.add(subject));
    await eventually(
      async () => {
        sender.notices.publish(filled(pattern), '{}');
        return delivered.items.length;
      },
      (count) => count > 0,
    );

    expect(delivered.items[0]).toBe(filled(pattern));
    await listening.stop();
  });
});

describe('a broker with permissions of before the dispatches of actors’ calls', () => {
  beforeAll(() => startServer(addresses.dispatchedTurns.pattern));
  afterAll(() => server.close());

  it('DESIGN 6: lets a newer host queue them at once', async () => {
    const host = await open('actor-host');
    const refused = new Collector<string>();
    host.work.onRefused(refused.add);
    for (const id of ['trn_1-1', 'trn_2-1']) host.work.dispatch('router.turn', id, Buffer.from('body'));
    expect([...(await refused.atLeast(2))].sort()).toEqual(['trn_1-1', 'trn_2-1']);
    host.work.dispatch('router.turn', 'trn_3-1', Buffer.from('body'));
    expect(await refused.atLeast(3)).toContain('trn_3-1');

    // Its refusals are logged, one for each dispatch that was sent.
    const logged = complaints.splice(0);
    expect(logged.length).toBeLessThanOrEqual(2);
    expect(logged.join()).toContain(addresses.dispatchedTurns.pattern);
  });
});

describe('a broker with permissions of before the usage log', () => {
  beforeAll(() => startServer('USAGE'));
  afterAll(() => server.close());

  it('still says to a newer gateway how full the work queue is', async () => {
    const bus = await open('router-gateway', { workMaxBytes: 1024 * 1024 });
    expect(bus.hasCapacity()).toBe(true);
    for (let index = 0; index < 9; index += 1) await bus.work.publish('router.call', `w${index}`, 'x'.repeat(100 * 1024));
    await eventually(
      async () => bus.hasCapacity(),
      (hasCapacity) => !hasCapacity,
    );

    // Its refusals are logged.
    expect(complaints.splice(0).join()).toContain('STREAM.INFO.USAGE');
  });
});
