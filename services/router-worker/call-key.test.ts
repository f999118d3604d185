import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { partitionOf } from '#bus/partition.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { LivingValue } from '#shared/config/living.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import { type CallerKey, hashOfSecret } from '#shared/keys/caller-key.ts';
import { modelKeys } from '#shared/keys/file-keys.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { startRouterWorker } from './service.ts';
import { recordedLog } from './test-support/recorded-log.ts';

const WAIT = { timeout: 60_000 };
/** Less than a row is cached for without a notice. */
const BEFORE_EXPIRY = { timeout: 9_000 };
const SESSION = 'ses_1';
const SECRET = 'sk-of-the-agent';
const REFERENCE = `sha256:${hashOfSecret(SECRET)}`;
const config = routerConfig.parse({
  providers: [{ slug: 'local', name: 'Local', kind: 'scripted' }],
  models: [{ id: 'scripted/assistant', endpoints: [{ provider: 'local', upstream_model: 'primary' }] }],
  keys: [
    { id: 'support', name: 'Support', key: '${SUPPORT}' },
    { id: 'off', name: 'Of last year', key: '${OFF}', disabled: true },
    { id: 'manager', key: '${MANAGEMENT}', management: true },
  ],
});
const environment = { SUPPORT: 'sk-support', OFF: 'sk-off', MANAGEMENT: 'sk-management' };

let database: Database;
let bus: Bus;
let fileKeys: LivingValue<ReadonlyMap<string, CallerKey>>;
let worker: { stop(): Promise<void> };
let recorded: ReturnType<typeof recordedLog>;
/** Of the database's next statements about keys. */
let fault: Error | null = null;

beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  fault = null;
  await database.query('delete from router_keys');
  bus = await openMemoryBus({ database, clock: systemClock });
  recorded = recordedLog();
  const query: Database['query'] = async (statement, parameters) => {
    if (fault !== null && typeof statement !== 'string' && statement.name === 'router-keys-by-hash') throw fault;
    return database.query(statement, parameters);
  };
  const faulty: Database = { query, transaction: database.transaction.bind(database), close: async () => {} };
  fileKeys = new LivingValue(modelKeys(config, environment));
  const deps = { config, environment: {}, bus, database: faulty, cache: null, fileKeys, log: recorded.log, clock: systemClock };
  worker = await startRouterWorker(deps);
});
afterEach(async () => {
  await worker.stop();
  await bus.close();
});

async function insertKey(fields: Record<string, unknown> = {}): Promise<void> {
  const row = { id: 'key_1', hash: hashOfSecret(SECRET), name: 'agent', label: 'sk-sy-v1-abc...123', made_by: 'management', ...fields };
  const places = Object.keys(row).map((_, index) => `$${index + 1}`);
  await database.query(`insert into router_keys (${Object.keys(row).join(', ')}) values (${places.join(', ')})`, Object.values(row));
}

async function publish(keyId: string): Promise<string> {
  const nowMs = systemClock.nowMs();
  const call: RouterCall = {
    ...{ v: 1, callId: `call_${ulid()}`, origin: SESSION, want: 'none', surface: 'parts', deadlineAtMs: nowMs + 60_000, createdAtMs: nowMs },
    ...{ detached: false, republished: false, keyId, traceparent: null, maxTokens: null },
    request: { messages: [{ role: 'user', content: 'Hello!' }] },
    reply: { sessionId: SESSION, ...actorFields('trn_1') },
  };
  await bus.work.publish('router.turn', call.callId, JSON.stringify(call));
  return call.callId;
}

async function commandOf(callId: string): Promise<unknown> {
  const found: string[] = [];
  const reading = bus.commands.read(partitionOf(SESSION), { sequence: 0, fingerprint: null }, async (commands) => {
    for (const { messageId, body } of commands) if (messageId === callId) found.push(body);
  });
  await vi.waitFor(() => expect(found).not.toHaveLength(0), WAIT);
  await reading.stop();
  return JSON.parse(found[0] ?? '');
}

const linesOf = (callId: string, message: RegExp) => recorded.lines.filter((line) => message.test(line.message) && line.fields.call_id === callId);

