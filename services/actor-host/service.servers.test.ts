import { cpSync, rmSync } from 'node:fs';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { commandCheck } from '#actors/runtime/command-check.ts';
import type { Bus } from '#bus/bus.ts';
import { CommandTags, withTaggedCommands } from '#bus/command-tags.ts';
import { routerCall } from '#bus/messages/router.ts';
import { inboxPrefixOf } from '#bus/nats/dial.ts';
import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { busUsers } from '#bus/nats/permissions.ts';
import { natsServerConfig, passwordVariableOf } from '#bus/nats/server-config.ts';
import { partitionOf } from '#bus/partition.ts';
import type { BusUser } from '#bus/subjects.ts';
import { type FreshDatabase, freshDatabase } from '#shared/storage/conformance/fresh-database.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../scripts/test-services.mjs';
import { callbackCases } from './test-support/callback-cases.ts';
import { commandCases } from './test-support/command-cases.ts';
import { calledTools, completed, create, post } from './test-support/commands.ts';
import { hostCases } from './test-support/host-cases.ts';
import { eventually, type House, openHouse, type Stores } from './test-support/house.ts';
import { patchCases } from './test-support/patch-cases.ts';
import { runCases } from './test-support/run-cases.ts';
import { nextDelivery, VERDICT } from './test-support/run-helpers.ts';
import { openServerStores } from './test-support/server-stores.ts';
import { orphanSession, storeOldRuns, sweepCases, sweepOf } from './test-support/sweep-cases.ts';
import { trustCases } from './test-support/trust-cases.ts';

/** The same cases as on the embedded drivers, each host on connections of its own. */
let fresh: FreshDatabase;
let own: Database;
const houses: House[] = [];

beforeAll(async () => {
  fresh = await freshDatabase(inject('postgresUrl'));
  own = await openPostgres({ url: fresh.url, applicationName: 'actor-host test', log: silentLog });
  await migrate(own);
});
afterEach(async () => {
  await Promise.all(houses.splice(0).map((house) => house.close()));
});
afterAll(async () => {
  await own?.close();
  await fresh?.drop();
});

/** Each host has connections of its own. */
const drivers = () => ({
  own,
  startBroker: () => startNatsServer(),
  openDatabase: () => openPostgres({ url: fresh.url, applicationName: 'actor-host', maxConnections: 3, log: silentLog }),
  openBus: (url: string) => openNatsBus({ servers: url, user: null, password: null, log: silentLog }),
});
const openStores = () => openServerStores(drivers());

const open = async () => {
  const house = await openHouse(await openStores());
  houses.push(house);
  return house;
};

commandCases(open);
hostCases(open);
patchCases(open);
runCases(open);
callbackCases(open);
sweepCases(open);
trustCases(open);

