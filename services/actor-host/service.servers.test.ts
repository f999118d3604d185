import { cpSync, rmSync } from 'node:fs';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { commandCheck } from '#actors/runtime/apply/command-check.ts';
import type { Bus } from '#bus/bus.ts';
import { CommandTags, withTaggedCommands } from '#bus/command-tags.ts';
import { routerCall } from '#bus/messages/router.ts';
import { inboxPrefixOf } from '#bus/nats/connection/dial.ts';
import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { busUsers } from '#bus/nats/permissions.ts';
import { natsServerConfig, passwordVariableOf } from '#bus/nats/server-config.ts';
import { PARTITION_COUNT, partitionOf } from '#bus/partition.ts';
import type { BusUser } from '#bus/subjects.ts';
import { type FreshDatabase, freshDatabase } from '#shared/storage/conformance/fresh-database.ts';
import type { Database, Queryable } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../scripts/servers/test-services.mjs';
import { calledTools, completed, create, post } from './test-support/commands.ts';
import { engineCases } from './test-support/engine-cases.ts';
import { nextDelivery, VERDICT } from './test-support/run-helpers.ts';
import { openServerStores } from './test-support/server-stores.ts';
import { orphanSession, storeOldRuns, sweepCases, sweepOf } from './test-support/sweep-cases.ts';
import { eventually, openTestCluster, quickTimes, type Stores, type TestCluster } from './test-support/test-cluster.ts';

/** The same cases as on the embedded drivers, each host with its own connections. */
let fresh: FreshDatabase;
let own: Database;
const clusters: TestCluster[] = [];

beforeAll(async () => {
  fresh = await freshDatabase(inject('postgresUrl'));
  own = await openPostgres({ url: fresh.url, applicationName: 'actor-host test', log: silentLog });
  await migrate(own);
});
afterEach(async () => {
  await Promise.all(clusters.splice(0).map((cluster) => cluster.close()));
});
afterAll(async () => {
  await own?.close();
  await fresh?.drop();
});

const drivers = () => ({
  own,
  startBroker: () => startNatsServer(),
  openDatabase: () => openPostgres({ url: fresh.url, applicationName: 'actor-host', maxConnections: 3, log: silentLog }),
  openBus: (url: string) => openNatsBus({ servers: url, user: null, password: null, log: silentLog }),
});
const openStores = () => openServerStores(drivers());

const open = async () => {
  const cluster = await openTestCluster(await openStores());
  clusters.push(cluster);
  return cluster;
};

sweepCases(open);
engineCases(open);

describe('an owner whose broker goes away', () => {
  it('DESIGN 4: a log that is rolled back under a running owner and grows anew is detected: no accepted command is skipped', async () => {
    const stores = await openStores();
    const cluster = await openTestCluster(stores);
    clusters.push(cluster);
    await cluster.host();
    const server = stores.server();
    const copy = `${server.folder}-copy`;
    await cluster.send(create('ses_a'));
    await eventually(() => cluster.replies.length === 1);
    await server.stop();
    cpSync(server.folder, copy, { recursive: true });
    await server.start();
    await eventually(() => cluster.bus.isReady());
    for (let n = 0; n < 10; n += 1) await cluster.send({ ...post('ses_a', `forgotten ${n}`), triggersTurn: false });
    await eventually(async () => (await cluster.log('ses_a')).length === 10);
    await server.stop();
    rmSync(server.folder, { recursive: true });
    cpSync(copy, server.folder, { recursive: true });
    await server.start();
    await eventually(() => cluster.bus.isReady());
    // With sequences far behind the owner's cursor.
    for (let n = 0; n < 3; n += 1) await cluster.send({ ...post('ses_a', `anew ${n}`), triggersTurn: false });
    await eventually(async () => (await cluster.log('ses_a')).length === 13);
    rmSync(copy, { recursive: true });

    const log = await cluster.log('ses_a');
    expect(log.map((event) => event.offset)).toEqual(log.map((_, index) => index));
    expect(log.slice(10).map((event) => 'text' in event && event.text)).toEqual(['anew 0', 'anew 1', 'anew 2']);
  });

  it('recovers by itself when the broker is killed and restarted, with turns in progress', async () => {
    const stores = await openStores();
    const cluster = await openTestCluster(stores);
    clusters.push(cluster);
    await cluster.host();
    cluster.answerAllCalls();
    const ids = Array.from({ length: 20 }, (_, index) => `ses_${index}`);
    await Promise.all(ids.map((id) => cluster.send(create(id))));
    const sending = Promise.all(ids.map((id) => cluster.send(post(id, 'before and after'))));
    await stores.server().kill();
    await stores.server().start();
    await sending;
    await Promise.all(ids.map((id) => cluster.send(post(id, 'after'))));
    const isOver = async (id: string) => {
      const log = await cluster.log(id);
      const last = log.at(-1);
      return log.filter(({ kind }) => kind === 'user_message').length === 2 && last?.kind === 'status' && last.status === 'ready';
    };
    await eventually(async () => (await Promise.all(ids.map(isOver))).every(Boolean));
  });
});