it.each([
  ['of the file', async () => {}, `sha256:${hashOfSecret('sk-support')}`, 'support'],
  ['of a row', () => insertKey(), REFERENCE, 'key_1'],
  ['that a host of the release before names by its place in the manifest', async () => {}, 'llms.api_key', 'llms.api_key'],
])('a call of an actor under a key %s is executed, and its line has the id of the key', async (_, prepare, keyId, id) => {
  await prepare();
  const callId = await publish(keyId);

  expect(await commandOf(callId)).toMatchObject({ type: 'call.completed' });
  expect(linesOf(callId, /has ended/)).toMatchObject([{ fields: { key_id: id, finish: 'stop' } }]);
});

it.each([
  ['unknown', async () => {}, REFERENCE, null, 'is not known to the router'],
  ['disabled', () => insertKey({ disabled: true }), REFERENCE, 'sk-sy-v1-abc...123', 'is disabled'],
  ['expired', () => insertKey({ expires_at: '2020-01-01T00:00:00Z' }), REFERENCE, 'sk-sy-v1-abc...123', 'has expired'],
  ['made by OAuth and expired', () => insertKey({ expires_at: '2020-01-01', made_by: 'oauth' }), REFERENCE, 'sk-sy-v1-abc...123', 'its OAuth session is over'],
  ['a management key', () => insertKey({ management: true }), REFERENCE, 'sk-sy-v1-abc...123', 'is a management key, which calls no model'],
  ['disabled in the file', async () => {}, `sha256:${hashOfSecret('sk-off')}`, 'Of last year', 'is disabled'],
  ['a management key of the file', async () => {}, `sha256:${hashOfSecret('sk-management')}`, null, 'is not known to the router'],
])('a call of an actor under a key that is %s fails, and the log has the label', async (_, prepare, keyId, label, words) => {
  await prepare();
  const callId = await publish(keyId);

  expect(await commandOf(callId)).toMatchObject({
    type: 'call.failed',
    failure: { code: 'router.key_refused', message: expect.stringContaining(words) as string },
  });
  expect(linesOf(callId, /llms\.api_key/)).toMatchObject([{ level: 'error', fields: { key_label: label }, message: expect.stringContaining(words) as string }]);
  expect(linesOf(callId, /has ended/)).toMatchObject([{ fields: { code: 'router.key_refused', attempts: 0 } }]);
  expect(JSON.stringify(recorded.lines)).not.toContain(SECRET);
});

it('a call of an actor is executed under the keys of the file as they are when it begins', async () => {
  const before = await publish(`sha256:${hashOfSecret('sk-support')}`);
  expect(await commandOf(before)).toMatchObject({ type: 'call.completed' });
  fileKeys.replace(modelKeys(config, { ...environment, SUPPORT: 'sk-rotated' }));

  expect(await commandOf(await publish(`sha256:${hashOfSecret('sk-support')}`))).toMatchObject({
    type: 'call.failed',
    failure: { code: 'router.key_refused' },
  });
  expect(await commandOf(await publish(`sha256:${hashOfSecret('sk-rotated')}`))).toMatchObject({ type: 'call.completed' });
});

it('a call whose key cannot be looked up waits for the database', async () => {
  await insertKey();
  fault = new SwitchyardError('service.unreachable', 'no connection');
  const callId = await publish(REFERENCE);
  await vi.waitFor(() => expect(recorded.lines.map(({ message }) => message)).toContainEqual(expect.stringMatching(/^keys cannot be looked up/)), WAIT);
  fault = null;

  expect(await commandOf(callId)).toMatchObject({ type: 'call.completed' });
});

it('a notice of a change ends what is cached', async () => {
  await insertKey();
  await commandOf(await publish(REFERENCE));
  await database.query('update router_keys set disabled = true');
  bus.notices.publish(subjectOf(addresses.keys, hashOfSecret(SECRET)), '');

  await vi.waitFor(async () => expect(await commandOf(await publish(REFERENCE))).toMatchObject({ type: 'call.failed' }), BEFORE_EXPIRY);
});
