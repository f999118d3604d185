import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { openNatsBus } from '../../bus/nats/nats-bus.ts';
import { PARTITION_COUNT, partitionOf } from '../../bus/partition.ts';
import { startNatsServer } from '../../scripts/servers/test-services.mjs';
import { create, post } from '../../services/actor-host/test-support/commands.ts';
import { openServerStores } from '../../services/actor-host/test-support/server-stores.ts';
import { eventually, openTestCluster, quickTimes, type TestCluster } from '../../services/actor-host/test-support/test-cluster.ts';
import { type FreshDatabase, freshDatabase } from '../../shared/storage/conformance/fresh-database.ts';
import type { Database } from '../../shared/storage/database.ts';
import { migrate } from '../../shared/storage/migrate.ts';
import { openPostgres } from '../../shared/storage/postgres/open-postgres.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { type TcpProxy, tcpProxy } from '../helpers/tcp-proxy.ts';

let fresh: FreshDatabase;
let own: Database;
let opened: TestCluster | null = null;
let proxy: TcpProxy | null = null;

beforeAll(async () => {
  fresh = await freshDatabase(inject('postgresUrl'));
  own = await openPostgres({ url: fresh.url, applicationName: 'owner without the broker', log: silentLog });
  await migrate(own);
});
afterEach(async () => {
  proxy?.thaw();
  await opened?.close();
  await proxy?.close();
  opened = null;
  proxy = null;
});
afterAll(async () => {
  await own?.close();
  await fresh?.drop();
});

/** Each host has its own connections. */
const drivers = () => ({
  own,
  startBroker: () => startNatsServer(),
  openDatabase: () => openPostgres({ url: fresh.url, applicationName: 'actor-host', maxConnections: 3, log: silentLog }),
  openBus: (url: string) => openNatsBus({ servers: url, user: null, password: null, log: silentLog }),
});

describe('an owner that alone loses the broker', () => {
  const halfDead = (proxy: TcpProxy) => proxy.freeze();
  const cut = (proxy: TcpProxy) => {
    proxy.freeze();
    proxy.cut();
  };

  it.each([
    ['on a connection that looks open', halfDead],
    ['with its connections', cut],
  ])('DESIGN 4: releases its partitions to those that have it, and has its share again behind that: %s', async (_, lose) => {
    const stores = await openServerStores(drivers());
    proxy = await tcpProxy(Number(new URL(stores.server().url).port));
    const deployment = await openTestCluster(stores);
    opened = deployment;
    const first = await deployment.host({ times: quickTimes });
    stores.nextBusAt(`nats://127.0.0.1:${proxy.port}`);
    const second = await deployment.host({ times: quickTimes });
    const ownedBy = async ({ id }: { id: string }) => (await deployment.rows<{ p: number }>('select p from parts where owner = $1', [id])).map(({ p }) => p);
    await eventually(async () => (await ownedBy(second)).length > 0 && (await ownedBy(first)).length + (await ownedBy(second)).length === PARTITION_COUNT);
    const share = (await ownedBy(second)).sort();
    const sessionId = Array.from({ length: 1_000 }, (__, index) => `ses_${index}`).find((id) => share.includes(partitionOf(id))) ?? '';
    await deployment.send(create(sessionId));
    await eventually(() => deployment.replies.length === 1);
    lose(proxy);
    await deployment.send({ ...post(sessionId, 'while its owner has no broker'), triggersTurn: false });
    await eventually(() => deployment.replies.length === 2);
    expect(await ownedBy(second)).toEqual([]);
    proxy.thaw();
    await eventually(async () => (await ownedBy(second)).sort().join() === share.join());
    await deployment.send({ ...post(sessionId, 'behind it'), triggersTurn: false });
    await eventually(() => deployment.replies.length === 3);

    expect((await deployment.log(sessionId)).map((event) => 'text' in event && event.text)).toEqual(['while its owner has no broker', 'behind it']);
  });
});