describe('callbacks that wait in a stream that is lost', () => {
  /** Longer than any wait of this file: a result within it did not need its timer. */
  const FAR_SECONDS = 60;

  /** A cluster with a callback in the queue, which no worker consumes. */
  async function clusterWithCallback() {
    const stores = await openStores();
    const cluster = await openTestCluster(stores);
    clusters.push(cluster);
    const host = await cluster.host();
    const next = cluster.nextCall();
    await cluster.startRun({ id: 'run_1' });
    await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
    await eventually(async () => (await cluster.bus.work.depths()).delivery === 1 && (await cluster.count('effects', `state = 'open' and unpublished`)) === 0);
    return { stores, cluster, host };
  }

  /** Deletes the stream under the running bus. */
  async function loseWork(server: NatsServer): Promise<void> {
    const connection = await connect({ servers: server.url });
    await (await jetstreamManager(connection)).streams.delete('WORK');
    await connection.close();
  }

  async function expectCallback(cluster: TestCluster): Promise<void> {
    // Polls the queue: a pulling worker would itself recreate the stream. While the stream is missing, the depth can't be read.
    await eventually(async () => (await cluster.bus.work.depths().catch(() => null))?.delivery === 1);
    expect(await nextDelivery(cluster)).toMatchObject({ deliveryId: 'run_1-callback', republished: true });
    const [timer] = await cluster.rows<{ key: string; far: boolean }>(`select key, due_at > now() + make_interval(secs => ${FAR_SECONDS}) as far from timers`);
    expect(timer).toMatchObject({ key: expect.stringContaining('-overdue'), far: true });
    expect(await cluster.rows('select distinct state from effects')).toContainEqual({ state: 'open' });
  }

  it('DESIGN 6 rule 5: are published again at once by a host that was connected throughout', async () => {
    const { stores, cluster } = await clusterWithCallback();
    await loseWork(stores.server());

    await expectCallback(cluster);
  });

  it('DESIGN 6 rule 5: are published again at once when the broker comes back without the stream', async () => {
    const { stores, cluster } = await clusterWithCallback();
    await loseWork(stores.server());
    await stores.server().kill();
    await stores.server().start();

    await expectCallback(cluster);
  });

  it('DESIGN 6 rule 5: are published again at once by a host that starts after the loss', async () => {
    const { stores, cluster, host } = await clusterWithCallback();
    await host.stop();
    await loseWork(stores.server());
    await cluster.host();

    await expectCallback(cluster);
  });
});

describe('a compromised router worker', () => {
  const passwordOf = (user: BusUser) => `password-of-${user}`;
  const tags = new CommandTags('the secret of a deployment under test');

  /** A broker with the users of a deployment. The test is a gateway there, all others are hosts. */
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

  it('DESIGN 11: can not post as a customer, neither by its user’s permissions nor by a reply of the broker; its results are still applied', async () => {
    const stores = await openStoresWithUsers();
    const cluster = await openTestCluster(stores);
    clusters.push(cluster);
    await cluster.host({}, { check: commandCheck(tags, 0) });
    const worker = await stores.openAs('router-worker');
    const partition = partitionOf('ses_a');
    const gateway = withTaggedCommands(cluster.bus, tags).commands;
    await gateway.append(partition, 'create', JSON.stringify({ ...create('ses_a'), commandId: 'create' }));
    await eventually(() => cluster.replies.length === 1);

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
    const texts = async () => (await cluster.log('ses_a')).flatMap((event) => ('text' in event ? [event.text] : []));
    await eventually(async () => (await texts()).length === 2);

    expect(await texts()).toEqual(['Hello!', 'a reply']);
    expect(await cluster.count('dead_letters')).toBe(0);
  });
});

describe('hosts that start together', () => {
  it('DESIGN 4: one of them sweeps the store, and the owner of each session executes its part', async () => {
    const stores = await openStores();
    const cluster = await openTestCluster(stores);
    clusters.push(cluster);
    await cluster.host();
    await cluster.host();
    await orphanSession(cluster, 'run_a', 'ses_a');
    await orphanSession(cluster, 'run_b', 'ses_b');
    await storeOldRuns(cluster, 'old', 1_100, 31);
    const sweeps = await Promise.all(
      [1, 2].map(async () => sweepOf({ bus: await stores.openBus(), database: await stores.openDatabase() }, { pauseMs: 100 }).swept),
    );

    expect(sweeps.filter((swept) => swept !== null)).toMatchObject([{ orphaned_sessions: 2, old_runs: 1_100 }]);
    await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 2);
    expect(await cluster.count('seen', `command_id like 'ses__-delete-%'`)).toBe(2);
    expect(await cluster.count('runs')).toBe(2);
  });
});