describe('an owner whose broker goes away', () => {
  it('DESIGN 4: a log that is rolled back under a live owner and grows anew is noticed: no accepted command is skipped', async () => {
    const stores = await openStores();
    const house = await openHouse(stores);
    houses.push(house);
    await house.host();
    const server = stores.server();
    const copy = `${server.folder}-copy`;
    await house.send(create('ses_a'));
    await eventually(() => house.answers.length === 1);
    await server.stop();
    cpSync(server.folder, copy, { recursive: true });
    await server.start();
    await eventually(() => house.bus.isReady());
    for (let n = 0; n < 10; n += 1) await house.send({ ...post('ses_a', `forgotten ${n}`), triggersTurn: false });
    await eventually(async () => (await house.log('ses_a')).length === 10);
    await server.stop();
    rmSync(server.folder, { recursive: true });
    cpSync(copy, server.folder, { recursive: true });
    await server.start();
    await eventually(() => house.bus.isReady());
    // Under sequences that the owner has long passed.
    for (let n = 0; n < 3; n += 1) await house.send({ ...post('ses_a', `anew ${n}`), triggersTurn: false });
    await eventually(async () => (await house.log('ses_a')).length === 13, 20_000);
    rmSync(copy, { recursive: true });

    const log = await house.log('ses_a');
    expect(log.map((event) => event.offset)).toEqual(log.map((_, place) => place));
    expect(log.slice(10).map((event) => 'text' in event && event.text)).toEqual(['anew 0', 'anew 1', 'anew 2']);
  });

  it('goes on by itself when the broker is killed and comes back, with turns in progress', async () => {
    const stores = await openStores();
    const house = await openHouse(stores);
    houses.push(house);
    await house.host();
    house.answerAllCalls();
    const ids = Array.from({ length: 20 }, (_, place) => `ses_${place}`);
    await Promise.all(ids.map((id) => house.send(create(id))));
    const sending = Promise.all(ids.map((id) => house.send(post(id, 'before and after'))));
    await stores.server().kill();
    await stores.server().start();
    await sending;
    await Promise.all(ids.map((id) => house.send(post(id, 'after'))));
    const isOver = async (id: string) => {
      const log = await house.log(id);
      const last = log.at(-1);
      return log.filter(({ kind }) => kind === 'user_message').length === 2 && last?.kind === 'status' && last.status === 'ready';
    };
    await eventually(async () => (await Promise.all(ids.map(isOver))).every(Boolean), 30_000);
  });
});

describe('callbacks that wait in a stream that is lost', () => {
  /** Longer than any wait of this file: what comes has not waited for its timer. */
  const FAR_SECONDS = 60;

  /** A house with a callback in the queue, which no worker takes. */
  async function houseWithCallback() {
    const stores = await openStores();
    const house = await openHouse(stores);
    houses.push(house);
    const host = await house.host();
    const next = house.nextCall();
    await house.startRun({ id: 'run_1' });
    await house.send(calledTools('ses_run', (await next).callId, VERDICT));
    await eventually(async () => (await house.bus.work.depths()).delivery === 1 && (await house.count('outbox')) === 0);
    return { stores, house, host };
  }

  /** Deletes the stream behind everybody's back. */
  async function loseWork(server: NatsServer): Promise<void> {
    const connection = await connect({ servers: server.url });
    await (await jetstreamManager(connection)).streams.delete('WORK');
    await connection.close();
  }

  async function expectCallback(house: House): Promise<void> {
    // By looking at the queue: a worker that pulls would itself declare the stream anew.
    await eventually(async () => (await house.bus.work.depths()).delivery === 1, 20_000);
    expect(await nextDelivery(house)).toMatchObject({ deliveryId: 'run_1-callback', republished: true });
    const [timer] = await house.rows<{ key: string; far: boolean }>(`select key, due_at > now() + make_interval(secs => ${FAR_SECONDS}) as far from timers`);
    expect(timer).toMatchObject({ key: expect.stringContaining('-overdue'), far: true });
    expect(await house.rows('select distinct state from effects')).toContainEqual({ state: 'open' });
  }

  it('DESIGN 6 rule 5: are published again at once by a host whose connection has stayed', async () => {
    const { stores, house } = await houseWithCallback();
    await loseWork(stores.server());

    await expectCallback(house);
  });

  it('DESIGN 6 rule 5: are published again at once when the broker comes back without the stream', async () => {
    const { stores, house } = await houseWithCallback();
    await loseWork(stores.server());
    await stores.server().kill();
    await stores.server().start();

    await expectCallback(house);
  });

  it('DESIGN 6 rule 5: are published again at once by a host that comes after the loss', async () => {
    const { stores, house, host } = await houseWithCallback();
    await host.stop();
    await loseWork(stores.server());
    await house.host();

    await expectCallback(house);
  });
});

