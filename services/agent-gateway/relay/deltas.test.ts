import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { sseFrame } from '#bus/messages/frame.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { ulid } from '#shared/ids.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import type { EventClient } from '../test-support/event-source.ts';
import { gatewaysOf } from '../test-support/gateways.ts';
import { openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';
import { until } from '../test-support/until.ts';

let deployment: TestDeployment;
const { start, newSession, stream, stopAll } = gatewaysOf(() => deployment);
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => stopAll());
afterAll(() => deployment.close());

const SAY = (text: string) => ({ kind: 'assistant_message', text }) as const;
const STATUS = (status: 'acknowledged' | 'cancelled' | 'ready') => ({ kind: 'status', status, stage: null, error_detail: null }) as const;
const idsOf = (client: EventClient) => client.events.filter(({ id }) => id !== undefined).map(({ id }) => Number(id));

describe('deltas', () => {
  const call = () => `trn_${ulid()}-1`;
  const publish = (sessionId: string, callId: string, seq: number, text: string) =>
    deployment.bus.tokens.publish(
      subjectOf(addresses.tokens, sessionId, callId),
      sseFrame('m', { callId, attempt: 1, seq, isLogged: true }, `data: ${JSON.stringify({ type: 'text-delta', text })}\n\n`),
    );
  const partsOf = (client: EventClient) =>
    client.events.filter(({ id }) => id === undefined).map(({ event, data }) => ({ event, data: JSON.parse(data) as Record<string, unknown> }));

  it('are not sent where replies are shown whole', async () => {
    const gateway = await start({ streaming: false });
    const sessionId = await newSession(gateway);
    const client = await stream(gateway, sessionId);

    publish(sessionId, call(), 1, 'Hel');
    await deployment.owner.append(sessionId, SAY('Hello'));
    await client.waitFor('the message', () => client.events.length > 0);

    expect(partsOf(client)).toEqual([]);
  });

  it('are not missed by a client that posts as soon as it is connected: the response begins once the broker has the subscription', async () => {
    let arrive = () => {};
    const isThere = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    let asked = 0;
    const subscribe: typeof deployment.bus.tokens.subscribe = (pattern, handler) => {
      const listening = deployment.bus.tokens.subscribe(pattern, handler);
      const ready = () => {
        asked += 1;
        return isThere;
      };
      return { ready, stop: () => listening.stop() };
    };
    const bus = { ...deployment.bus, tokens: { ...deployment.bus.tokens, subscribe } };
    const gateway = await start({ streaming: true, bus, waits: { subscribedMs: 60_000 } });
    const sessionId = await newSession(gateway);
    let isConnected = false;
    const connecting = stream(gateway, sessionId).then((client) => {
      isConnected = true;
      return client;
    });
    await until(() => asked > 0, 'the question whether the broker has it');
    // Another stream opens and responds meanwhile, so this one had time to.
    await newSession(gateway);

    expect(isConnected).toBe(false);
    arrive();
    expect((await connecting).status).toBe(200);
  });

  it('delay no stream when the broker does not confirm the subscription', async () => {
    const never = new Promise<void>(() => {});
    const subscribe = () => ({ ready: () => never, stop: async () => {} });
    const bus = { ...deployment.bus, tokens: { ...deployment.bus.tokens, subscribe } };
    const gateway = await start({ streaming: true, bus, waits: { subscribedMs: 20 } });

    expect((await stream(gateway, await newSession(gateway))).status).toBe(200);
  });

  it('DESIGN 7: deltas show a reply while it is generated, until it is in the log', async () => {
    const gateway = await start({ streaming: true });
    const sessionId = await newSession(gateway);
    const client = await stream(gateway, sessionId);
    const callId = call();
    const messageId = callId.replace('trn_', 'evt_');

    publish(sessionId, callId, 1, 'Hel');
    publish(sessionId, callId, 2, 'lo');
    await client.waitFor('the deltas', () => client.events.length === 2);
    await deployment.owner.append(sessionId, { ...SAY('Hello'), id: messageId }, STATUS('ready'));
    await client.waitFor('the message', () => client.events.length === 4);
    publish(sessionId, callId, 3, '!');
    await deployment.owner.append(sessionId, SAY('next'));
    await client.waitFor('the next message', () => client.events.length === 5);

    expect(partsOf(client)).toEqual([
      { event: 'delta', data: { message_id: messageId, seq: 1, text: 'Hel' } },
      { event: 'delta', data: { message_id: messageId, seq: 2, text: 'lo' } },
    ]);
    expect(idsOf(client)).toEqual([0, 1, 2]);
  });

  it('end with an event when the reply is cancelled, before the status', async () => {
    const gateway = await start({ streaming: true });
    const sessionId = await newSession(gateway);
    const client = await stream(gateway, sessionId);
    const callId = call();
    const messageId = callId.replace('trn_', 'evt_');
    publish(sessionId, callId, 1, 'Hel');
    await client.waitFor('a delta', () => client.events.length === 1);

    await deployment.owner.append(sessionId, STATUS('cancelled'), STATUS('ready'));
    await client.waitFor('the statuses', () => client.events.length === 4);

    expect(client.events.map(({ event }) => event)).toEqual(['delta', 'delta', 'status', 'status']);
    expect(partsOf(client)[1]?.data).toEqual({ message_id: messageId, seq: 2, cancelled: true });
  });

  it('begin with the text so far for a reader that connects in the middle', async () => {
    const gateway = await start({ streaming: true });
    const sessionId = await newSession(gateway);
    await deployment.owner.append(sessionId, STATUS('ready'), STATUS('acknowledged'));
    // Begins after the previous turn's end, or its id would place it before that.
    const callId = call();
    const messageId = callId.replace('trn_', 'evt_');
    publish(sessionId, callId, 1, 'Hel');

    const first = await stream(gateway, sessionId);
    await first.waitFor('the log', () => idsOf(first).length === 2);
    publish(sessionId, callId, 2, 'lo');
    await first.waitFor('the text so far', () => partsOf(first).length === 1);
    const second = await stream(gateway, sessionId);
    await second.waitFor('the text so far', () => partsOf(second).length === 1);
    publish(sessionId, callId, 3, '!');
    await second.waitFor('a delta', () => partsOf(second).length === 2);
    await first.waitFor('a delta', () => partsOf(first).length === 2);

    for (const client of [first, second]) {
      expect(partsOf(client)).toEqual([
        { event: 'snapshot', data: { message_id: messageId, seq: 1, text: 'Hello' } },
        { event: 'delta', data: { message_id: messageId, seq: 2, text: '!' } },
      ]);
    }
  });

  it('are left out for a reader that filters messages out', async () => {
    const gateway = await start({ streaming: true });
    const sessionId = await newSession(gateway);
    const client = await stream(gateway, sessionId, 'kinds=status');

    publish(sessionId, call(), 1, 'Hel');
    await deployment.owner.append(sessionId, STATUS('ready'));
    await client.waitFor('the status', () => client.events.length === 1);

    expect(partsOf(client)).toEqual([]);
  });
});
