import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { freePort } from '../test-support/http-double.ts';
import { openSdkToolServer, type SdkToolServer } from '../test-support/tool-server-doubles.ts';
import { SESSION, WorkerDeployment } from '../test-support/worker-deployment.ts';

let database: Database;
let bus: Bus;
let deployment: WorkerDeployment;
let server: SdkToolServer;
/** What the tool answers. */
let answer: { content: { type: 'text'; text: string }[]; isError?: boolean };

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
  await database.query(`insert into customers (id, name, created_at, updated_at) values ('ada', 'Ada', now(), now())`);
  const text = { content: [{ type: 'text' as const, text: 'unset' }] };
  server = await openSdkToolServer((tools) => {
    tools.registerTool('plan', { inputSchema: { customer_id: z.string() }, annotations: { readOnlyHint: true } }, async () => answer);
    tools.registerTool('plain', { annotations: { idempotentHint: true } }, async () => answer);
    tools.registerTool('order', { inputSchema: {} }, async () => text);
  });
});
afterAll(async () => {
  await server.close();
  await database.close();
});
beforeEach(async () => {
  bus = await openMemoryBus({ database, clock: systemClock });
  deployment = await WorkerDeployment.open({ database, bus });
  answer = { content: [{ type: 'text', text: 'gold' }] };
  server.received.splice(0);
});
afterEach(async () => {
  await deployment.close();
  await bus.close();
  await database.query('delete from bundles');
  await database.query('delete from variable_values');
});

interface Fetched {
  tool?: string;
  customerId?: string;
  valueType?: string;
  writtenAtMs?: number | null;
  port?: number;
}

/** Has a value fetched. @returns the item's id, once it is over */
async function fetched(fields: Fetched = {}): Promise<string> {
  const item = await itemOf(fields);
  await deployment.start({ kinds: ['tool'] });
  await deployment.publish('tool', item);
  await deployment.gone(item.effectId);
  return item.effectId;
}

async function itemOf({ tool = 'plan', port = server.port, ...fields }: Fetched = {}) {
  const bundleHash = await deployment.bundle([{ id: 'crm', port }]);
  const effectId = `var_${ulid()}`;
  const nowMs = systemClock.nowMs();
  const times = { createdAtMs: nowMs, deadlineAtMs: nowMs + 30_000, republished: false, traceparent: null };
  const value = { name: 'level', customerId: 'ada', valueType: 'string', writtenAtMs: null, toolId: `crm:${tool}`, ...fields };
  return { v: 3, type: 'variable', effectId, sessionId: SESSION, actorId: 'trn_1', turnId: 'trn_1', bundleHash, ...times, ...value };
}

async function stored(): Promise<unknown[]> {
  const { rows } = await database.query<{ data: unknown }>(`select data from variable_values where name = 'level'`);
  return rows.map(({ data }) => data);
}

it.each([
  ['plan', { customer_id: 'ada' }],
  ['plain', {}],
])('rule 97: a value is fetched by %s and stored for the customer, without a report', async (tool, given) => {
  const effectId = await fetched({ tool });

  expect(await stored()).toEqual(['gold']);
  expect(server.messages('tools/call').map(({ params }) => params['arguments'] ?? {})).toEqual([given]);
  expect(deployment.commands.filter(({ commandId }) => commandId === effectId)).toEqual([]);
});

it('rule 97: a value takes the place of the stale one, and a second time changes nothing', async () => {
  await database.query(`insert into variable_values (key, name, data, updated_at) values ('ada', 'level', '"old"', '2026-01-01T00:00:00Z')`);
  const writtenAtMs = Date.parse('2026-01-01T00:00:00Z');
  await fetched({ writtenAtMs });
  expect(await stored()).toEqual(['gold']);
  answer = { content: [{ type: 'text', text: 'silver' }] };
  await fetched({ writtenAtMs });

  expect(await stored()).toEqual(['gold']);
});

it.each([null, Date.parse('2026-01-01T00:00:00Z')])('DESIGN 5: rule 97: a value that was written meanwhile stays (before: %s)', async (writtenAtMs) => {
  await database.query(`insert into variable_values (key, name, data, updated_at) values ('ada', 'level', '"set"', now())`);
  await fetched({ writtenAtMs });

  expect(await stored()).toEqual(['set']);
});

it('rule 97: nothing is stored for a customer that does not exist', async () => {
  await fetched({ customerId: 'gone' });

  expect(server.messages('tools/call')).toHaveLength(1);
  expect(await stored()).toEqual([]);
});

it('rule 97: a tool that may change something is not called', async () => {
  await fetched({ tool: 'order' });

  expect(server.messages('tools/call')).toEqual([]);
  expect(await stored()).toEqual([]);
});

it.each([
  ['an error', () => ({ content: [{ type: 'text' as const, text: 'broken' }], isError: true }), 'string'],
  ['another type', () => ({ content: [{ type: 'text' as const, text: '{"a":1}' }] }), 'string'],
  ['a number that cannot be kept exactly', () => ({ content: [{ type: 'text' as const, text: '{"id":9007199254740993}' }] }), 'object'],
  ['no list', () => ({ content: [{ type: 'text' as const, text: '{"a":1}' }] }), 'array'],
])('rule 98: the value stays when the tool answers with %s', async (_, of, valueType) => {
  answer = of();
  await fetched({ valueType });

  expect(server.messages('tools/call')).toHaveLength(1);
  expect(await stored()).toEqual([]);
});

it('rule 98: the value stays when the server can not be reached', async () => {
  await fetched({ port: await freePort() });

  expect(await stored()).toEqual([]);
});

it('rule 98: what a worker had begun when it died is not fetched again: a later turn requests it', async () => {
  const item = await itemOf();
  await deployment.crashWith('tool', item);
  await deployment.start({ kinds: ['tool'] });
  await deployment.gone(item.effectId);

  expect(server.messages('tools/call')).toEqual([]);
  expect(deployment.commands.filter(({ commandId }) => commandId === item.effectId)).toEqual([]);
});
