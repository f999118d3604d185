import type { NatsConnection } from '@nats-io/transport-node';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { silentLog } from '#shared/telemetry/log.ts';
import { startNatsServer } from '../../scripts/servers/test-services.mjs';
import { addresses, type BusRole, type BusUser, rolesOf } from '../subjects.ts';
import { workQueues } from '../work-queues.ts';
import { inboxPrefixOf } from './connection/dial.ts';
import { openNatsBus } from './nats-bus.ts';
import { busUsers } from './permissions.ts';
import { streams } from './streams.ts';
import { filled, passwordOf, refusalsOf, useServerWithUsers } from './test-support/server-with-users.ts';

/** The filter subject differs from that in the request's subject. */
const FILTER_MISMATCH = 10131;
/** The stream exists with another configuration. */
const NAME_IN_USE = 10058;

async function configOf(connection: NatsConnection, stream: string): Promise<Record<string, unknown>> {
  const answer = (await connection.request(`$JS.API.STREAM.INFO.${stream}`)).json();
  return z.object({ config: z.record(z.string(), z.unknown()) }).parse(answer).config;
}

describe('the broker’s permissions: ', () => {
  const server = useServerWithUsers(startNatsServer);
  const { open, enter, mayPublish, maySubscribe } = server;

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
