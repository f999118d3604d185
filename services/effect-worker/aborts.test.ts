import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { openHandMadeServer, type ToolServerDouble } from './test-support/tool-server-doubles.ts';
import { callItem, listItem, WAIT, WorkerDeployment } from './test-support/worker-deployment.ts';
import { isClaimed } from './tools/claims.ts';

/** Concurrent calls per server. */
const SLOTS = 16;
const DONE = { content: [{ type: 'text', text: 'done' }] };

let database: Database;
let bus: Bus;
let deployment: WorkerDeployment;
let server: ToolServerDouble;
let bundleHash: string;
/** Responders of the slow tool's calls, in order. */
let answers: (() => void)[];
let listsTools: boolean;

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
});
afterAll(() => database.close());

beforeEach(async () => {
  answers = [];
  listsTools = true;
  bus = await openMemoryBus({ database, clock: systemClock });
  deployment = await WorkerDeployment.open({ database, bus });
  server = await openHandMadeServer((message, response) => {
    if (message.method === 'tools/list') return listsTools ? { tools: [] } : undefined;
    if (message.method !== 'tools/call') return undefined;
    if (message.params.name === 'quick') return DONE;
    answers.push(() => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: DONE })));
    return undefined;
  });
  bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
});
afterEach(async () => {
  await deployment.close();
  await server.close();
  await bus.close();
  await database.query('delete from bundles');
});

const start = () => deployment.start({ kinds: ['tool'], drainTimeoutMs: 50 });
const callsMade = () => server.messages('tools/call').length;
const abort = (effectId: string) => bus.notices.publish(subjectOf(addresses.control, effectId), '{"abort":true}');

async function call(tool: 'slow' | 'quick', { repeatable }: { repeatable: boolean }) {
  return callItem(bundleHash, await deployment.toolList([{ name: tool, repeatable }]), `shop:${tool}`);
}

/** A later effect is reported and this one is not, so it never will be. */
async function neverReported(effectId: string): Promise<void> {
  await deployment.gone(effectId);
  const later = await call('quick', { repeatable: true });
  await deployment.publish('tool', later);
  await deployment.reportOf('tool.completed', later.effectId);
  expect(deployment.commands.map(({ commandId }) => commandId)).not.toContain(effectId);
}

it('ends a call that may be repeated, notifies its server, and reports nothing', async () => {
  await start();
  const item = await call('slow', { repeatable: true });
  await deployment.publish('tool', item);
  await vi.waitFor(() => expect(callsMade()).toBe(1), WAIT);
  abort(item.effectId);

  await vi.waitFor(() => expect(server.messages('notifications/cancelled')).toHaveLength(1), WAIT);
  await neverReported(item.effectId);
  expect(deployment.lines.join()).not.toContain('a tool call has failed');
});

it('DESIGN 5: an aborted call that has begun and has side effects settles first, and its outcome is reported', async () => {
  await start();
  const item = await call('slow', { repeatable: false });
  await deployment.publish('tool', item);
  await vi.waitFor(() => expect(callsMade()).toBe(1), WAIT);
  abort(item.effectId);
  // Notices arrive in order: this call's end shows that the abort has arrived, too.
  const other = await call('slow', { repeatable: true });
  await deployment.publish('tool', other);
  await vi.waitFor(() => expect(callsMade()).toBe(2), WAIT);
  abort(other.effectId);
  await deployment.gone(other.effectId);
  for (const answer of answers) answer();

  expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'result', data: 'done' });
  await vi.waitFor(() => expect(server.messages('notifications/cancelled')).toHaveLength(1), WAIT);
});

it.each([true, false])('does not begin a call whose abort came before it, be it repeatable (%s) or not', async (repeatable) => {
  await start();
  const item = await call('slow', { repeatable });
  abort(item.effectId);
  await deployment.publish('tool', item);

  await neverReported(item.effectId);
  expect(server.messages('tools/call').map(({ params }) => params.name)).toEqual(['quick']);
});

it('does not begin, nor claim, a call that was still waiting for its turn', async () => {
  await start();
  for (const item of await Promise.all(Array.from({ length: SLOTS }, () => call('slow', { repeatable: true })))) await deployment.publish('tool', item);
  await vi.waitFor(() => expect(callsMade()).toBe(SLOTS), WAIT);
  const waiting = await call('slow', { repeatable: false });
  await deployment.publish('tool', waiting);
  // Its list is read right before it waits for a slot.
  await vi.waitFor(() => expect(deployment.queries.filter((name) => /list/.test(name)).length).toBeGreaterThan(SLOTS), WAIT);
  abort(waiting.effectId);
  await deployment.gone(waiting.effectId);
  for (const answer of answers) answer();

  await neverReported(waiting.effectId);
  expect(callsMade()).toBe(SLOTS + 1);
  expect(await isClaimed(database, waiting.effectId)).toBe(false);
});

it('ends a request for lists that are not awaited any more', async () => {
  listsTools = false;
  await start();
  const item = listItem(bundleHash, ['shop']);
  await deployment.publish('tool', item);
  await vi.waitFor(() => expect(server.messages('tools/list').length).toBeGreaterThan(0), WAIT);
  abort(item.effectId);

  await neverReported(item.effectId);
});
