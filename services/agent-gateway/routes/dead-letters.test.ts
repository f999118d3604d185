import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { partitionOf } from '#bus/partition.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { DeadLetterRows } from '../deliveries/dead-letter-rows.ts';
import { replayDeadLetter } from '../deliveries/replay-dead-letter.ts';
import { send } from '../test-support/api.ts';
import { openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';
import { until } from '../test-support/until.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());
beforeEach(async () => {
  await deployment.database.query('delete from dead_letters');
  await deployment.database.query('delete from deliveries');
  await deployment.database.query('delete from events');
});
afterEach(() => deployment.closeApps());

const DELIVERY = 'run_1-callback';

async function letter(id: string, source: string, { p = 1, body = '', atMs = 0 }: { p?: number | null; body?: string; atMs?: number } = {}): Promise<void> {
  await deployment.database.query('insert into dead_letters (id, p, source, reason, body, created_at) values ($1, $2, $3, $4, $5, $6)', [
    ...[id, p, source, 'it <b>failed</b>', body],
    new Date(1_700_000_000_000 + atMs),
  ]);
}

async function delivery(state: 'dead' | 'delivered'): Promise<void> {
  await deployment.database.query(
    `insert into deliveries (id, p, session_id, run_id, url, host_allowlist, bundle_hash, idempotency_key, trace_id, body, attempts, state, created_at, settled_at)
     values ($1, 1, 'ses_d', 'run_1', 'https://receiver.example/', 'null', 'h', 'k', 't', '{}', 5, $2, now(), now())`,
    [DELIVERY, state],
  );
}

const EVENT = 'ses_e-event-4';

async function deadEvent(url = 'https://receiver.example/'): Promise<void> {
  await letter(EVENT, 'event', { body: JSON.stringify({ v: 1, sessionId: 'ses_e', offset: 4, url, bundleHash: 'h' }) });
}

async function storeEvent(): Promise<void> {
  await deployment.database.query(
    `insert into events (session_id, off, id, kind, source, trace_id, body, created_at) values ('ses_e', 4, 'evt', 'status', 'system', 't', '{}', now())`,
  );
}

const replay = (id: string, query = '', app = deployment.app()) => send(app, 'POST', `/dead_letters/${encodeURIComponent(id)}/replay${query}`);
const letters = async () => (await deployment.database.query<{ id: string }>('select id from dead_letters order by id')).rows.map(({ id }) => id);
const commands = () => deployment.owner.commands;

async function list(query = '') {
  return (await send(deployment.app(), 'GET', `/dead_letters?${query}`)).json() as { items: { id: string; source: string }[]; next_cursor: string | null };
}

describe('GET /dead_letters', () => {
  it('lists what is the agent’s, newest first, with its session and without its content', async () => {
    await delivery('dead');
    await letter(DELIVERY, 'delivery', { atMs: 3 });
    await letter('ses_1-event-4', 'event', { atMs: 2, body: JSON.stringify({ v: 1, sessionId: 'ses_1', offset: 4 }) });
    await letter('odd', 'command', { atMs: 1, body: 'not JSON' });
    await letter('gen-1', 'usage', { p: null });
    await letter('gen-2', 'call', { p: null });
    await letter('trn_1-1', 'call', { body: '{"sessionId":"ses_2"}' });

    const created_at = (atMs: number) => new Date(1_700_000_000_000 + atMs).toISOString();
    const reason = 'it <b>failed</b>';
    expect(await list()).toEqual({
      items: [
        { id: DELIVERY, source: 'delivery', session_id: 'ses_d', reason, created_at: created_at(3), replayable: true },
        { id: 'ses_1-event-4', source: 'event', session_id: 'ses_1', reason, created_at: created_at(2), replayable: true },
        { id: 'odd', source: 'command', session_id: null, reason, created_at: created_at(1), replayable: true },
        { id: 'trn_1-1', source: 'call', session_id: 'ses_2', reason, created_at: created_at(0), replayable: false },
      ],
      has_more: false,
      next_cursor: null,
    });
    expect((await list('source=event')).items).toHaveLength(1);
  });

  it('has pages without gap or repeat, also of letters of one instant', async () => {
    for (const id of ['a', 'b', 'c']) for (const source of ['command', 'tool']) await letter(id, source, { atMs: id === 'c' ? 5 : 0 });
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const page = await list(`limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`);
      seen.push(...page.items.map(({ id, source }) => `${id} ${source}`));
      cursor = page.next_cursor;
    }
    expect(seen).toEqual(['c command', 'c tool', 'a command', 'b command', 'a tool', 'b tool']);
  });

  it.each(['limit=0', 'source=usage', 'cursor=x', `cursor=${Buffer.from('deliveries 1 x').toString('base64url')}`])('refuses %s', async (query) => {
    expect((await send(deployment.app(), 'GET', `/dead_letters?${query}`)).statusCode).toBe(400);
  });
});

