import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { send } from '../test-support/api.ts';
import { newSession, offsetsOf, openTestDeployment, post, read, type TestDeployment } from '../test-support/test-deployment.ts';
import { until } from '../test-support/until.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => {
  deployment.owner.silent.notices = false;
  deployment.owner.isBusy = false;
  return deployment.closeApps();
});
afterAll(() => deployment.close());

type App = ReturnType<TestDeployment['app']>;

/** A session with three messages, which are in the memory of the gateways that read it before. */
async function sessionOf(app: App, readers: readonly App[] = [], { compares = false } = {}): Promise<{ id: string; events: string[] }> {
  const id = await newSession(app);
  const { begun: waiting } = await deployment.afterPages(readers.length, () => readers.map((reader) => read(reader, id, 'min_offset=2&wait_for_data=60')));
  // The first comparison drops what a gateway has.
  if (compares) {
    deployment.queries.length = 0;
    await until(() => deployment.queries.filter((name) => name === 'agent-gateway-heads').length > 1, 'a comparison');
  }
  const events: string[] = [];
  for (const text of ['one', 'two', 'three']) events.push((await post(app, id, { kind: 'user_message', text })).json().id);
  await Promise.all(waiting);
  return { id, events };
}

const changesOf = (id: string) => deployment.owner.commands.filter(({ sessionId, type }) => sessionId === id && type.startsWith('event'));

describe('PATCH /sessions/:session_id/events/:event_id', () => {
  it('answers with the changed event, which readers have from then on', async () => {
    const app = deployment.app();
    const { id, events } = await sessionOf(app);

    const reply = await send(app, 'PATCH', `/sessions/${id}/events/${events[1]}`, { metadata: { set: { rating: 5 }, unset: ['old'] } });

    expect([reply.statusCode, reply.json()]).toMatchObject([200, { id: events[1], offset: 1, text: 'two', metadata: { rating: 5 } }]);
    expect(changesOf(id)).toMatchObject([{ v: 3, type: 'event.patch', eventId: events[1], setMetadata: { rating: 5 }, unsetMetadata: ['old'] }]);
    expect((await read(app, id, 'wait_for_data=1')).json()[1]).toEqual(reply.json());
    expect((await send(app, 'GET', `/sessions/${id}/events/${events[1]}`)).json()).toEqual(reply.json());
  });

  it('is 404 for an event of another session, and a repeated key gets the first reply', async () => {
    const app = deployment.app();
    const [{ id, events }, other] = [await sessionOf(app), await sessionOf(app)];
    const patch = (eventId: string | undefined, rating: number) =>
      send(app, 'PATCH', `/sessions/${id}/events/${eventId}`, { metadata: { set: { rating } } }, 'k');

    expect((await patch(other.events[0], 1)).statusCode).toBe(404);
    const first = await patch(events[0], 2);
    expect([first.statusCode, (await patch(events[0], 3)).json()]).toEqual([200, first.json()]);
    expect((await patch(events[1], 4)).json()).toMatchObject({ metadata: { rating: 4 } });
  });
});

