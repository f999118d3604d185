import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { partitionOf } from '#bus/partition.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import { hashOfSecret } from '#shared/keys/caller-key.ts';
import { modelKeys } from '#shared/keys/file-keys.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { startRouterWorker } from './service.ts';
import { recordedLog } from './test-support/recorded-log.ts';

const WAIT = { timeout: 60_000 };
const SESSION = 'ses_1';
const SECRET = 'sk-of-the-agent';
const prices = { prompt: '1', completion: '2', request: '0.01' };
const config = routerConfig.parse({
  providers: [{ slug: 'local', name: 'Local', kind: 'scripted' }],
  models: [
    { id: 'scripted/assistant', endpoints: [{ provider: 'local', upstream_model: 'primary', prices, max_completion_tokens: 1_000 }] },
    { id: 'scripted/unpriced', endpoints: [{ provider: 'local', upstream_model: 'unpriced' }] },
  ],
  plugins: { file_parser: { ocr: { name: 'acme-ocr', url: 'http://127.0.0.1:9/', price: '0.0001' } } },
  keys: [{ id: 'agent', name: 'The agent', key: '${AGENT}', limit: '0.025' }],
});

let database: Database;
let bus: Bus;
let worker: { stop(): Promise<void> };
let recorded: ReturnType<typeof recordedLog>;
/** Records are stored once it is resolved. */
let held: Promise<void>;
/** Of the next statements that reserve. */
let fault: Error | null;
/** Calls whose reservations were released. */
let released: unknown[];

beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  [held, fault, released] = [Promise.resolve(), null, []];
  for (const table of ['reservations', 'key_spend', 'usage_ledger', 'effects']) await database.query(`delete from ${table}`);
  const real = await openMemoryBus({ database, clock: systemClock });
  bus = {
    ...real,
    usage: {
      consume: (...args) => real.usage.consume(...args),
      backlog: () => real.usage.backlog(),
      append: (...args) => held.then(() => real.usage.append(...args)),
    },
  };
  recorded = recordedLog();
  const query: Database['query'] = async (statement, parameters) => {
    if (fault !== null && typeof statement !== 'string' && statement.name === 'reserve-calls') throw fault;
    if (typeof statement !== 'string' && statement.name === 'release-calls') released.push(...((parameters?.[0] ?? []) as unknown[]));
    return database.query(statement, parameters);
  };
  const faulty: Database = { query, transaction: database.transaction.bind(database), close: async () => {} };
  const fileKeys = modelKeys(config, { AGENT: SECRET });
  worker = await startRouterWorker({ config, environment: {}, bus, database: faulty, cache: null, fileKeys, log: recorded.log, clock: systemClock });
});
afterEach(async () => {
  await worker.stop();
  await bus.close();
});

async function publish(fields: Partial<RouterCall> = {}): Promise<string> {
  const nowMs = systemClock.nowMs();
  const call: RouterCall = {
    ...{ v: 1, callId: `call_${ulid()}`, origin: SESSION, want: 'none', surface: 'parts', deadlineAtMs: nowMs + 60_000, createdAtMs: nowMs },
    ...{ detached: false, republished: false, keyId: `sha256:${hashOfSecret(SECRET)}`, traceparent: null, maxTokens: 100_000 },
    request: { messages: [{ role: 'user', content: 'Hello!' }] },
    reply: { sessionId: SESSION, ...actorFields('trn_1') },
    ...fields,
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

const rowsOf = async (text: string) => (await database.query<Record<string, unknown>>(text)).rows;
const reservations = () => rowsOf('select call_id, key_id, amount_nano from reservations');

it('a call of an actor reserves the most that it may cost before it is made, and the ledger settles it', async () => {
  let store = () => {};
  held = new Promise<void>((resolve) => {
    store = resolve;
  });
  const callId = await publish();
  // 2 tokens of the prompt, the endpoint's 1,000 of the completion, and a cent.
  await vi.waitFor(async () => expect(await reservations()).toEqual([{ call_id: callId, key_id: 'agent', amount_nano: 2_000 + 2_000_000 + 10_000_000 }]), WAIT);
  store();
  expect(await commandOf(callId)).toMatchObject({ type: 'call.completed' });
  await vi.waitFor(
    async () => expect(await rowsOf('select generation_id, key_id from usage_ledger')).toEqual([{ generation_id: callId, key_id: 'agent' }]),
    WAIT,
  );
  await vi.waitFor(async () => expect(await reservations()).toEqual([]), WAIT);
});

it('a call of an actor whose key has no credit left fails without an attempt, and the log has the label', async () => {
  await database.query(`insert into key_spend (key_id, total_nano, day, week, month) values ('agent', 20000000, now(), now(), now())`);
  const callId = await publish();
  expect(await commandOf(callId)).toMatchObject({ type: 'call.failed', failure: { code: 'router.payment_required' } });
  const of = recorded.lines.filter(({ fields }) => fields.call_id === callId);
  expect(of).toContainEqual(expect.objectContaining({ level: 'error', fields: expect.objectContaining({ key_label: 'The agent' }) as object }));
  expect(of).toContainEqual(expect.objectContaining({ fields: expect.objectContaining({ code: 'router.payment_required', attempts: 0 }) as object }));
  expect(await reservations()).toEqual([]);
});

it('a call of an actor waits while no credit can be reserved, and ends when it is cancelled meanwhile', async () => {
  fault = new SwitchyardError('service.unreachable', 'no connection');
  const [callId, cancelled] = [await publish(), await publish()];
  await vi.waitFor(() => expect(recorded.lines.map(({ message }) => message)).toContain('credit could not be reserved: the calls are refused'), WAIT);
  bus.notices.publish(subjectOf(addresses.control, cancelled), '{"abort":true}');
  await vi.waitFor(async () => expect(await rowsOf(`select message_id from bus_work where message_id = '${cancelled}'`)).toEqual([]), WAIT);
  const recordOf = `select cost_nano from usage_ledger where generation_id = '${cancelled}'`;
  await vi.waitFor(async () => expect(await rowsOf(recordOf)).toEqual([{ cost_nano: 0 }]), { timeout: 60_000 });
  fault = null;
  expect(await commandOf(callId)).toMatchObject({ type: 'call.completed' });
  // A statement without an answer may have reserved for it.
  await vi.waitFor(() => expect(released).toEqual([cancelled]), WAIT);
});

it('a call of an actor reserves the pages that an engine may read for it: 500 of each file', async () => {
  const file = { type: 'file' as const, file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA' } };
  const plugins = [{ id: 'file-parser' as const, pdf: { engine: 'acme-ocr' } }];
  const callId = await publish({ request: { messages: [{ role: 'user', content: [file] }], plugins } });
  expect(await commandOf(callId)).toMatchObject({ type: 'call.failed', failure: { code: 'router.payment_required' } });
  expect(await reservations()).toEqual([]);
});

it('a call of an actor under a key with a limit is served by no endpoint without prices', async () => {
  const callId = await publish({ request: { messages: [{ role: 'user', content: 'Hello!' }], model: 'scripted/unpriced' } });
  expect(await commandOf(callId)).toMatchObject({ type: 'call.failed', failure: { code: 'router.no_provider' } });
});