describe('two brokers on one database', () => {
  it('DESIGN 4: a host whose broker has another command log than running hosts have is refused by name, and accepted once they have ended', async () => {
    const stores = await openStores();
    const cluster = await openTestCluster(stores);
    clusters.push(cluster);
    const host = await cluster.host();
    const owned = () => cluster.rows('select p, owner, epoch from parts order by p');
    const before = await owned();
    const { created } = await cluster.bus.commands.state();
    await stores.loseBus();
    await expect(cluster.host()).rejects.toMatchObject({ code: 'service.other_log', message: expect.stringContaining(`${host.id} (${created})`) });
    expect(await owned()).toEqual(before);
    expect(await cluster.rows('select id from hosts')).toEqual([{ id: host.id }]);
    host.crash();
    // A broker with a new store, although the dead host's row may still exist.
    const successor = await cluster.host({ times: quickTimes });
    await eventually(async () => (await cluster.count('parts', `owner = '${successor.id}'`)) === PARTITION_COUNT);
  });

  it('two hosts that start at the same time on two brokers do not both stay', async () => {
    const stores = await openStores();
    const cluster = await openTestCluster(stores);
    clusters.push(cluster);
    let goOn = () => {};
    const both = new Promise<void>((resolve) => (goOn = resolve));
    let asked = 0;
    const onAsked = () => {
      asked += 1;
    };
    // Neither has looked for other hosts yet.
    const first = cluster.host({}, { stalled: { until: both, onAsked } });
    await eventually(() => asked === 1);
    await stores.loseBus();
    const second = cluster.host({}, { stalled: { until: both, onAsked } });
    await eventually(() => asked === 2);
    goOn();
    const outcomes = await Promise.allSettled([first, second]);

    const refused = outcomes.filter(({ status }) => status === 'rejected');
    expect(refused.length).toBeGreaterThan(0);
    for (const outcome of refused) expect(outcome).toMatchObject({ reason: { code: 'service.other_log' } });
    expect(await cluster.count('hosts')).toBe(2 - refused.length);
  });

  it('nor do two whose first heartbeats are written at the same time', async () => {
    const stores = await openStores();
    const cluster = await openTestCluster(stores);
    clusters.push(cluster);
    // A heartbeat that waits in the trigger has read the list of hosts already.
    await cluster.database.query(`
      create function hold_heartbeat() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(${HELD}); return new; end $$;
      create trigger hold_heartbeat before insert on hosts for each row execute function hold_heartbeat()`);
    try {
      let goOn = () => {};
      const both = new Promise<void>((resolve) => (goOn = resolve));
      let asked = 0;
      const onAsked = () => {
        asked += 1;
      };
      const first = cluster.host({}, { stalled: { until: both, onAsked } });
      await eventually(() => asked === 1);
      await stores.loseBus();
      const second = cluster.host({}, { stalled: { until: both, onAsked } });
      await eventually(() => asked === 2);
      const held = cluster.database.transaction(async (handle) => {
        await handle.query(`select pg_advisory_xact_lock(${HELD})`);
        goOn();
        await untilTwoWait(handle);
      });
      const outcomes = await Promise.allSettled([first, second]);
      await held;

      const refused = outcomes.filter(({ status }) => status === 'rejected');
      expect(refused.length).toBeGreaterThan(0);
      for (const outcome of refused) expect(outcome).toMatchObject({ reason: { code: 'service.other_log' } });
    } finally {
      await cluster.database.query('drop trigger hold_heartbeat on hosts; drop function hold_heartbeat()');
    }
  });

  it('hosts go on when the log of their broker is deleted and declared anew, and others may join them', async () => {
    const stores = await openStores();
    const cluster = await openTestCluster(stores);
    clusters.push(cluster);
    const first = await cluster.host();
    const { created } = await cluster.bus.commands.state();
    const broker = await connect({ servers: stores.server().url });
    await (await jetstreamManager(broker)).streams.delete('CMD');
    await broker.close();
    await cluster.send(create('ses_a'));
    await eventually(() => cluster.replies.length === 1);
    const second = await cluster.host();

    await eventually(async () => (await cluster.count('parts', `owner in ('${first.id}', '${second.id}')`)) === PARTITION_COUNT);
    await eventually(async () => (await cluster.count('hosts', `log_created = '${created}'`)) === 0);
  });
});

/** Advisory lock that heartbeats wait for. */
const HELD = 77;

