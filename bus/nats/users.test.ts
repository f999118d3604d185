import { describe, expect, it } from 'vitest';
import { startNatsServer } from '../../scripts/servers/test-services.mjs';
import type { WorkItem, WorkKind } from '../bus.ts';
import { Collector, eventually, gate, START } from '../conformance/under-test.ts';
import { addresses, type BusRole, type BusUser, patternOf, subjectOf } from '../subjects.ts';
import { workQueues } from '../work-queues.ts';
import { busUsers, permissionsOf } from './permissions.ts';
import { DROPPED, filled, passwordOf, useServerWithUsers } from './test-support/server-with-users.ts';
import { upgradeStreams } from './upgrade-streams.ts';

const PARTITION = 7;
/** Larger than one message. */
const LARGE = 'x'.repeat(600 * 1024);
const LEASE_MS = 5_000;

describe('the driver works for', () => {
  const server = useServerWithUsers(startNatsServer);
  const { complaints, mayPublish, open } = server;

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
  const { complaints, open } = useServerWithUsers(startNatsServer, addresses.dispatchedTurns.pattern);

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
  const { complaints, open } = useServerWithUsers(startNatsServer, 'USAGE');

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
