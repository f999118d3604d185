import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { eventWork } from '#bus/messages/event-delivery.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { type ReplayDeps, replayDeadLetter } from './replay-dead-letter.ts';

const LETTER = 'ses_1-event-4';
const URL = 'https://receiver.example/events';

let database: Database;
let published: { kind: string; messageId: string; body: string }[];
let isRefusing: boolean;

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
});
afterAll(() => database.close());
beforeEach(async () => {
  [published, isRefusing] = [[], false];
  await database.query('delete from dead_letters');
  await database.query('delete from events');
});

function replay(onPublished = async () => {}) {
  const publish = async (kind: string, messageId: string, body: string) => {
    if (isRefusing) throw new Error('the broker is away');
    published.push({ kind, messageId, body });
    await onPublished();
  };
  const bus = { work: { publish } } as unknown as ReplayDeps['bus'];
  const openTags = () => expect.fail('no command is sent');
  return replayDeadLetter(LETTER, null, { database, bus, openTags, clock: systemClock });
}

async function storeLetter(url = URL): Promise<void> {
  const body = JSON.stringify({ v: 1, sessionId: 'ses_1', offset: 4, url, bundleHash: 'bundle' });
  await database.query(`insert into dead_letters (id, p, source, reason, body, created_at) values ($1, 1, 'event', 'r', $2, now())`, [LETTER, body]);
}

async function storeEvent(): Promise<void> {
  await database.query(
    `insert into events (session_id, off, id, kind, source, trace_id, body, created_at) values ('ses_1', 4, 'evt', 'status', 'system', 't', '{}', now())`,
  );
}

const letters = async () => (await database.query('select id from dead_letters')).rows.length;

it('posts a dead event again, alone, and removes its dead letter', async () => {
  await storeLetter();
  await storeEvent();
  const replayed = await replay();

  expect(replayed).toEqual({ type: 'event', effectId: expect.stringMatching(/^ses_1-event-4-replay-[0-9A-Z]{26}$/) });
  expect(published).toHaveLength(1);
  const [{ kind, messageId, body } = expect.fail('nothing was published')] = published;
  expect({ kind, messageId }).toEqual({ kind: 'delivery', messageId: 'effectId' in replayed ? replayed.effectId : '' });
  expect(eventWork.parse(JSON.parse(body))).toMatchObject({ sessionId: 'ses_1', url: URL, bundleHash: 'bundle', kinds: null, fromOffset: 4, toOffset: 5 });
  expect(await letters()).toBe(0);
});

it('keeps the dead letter when the queue refuses the item', async () => {
  await storeLetter();
  await storeEvent();
  isRefusing = true;

  await expect(replay()).rejects.toThrow('the broker is away');
  expect(await letters()).toBe(1);
});

it('refuses an event that is deleted, and one whose session had no address any more', async () => {
  await storeLetter();
  await expect(replay()).rejects.toMatchObject({ code: 'request.not_found' });
  await storeEvent();
  await database.query('delete from dead_letters');
  await storeLetter('');
  await expect(replay()).rejects.toMatchObject({ code: 'request.invalid' });
  expect(published).toEqual([]);
});

it('leaves the letter of a replay that has failed before its command line ends', async () => {
  await storeLetter();
  await storeEvent();
  await replay(storeLetter);

  expect([published.length, await letters()]).toEqual([1, 1]);
});