/** Until two heartbeats wait for this transaction's lock. Ends before the server ends their wait, after two seconds. */
async function untilTwoWait(handle: Queryable): Promise<void> {
  for (let look = 0; look < 30; look += 1) {
    const { rows } = await handle.query<{ count: number }>(
      `select count(*)::int as count, pg_sleep(0.05) from pg_locks where locktype = 'advisory' and objid = ${HELD} and not granted
       and database = (select oid from pg_database where datname = current_database())`,
    );
    if (rows[0]?.count === 2) return;
  }
}

describe('a database that is restored to an earlier time', () => {
  const TIME = 'the database is in an earlier state than this host has stored: the state in memory is dropped and read again';
  let restored: FreshDatabase;
  let backup: string;
  afterEach(async () => {
    await restored?.administer(`drop database if exists ${backup} with (force)`);
    await restored?.drop();
  });

  /** A deployment on its own database, which can be restored. */
  async function openRestorable() {
    restored = await freshDatabase(inject('postgresUrl'));
    const openDatabase = () => openPostgres({ url: restored.url, applicationName: 'actor-host', maxConnections: 3, log: silentLog });
    const first = await openDatabase();
    await migrate(first);
    const cluster = await openTestCluster(await openServerStores({ ...drivers(), own: first, openDatabase }));
    clusters.push(cluster);
    await first.close();
    const name = new URL(restored.url).pathname.slice(1);
    backup = `${name}_backup`;
    /** Copies a database; it must have no connections meanwhile. */
    const copy = async (from: string, to: string) => {
      await restored.administer(`alter database ${from} with allow_connections false`);
      await restored.administer(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${from}'`);
      await restored.administer(`create database ${to} template ${from}`);
      await restored.administer(`alter database ${from} with allow_connections true`);
    };
    return {
      cluster,
      backUp: () => copy(name, backup),
      restore: async () => {
        await restored.administer(`drop database ${name} with (force)`);
        await copy(backup, name);
        await restored.administer(`alter database ${name} with allow_connections true`);
      },
    };
  }

  /** Texts of the session. Reads wait until the database is reachable again. */
  const textsOf = async (cluster: TestCluster) => (await cluster.log('ses_a').catch(() => [])).map((event) => ('text' in event ? event.text : ''));
  const say = (cluster: TestCluster, text: string) => cluster.send({ ...post('ses_a', text), triggersTurn: false });

  it.each([
    { how: 'under running hosts', isStopped: false },
    { how: 'with all hosts stopped', isStopped: true },
  ])('DESIGN 4: hosts go on from what it holds, and apply again what the command log still has: $how', async ({ isStopped }) => {
    const { cluster, backUp, restore } = await openRestorable();
    const hosts = [await cluster.host(), await cluster.host()];
    await cluster.send(create('ses_a'));
    await say(cluster, 'before');
    await eventually(async () => (await textsOf(cluster)).length === 1);
    await backUp();
    for (const text of ['after', 'and after']) await say(cluster, text);
    await eventually(async () => (await textsOf(cluster)).length === 3);
    if (isStopped) await Promise.all(hosts.map((host) => host.stop()));
    await restore();
    if (isStopped) await cluster.host();
    else await eventually(() => cluster.errors.some(({ message }) => message === TIME));
    await say(cluster, 'anew');
    await eventually(async () => (await textsOf(cluster)).length === 4);

    expect(await textsOf(cluster)).toEqual(['before', 'after', 'and after', 'anew']);
    const log = await cluster.log('ses_a');
    expect(log.map((event) => event.offset)).toEqual(log.map((_, index) => index));
    if (!isStopped)
      expect(cluster.errors.find(({ message }) => message === TIME)?.fields).toMatchObject({
        partitions: expect.any(Number),
        commits_missing: expect.any(Number),
      });
  });

  it('what the command log no longer has is lost, and sessions go on without it', async () => {
    const { cluster, backUp, restore } = await openRestorable();
    const host = await cluster.host({ purgeEveryMs: 30 });
    await cluster.send(create('ses_a'));
    await say(cluster, 'before');
    await eventually(async () => (await textsOf(cluster)).length === 1);
    await backUp();
    for (const text of ['lost', 'last']) await say(cluster, text);
    await eventually(async () => (await textsOf(cluster)).length === 3);
    // Purged up to the last command, which stays as the cursors' log position.
    await eventually(async () => {
      const { firstSequence, lastSequence } = await cluster.bus.commands.state();
      return firstSequence === lastSequence;
    });
    await host.stop();
    await restore();
    await cluster.host();
    await say(cluster, 'anew');
    await eventually(async () => (await textsOf(cluster)).includes('anew'));

    expect(await textsOf(cluster)).toEqual(['before', 'last', 'anew']);
  });
});