describe('DELETE /sessions/:session_id/events', () => {
  it('DESIGN 9: deletes the end of a log for every reader, and offsets go on behind it', async () => {
    const app = deployment.app();
    const { id, events } = await sessionOf(app);
    // In the memory of this gateway.
    expect(offsetsOf(await read(app, id, 'wait_for_data=1'))).toEqual([0, 1, 2]);

    expect((await send(app, 'DELETE', `/sessions/${id}/events?min_offset=1`)).statusCode).toBe(204);

    expect(offsetsOf(await read(app, id, 'wait_for_data=1'))).toEqual([0]);
    expect((await send(app, 'GET', `/sessions/${id}/events/${events[2]}`)).statusCode).toBe(404);
    expect((await send(app, 'PATCH', `/sessions/${id}/events/${events[2]}`, { metadata: {} })).statusCode).toBe(404);
    await post(app, id, { kind: 'user_message', text: 'four' });
    expect(offsetsOf(await read(app, id, 'min_offset=1&wait_for_data=1'))).toEqual([3]);
    expect(changesOf(id)).toMatchObject([{ v: 3, type: 'events.delete', minOffset: 1, force: false }, { type: 'event.patch' }]);
  });

  it('names the offset that is not at the first event of a trace, and is 409 during a turn without force', async () => {
    const app = deployment.app();
    const { id } = await sessionOf(app);
    await deployment.owner.append(id, { kind: 'assistant_message', text: 'a' }, { kind: 'assistant_message', text: 'b' });

    const refused = await send(app, 'DELETE', `/sessions/${id}/events?min_offset=4`);
    expect([refused.statusCode, refused.json()]).toMatchObject([400, { code: 'validation_failed', path: '/min_offset' }]);
    deployment.owner.isBusy = true;
    const busy = await send(app, 'DELETE', `/sessions/${id}/events?min_offset=3`);
    expect([busy.statusCode, busy.json()]).toEqual([409, { code: 'conflict', error: 'a turn is in progress' }]);
    expect((await send(app, 'DELETE', `/sessions/${id}/events?min_offset=3&force=true`)).statusCode).toBe(204);
    expect(offsetsOf(await read(app, id, 'wait_for_data=0'))).toEqual([0, 1, 2]);
  });

  it('is applied once under its key', async () => {
    const app = deployment.app();
    const { id } = await sessionOf(app);
    const remove = () => send(app, 'DELETE', `/sessions/${id}/events?min_offset=0`, undefined, 'k');

    expect((await remove()).statusCode).toBe(204);
    await post(app, id, { kind: 'user_message', text: 'four' });
    expect((await remove()).statusCode).toBe(204);
    expect(offsetsOf(await read(app, id, 'wait_for_data=0'))).toEqual([3]);
  });

  it('leaves readers that wait waiting, and they get what comes next', async () => {
    const app = deployment.app();
    const { id } = await sessionOf(app);
    const { begun: waiting } = await deployment.afterPages(0, () => read(app, id, 'min_offset=3&wait_for_data=60'));
    await send(app, 'DELETE', `/sessions/${id}/events?min_offset=0`);
    await deployment.owner.append(id, { kind: 'assistant_message', text: 'next' });

    expect(offsetsOf(await waiting)).toEqual([3]);
  });
});

describe('the memory of a gateway', () => {
  /** Read without a page of the log. */
  const remembered = async (app: App, id: string) => {
    deployment.queries.length = 0;
    const found = (await read(app, id, 'wait_for_data=1')).json() as { offset: number; metadata: object }[];
    return deployment.queries.includes('agent-gateway-page') ? null : found;
  };

  it('is dropped where the request was answered, though its notice is lost', async () => {
    const app = deployment.app();
    const { id, events } = await sessionOf(app, [app]);
    expect(await remembered(app, id)).toHaveLength(3);
    deployment.owner.silent.notices = true;

    await send(app, 'PATCH', `/sessions/${id}/events/${events[0]}`, { metadata: { set: { rating: 5 } } });
    expect((await read(app, id, 'wait_for_data=1')).json()[0]).toMatchObject({ metadata: { rating: 5 } });
    await send(app, 'DELETE', `/sessions/${id}/events?min_offset=1`);
    expect(offsetsOf(await read(app, id, 'wait_for_data=1'))).toEqual([0]);
  });

  it.each(['its notice', 'a comparison, when the notice is lost'])('is dropped elsewhere by %s', async (how) => {
    const [app, other] = [deployment.app(), deployment.app({ waits: { checkFeedsMs: how === 'its notice' ? 60_000 : 20 } })];
    const { id, events } = await sessionOf(app, [other], { compares: how !== 'its notice' });
    expect(await remembered(other, id)).toHaveLength(3);
    deployment.owner.silent.notices = how !== 'its notice';

    await send(app, 'PATCH', `/sessions/${id}/events/${events[0]}`, { metadata: { set: { rating: 5 } } });
    const known = async () => (await read(other, id, 'wait_for_data=1')).json() as { metadata: object }[];
    await until(async () => 'rating' in ((await known())[0]?.metadata ?? {}), 'the change');
    await send(app, 'DELETE', `/sessions/${id}/events?min_offset=1`);
    await until(async () => (await known()).length === 1, 'the deletion');
  });
});