describe('POST /dead_letters/:dead_letter_id/replay', () => {
  it('opens a dead delivery again and notifies its owner, once though it is sent twice at the same time', async () => {
    await delivery('dead');
    await letter(DELIVERY, 'delivery');
    const app = deployment.app();
    const replies = await Promise.all([replay(DELIVERY, '', app), replay(DELIVERY, '', app)]);

    expect(replies.map(({ statusCode }) => statusCode)).toContain(202);
    expect(replies.find(({ statusCode }) => statusCode === 202)?.json()).toEqual({ id: DELIVERY, source: 'delivery', outcome: 'replayed' });
    const { rows } = await deployment.database.query('select state, attempts, settled_at from deliveries');
    expect(rows).toEqual([{ state: 'open', attempts: 0, settled_at: null }]);
    await until(() => commands().some(({ type }) => type === 'delivery.due'), 'the command');
    expect(commands().filter(({ type }) => type === 'delivery.due')).toMatchObject([{ sessionId: 'ses_d', deliveryId: DELIVERY, answerTo: null }]);
    expect(await letters()).toEqual([]);
    expect((await replay(DELIVERY)).statusCode).toBe(404);
  });

  it('removes the letter of a delivery that was delivered meanwhile, and posts nothing', async () => {
    await delivery('delivered');
    await letter(DELIVERY, 'delivery', { atMs: 9 });
    const before = commands().length;

    expect((await replay(DELIVERY)).json()).toEqual({ id: DELIVERY, source: 'delivery', outcome: 'settled' });
    expect([await letters(), commands().length]).toEqual([[], before]);
  });

  it('has the owner post a dead event again, once though it is sent twice at the same time', async () => {
    await deadEvent();
    await storeEvent();
    const app = deployment.app();
    const replies = await Promise.all([replay(EVENT, '', app), replay(EVENT, '', app)]);

    expect(replies.find(({ statusCode }) => statusCode === 202)?.json()).toEqual({ id: EVENT, source: 'event', outcome: 'replayed' });
    const replays = () => commands().filter(({ type }) => type === 'event-webhook.replay');
    await until(() => replays().length > 0, 'the command');
    expect(replays()).toMatchObject([{ v: 3, sessionId: 'ses_e', offset: 4, url: 'https://receiver.example/', bundleHash: 'h', answerTo: null }]);
    expect(await letters()).toEqual([]);
  });

  it('refuses a dead event that is deleted, and one whose session had no address any more', async () => {
    await deadEvent();
    expect((await replay(EVENT)).statusCode).toBe(404);
    await storeEvent();
    await deployment.database.query('delete from dead_letters');
    await deadEvent('');
    const reply = await replay(EVENT);
    expect([reply.statusCode, reply.json()]).toEqual([409, { error: expect.stringContaining('no event webhook any more'), code: 'conflict' }]);
    expect(await letters()).toEqual([EVENT]);
  });

  it('sends a dead command to its session again, under a new id, without waiting for a reply', async () => {
    const sessionId = 'ses_replayed';
    const command = { v: 1, type: 'session.delete', sessionId, commandId: 'c1', sentAtMs: 0, answerTo: 'gateway', traceparent: null, tag: 'old' };
    await letter('c1', 'command', { p: partitionOf(sessionId), body: JSON.stringify(command) });

    expect((await replay('c1')).statusCode).toBe(202);
    await until(() => commands().some((one) => one.sessionId === sessionId), 'the command');
    expect(commands().filter((one) => one.sessionId === sessionId)).toMatchObject([
      { type: 'session.delete', commandId: expect.stringMatching(/^replay-[0-9a-f]{32}$/), answerTo: null },
    ]);
    expect(await letters()).toEqual([]);
  });

  it.each([
    ['tool', /turn or run has gone on/],
    ['call', /turn or run has gone on/],
  ])('refuses a dead %s by name, and keeps it', async (source, error) => {
    await letter('x', source);
    const reply = await replay('x');
    expect([reply.statusCode, reply.json()]).toEqual([409, { error: expect.stringMatching(error), code: 'conflict' }]);
    expect(await letters()).toEqual(['x']);
  });

  it('refuses a command that no owner could read, and a letter whose delivery is gone', async () => {
    await letter('bad', 'command', { body: 'not JSON' });
    await letter(DELIVERY, 'delivery');
    expect([(await replay('bad')).statusCode, (await replay(DELIVERY)).statusCode, (await letters()).length]).toEqual([409, 404, 2]);
  });

  it('answers 404 for what is unknown, or none of the agent’s', async () => {
    await letter('gen-1', 'usage', { p: null });
    for (const id of ['gen-1', 'unknown', 'nul\0', 'x'.repeat(600)]) expect((await replay(id)).statusCode).toBe(404);
    expect((await replay('gen-1', '?source=command')).statusCode).toBe(404);
  });

  it('DESIGN 6: keeps the letter of a replay that has failed before its request ends', async () => {
    await deadEvent();
    await storeEvent();
    const append: typeof deployment.bus.commands.append = async (...command) => {
      const stored = await deployment.bus.commands.append(...command);
      await letter(EVENT, 'event', { atMs: 5, body: JSON.stringify({ v: 1, sessionId: 'ses_e', offset: 4, url: '', bundleHash: 'h' }) });
      return stored;
    };
    const app = deployment.app({ bus: { ...deployment.bus, commands: { ...deployment.bus.commands, append } } });

    expect((await replay(EVENT, '', app)).statusCode).toBe(202);
    const { rows } = await deployment.database.query<{ created_at: Date }>('select created_at from dead_letters');
    expect(rows).toEqual([{ created_at: new Date(1_700_000_000_005) }]);
  });

  it.each([
    ['removed the letter', true, 20],
    ['not removed the letter yet', false, 30],
  ])('DESIGN 6: opens no delivery for a letter whose replay has failed meanwhile: the other request has %s', async (_case, isRemoved, atMs) => {
    await delivery('dead');
    await letter(DELIVERY, 'delivery', { atMs });
    const deadLetterRows = new DeadLetterRows(deployment.database);
    const [stale = expect.fail('there is no letter')] = await deadLetterRows.find(DELIVERY);
    await replay(DELIVERY);
    await deployment.database.query(`update deliveries set state = 'dead', attempts = 5, settled_at = now()`);
    if (!isRemoved) await letter(DELIVERY, 'delivery', { atMs });
    await letter(DELIVERY, 'delivery', { atMs: atMs + 5 });

    const { bus } = deployment;
    await expect(replayDeadLetter(stale, { deadLetterRows, bus, clock: systemClock })).rejects.toMatchObject({ code: 'request.not_found' });
    expect((await deployment.database.query('select state from deliveries')).rows).toEqual([{ state: 'dead' }]);
    expect((await letters()).length).toBe(isRemoved ? 1 : 2);
    const { lastSequence } = await bus.commands.state();
    expect((await replay(DELIVERY)).statusCode).toBe(202);
    expect((await bus.commands.state()).lastSequence).toBe(lastSequence + 1);
    expect([(await deployment.database.query('select state from deliveries')).rows, await letters()]).toEqual([[{ state: 'open' }], []]);
  });

  it('goes on with a replay that ended before its command', async () => {
    await delivery('dead');
    await letter(DELIVERY, 'delivery', { atMs: 11 });
    const append = () => Promise.reject(new Error('the broker is away'));
    const failing = deployment.app({ bus: { ...deployment.bus, commands: { ...deployment.bus.commands, append } as never } });
    expect((await replay(DELIVERY, '', failing)).statusCode).toBe(500);
    const { lastSequence } = await deployment.bus.commands.state();

    expect((await replay(DELIVERY)).json()).toEqual({ id: DELIVERY, source: 'delivery', outcome: 'replayed' });
    expect((await deployment.bus.commands.state()).lastSequence).toBe(lastSequence + 1);
    expect(await letters()).toEqual([]);
  });

  it('keeps the dead letter when the command can not be stored', async () => {
    await delivery('dead');
    await letter(DELIVERY, 'delivery', { atMs: 77 });
    const append = () => Promise.reject(new Error('the broker is away'));
    const app = deployment.app({ bus: { ...deployment.bus, commands: { ...deployment.bus.commands, append } as never } });

    expect((await replay(DELIVERY, '', app)).statusCode).toBe(500);
    expect(await letters()).toEqual([DELIVERY]);
  });
});