describe('a router worker that was taken over', () => {
  const passwordOf = (user: BusUser) => `password-of-${user}`;
  const tags = new CommandTags('the secret of a deployment under test');

  /** A broker with the users of a deployment. The test itself is a gateway there, all others are hosts. */
  async function openStoresWithUsers(): Promise<Stores & { url: string; openAs(user: BusUser): Promise<Bus> }> {
    const stores = await openStores();
    const config = busUsers.reduce((text, user) => text.replaceAll(`$${passwordVariableOf(user)}`, JSON.stringify(passwordOf(user))), natsServerConfig());
    const server = await startNatsServer({ config });
    const buses: Bus[] = [];
    const openAs = async (user: BusUser) => {
      const bus = await openNatsBus({ servers: server.url, user, password: passwordOf(user), log: silentLog });
      buses.push(bus);
      return bus;
    };
    return {
      ...stores,
      url: server.url,
      openAs,
      openBus: () => openAs(buses.length === 0 ? 'agent-gateway' : 'actor-host'),
      async close() {
        await Promise.all(buses.map((bus) => bus.close()));
        await server.close();
        await stores.close();
      },
    };
  }

  it('DESIGN 11: posts as no customer, neither by the rights of its user nor by an answer of the broker; its results still count', async () => {
    const stores = await openStoresWithUsers();
    const house = await openHouse(stores);
    houses.push(house);
    await house.host({}, { check: commandCheck(tags, 0) });
    const worker = await stores.openAs('router-worker');
    const partition = partitionOf('ses_a');
    const gateway = withTaggedCommands(house.bus, tags).commands;
    await gateway.append(partition, 'create', JSON.stringify({ ...create('ses_a'), commandId: 'create' }));
    await eventually(() => house.answers.length === 1);

    const { lastSequence: before } = await worker.commands.state();
    const forged = JSON.stringify({ ...post('ses_a', 'forged'), commandId: 'forged' });
    await worker.commands.append(partition, 'forged', forged);
    const bare = await connect({
      servers: stores.url,
      user: 'router-worker',
      pass: passwordOf('router-worker'),
      inboxPrefix: inboxPrefixOf('router-worker'),
    });
    bare.publish(`cmd.${partition}`, forged);
    // NATS does not check whether a user may publish to the reply address of its request.
    bare.publish('blob.forged.0', forged);
    await bare.flush();
    bare.publish('$JS.API.DIRECT.GET.BLOB.blob.forged.0', '', { reply: `cmd.${partition}` });
    await eventually(async () => (await worker.commands.state()).lastSequence === before + 3);
    await bare.close();

    await gateway.append(partition, 'post', JSON.stringify({ ...post('ses_a', 'Hello!'), commandId: 'post' }));
    worker.work.consume('router.turn', { concurrency: 1, ackWaitMs: 30_000 }, async (item) => {
      const { callId } = routerCall.parse(JSON.parse(item.body));
      await worker.commands.append(partition, callId, JSON.stringify(completed('ses_a', callId, 'a reply')));
      await item.ack();
    });
    const texts = async () => (await house.log('ses_a')).flatMap((event) => ('text' in event ? [event.text] : []));
    await eventually(async () => (await texts()).length === 2);

    expect(await texts()).toEqual(['Hello!', 'a reply']);
    expect(await house.count('dead_letters')).toBe(0);
  });
});

describe('hosts that start together', () => {
  it('DESIGN 4: one of them sweeps the store, and the owner of each session does what is its own', async () => {
    const stores = await openStores();
    const house = await openHouse(stores);
    houses.push(house);
    await house.host();
    await house.host();
    await orphanSession(house, 'run_a', 'ses_a');
    await orphanSession(house, 'run_b', 'ses_b');
    await storeOldRuns(house, 'old', 1_100, 31);
    const sweeps = await Promise.all(
      [1, 2].map(async () => sweepOf({ bus: await stores.openBus(), database: await stores.openDatabase() }, { pauseMs: 100 }).swept),
    );

    expect(sweeps.filter((swept) => swept !== null)).toMatchObject([{ orphaned_sessions: 2, old_runs: 1_100 }]);
    await eventually(async () => (await house.count('sessions', 'deleted_at is not null')) === 2);
    expect(await house.count('seen', `command_id like 'ses__-delete-%'`)).toBe(2);
    expect(await house.count('runs')).toBe(2);
  });
});
