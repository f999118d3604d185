import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { partitionOf } from '#bus/partition.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { seriesOf } from '#shared/telemetry/series-of.ts';
import { freePort, type HttpDouble, openHttpDouble, type ReceivedRequest } from '../test-support/http-double.ts';
import { SESSION, searchItem, TOOL_KEY, WorkerDeployment } from '../test-support/worker-deployment.ts';

let database: Database;
let bus: Bus;
let deployment: WorkerDeployment;
let service: HttpDouble;
let metrics: ReturnType<typeof openMetrics>;
/** How the service answers. */
let onSearch: (response: ServerResponse, request: ReceivedRequest) => void;

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
  const record = { customer_id: 'cus_1', metadata: { shop: 'Berlin' } };
  await database.query(
    `insert into sessions (id, p, head, machine_v, snapshot, record, customer_id, created_at, updated_at) values ($1, $2, 0, 1, '{}', $3::json, 'cus_1', now(), now())`,
    [SESSION, partitionOf(SESSION), JSON.stringify(record)],
  );
});
afterAll(() => database.close());

beforeEach(async () => {
  bus = await openMemoryBus({ database, clock: systemClock });
  deployment = await WorkerDeployment.open({ database, bus });
  service = await openHttpDouble((request, response) => onSearch(response, request));
  metrics = openMetrics();
  await deployment.start({ kinds: ['tool'] }, { metrics });
});
afterEach(async () => {
  await deployment.close();
  await service.close();
  await bus.close();
  await database.query('delete from bundles');
});

describe('a search at an external service', () => {
  it('rule 75: posts query, messages and ids with the bearer, and passes on what it answers', async () => {
    onSearch = answering({ results: [{ content: 'Two years.', score: 0.9, id: 'a', title: 'Warranty', url: 'https://shop.example/w', metadata: { x: 1 } }] });
    const messages = [{ role: 'user' as const, text: 'And hoses?', createdAt: '2026-01-01T00:00:00.000Z' }];

    expect(await search({ messages }, { api_key: '${TOOL_API_KEY}', top_k: 3 })).toEqual(
      found([{ content: 'Two years.', title: 'Warranty', url: 'https://shop.example/w' }]),
    );
    const [request] = service.received;
    expect([request?.method, request?.url, request?.headers.authorization]).toEqual(['POST', '/find?in=docs', `Bearer ${TOOL_KEY}`]);
    expect(JSON.parse(String(request?.body))).toEqual({
      ...{ query: 'warranty of hoses', top_k: 3, session_id: SESSION, customer_id: 'cus_1', metadata: { shop: 'Berlin' } },
      messages: [{ role: 'user', text: 'And hoses?', created_at: '2026-01-01T00:00:00.000Z' }],
    });
  });

  it('rule 75: sends no bearer without a key, and nothing at all without a query', async () => {
    onSearch = answering({ results: [] });
    expect(await search({ query: '' })).toEqual(found([]));
    expect(service.received).toEqual([]);
    await search();
    expect(service.received[0]?.headers).not.toHaveProperty('authorization');
  });

  it('rule 75: takes a bare array, leaves out what has no text, and no more than top_k', async () => {
    onSearch = answering([{ content: 'a' }, { text: 'b' }, 'c', { content: ' ' }, { content: 'd', title: 7, url: null }, { content: 'e' }]);
    expect(await search({}, { top_k: 2 })).toEqual(found([document('a'), document('d')]));
  });

  it('rule 76: keeps the best documents of 32 KiB, and of the first as much as fits', async () => {
    const kibibytes = (count: number) => 'x'.repeat(count * 1024);
    onSearch = answering({ results: [{ content: kibibytes(20) }, { content: kibibytes(11) }, { content: kibibytes(2) }, { content: 'y' }] });
    expect(await search()).toEqual(found([document(kibibytes(20)), document(kibibytes(11))]));

    onSearch = answering({ results: [{ content: 'é'.repeat(40 * 1024) }, { content: 'y' }] });
    const [first, ...others] = documentsOf(await search());
    expect(others).toEqual([]);
    expect(Buffer.byteLength(JSON.stringify(first))).toBeGreaterThan(32 * 1024 - 4);
    expect(Buffer.byteLength(JSON.stringify(first))).toBeLessThanOrEqual(32 * 1024);
  });

  it.each([
    ['500', 'unreachable', (response: ServerResponse) => response.writeHead(500).end('trace')],
    ['401', 'auth_failed', (response: ServerResponse) => response.writeHead(401).end()],
    ['404', 'refused', (response: ServerResponse) => response.writeHead(404).end()],
    ['a redirect', 'refused', (response: ServerResponse) => response.writeHead(307, { location: '/elsewhere' }).end()],
    ['HTML', 'refused', (response: ServerResponse) => response.writeHead(200).end('<html>')],
    ['an object of another form', 'refused', (response: ServerResponse) => response.writeHead(200).end('{"hits":[]}')],
    ['2 MiB', 'refused', (response: ServerResponse) => response.writeHead(200).end(`[${'1,'.repeat(1024 * 1024)}1]`)],
    ['half of it', 'unreachable', (response: ServerResponse) => response.writeHead(200, { 'content-length': '100' }).write('{"res', () => response.destroy())],
  ])('rule 72: fails, counted, when the service answers %s', async (_, reason, answer) => {
    onSearch = answer;
    expect(await search()).toMatchObject({ type: 'failed', reason });
    expect(service.received).toHaveLength(1);
    expect(seriesOf(await metrics.text(), 'switchyard_searches_total').filter((line) => !line.endsWith(' 0'))).toEqual([`{outcome="${reason}"} 1`]);
    expect(deployment.lines.join('\n')).toContain('a search has failed');
  });

  it('rule 72: fails without a service, and after the time that its turn gives it', async () => {
    const port = await freePort();
    expect(await search({}, { port })).toMatchObject({ type: 'failed', reason: 'unreachable' });
    onSearch = () => {};
    expect(await search({ deadlineAtMs: systemClock.nowMs() + 100 })).toMatchObject({ type: 'failed', reason: 'timeout' });
    expect(await search({ deadlineAtMs: systemClock.nowMs() - 1 })).toMatchObject({ type: 'failed', reason: 'timeout' });
  });

  it('rule 72: is made again when its worker has died', async () => {
    onSearch = answering({ results: [{ content: 'a' }] });
    const work = searchItem(await bundle());
    await deployment.effect(work.effectId, 'open');
    await deployment.stopWorkers();
    await deployment.crashWith('tool', work);
    await deployment.start({ kinds: ['tool'] });
    expect((await deployment.reportOf('tool.completed', work.effectId)).outcome).toEqual(found([document('a')]));
  });
});

const bundle = (fields: object = {}) =>
  deployment.bundle([], { type: 'external', hostname: '127.0.0.1', port: service.port, path: '/find?in=docs', ...fields });

async function search(item: Parameters<typeof searchItem>[1] = {}, fields: object = {}) {
  const work = searchItem(await bundle(fields), item);
  await deployment.effect(work.effectId, 'open');
  await deployment.publish('tool', work);
  const r = (await deployment.reportOf('tool.completed', work.effectId)).outcome;
  return r;
}

function answering(body: unknown) {
  return (response: ServerResponse) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

const document = (content: string) => ({ content, title: null, url: null });
const found = (documents: object[]) => ({ type: 'result', data: { documents }, metadata: {}, isError: false });
const documentsOf = (outcome: Awaited<ReturnType<typeof search>>) => (outcome.type === 'result' ? (outcome.data as { documents: object[] }).documents : []);
