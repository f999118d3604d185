import { PGlite } from '@electric-sql/pglite';
import { vector as pgvector } from '@electric-sql/pglite-pgvector';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { pgliteDatabase } from '#shared/storage/pglite/open-pglite.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { seriesOf } from '#shared/telemetry/series-of.ts';
import { searchItem, TOOL_KEY, WorkerDeployment } from '../test-support/worker-deployment.ts';
import type { OpenKnowledgeBase } from './knowledge-bases.ts';

let database: Database;
let knowledge: Database;
let bus: Bus;
let deployment: WorkerDeployment;
let metrics: ReturnType<typeof openMetrics>;
/** As the worker opened them. */
let opened: Parameters<OpenKnowledgeBase>[0][] = [];
let onQuery: (statement: string) => Promise<void> = async () => {};

/** The shared engine stays open. */
const openKnowledgeBase: OpenKnowledgeBase = async (options) => {
  opened.push(options);
  const query: Database['query'] = async (statement, parameters) => {
    await onQuery(typeof statement === 'string' ? statement : statement.text);
    return knowledge.query(statement, parameters);
  };
  return { query, transaction: (work) => knowledge.transaction(work), close: async () => {} };
};

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
  knowledge = pgliteDatabase(await PGlite.create({ extensions: { vector: pgvector } }));
  await knowledge.query('create schema ext; create extension vector schema ext; create schema kb');
  await knowledge.query(`
    create table kb.docs (id serial primary key, embedding ext.vector(3), metadata jsonb not null);
    create table halves (vec ext.halfvec(3), cmetadata jsonb);
    create table two_vectors (a ext.vector(3), b ext.halfvec(3), metadata jsonb);
    create table two_objects (a ext.vector(3), first jsonb, second jsonb);
    create table no_vector (metadata jsonb);
    create table no_metadata (a ext.vector(3));
    create table any_dimensions (a ext.vector, other jsonb, metadata jsonb);
    create table "Upper" (a ext.vector(3), metadata jsonb)`);
  const documents = [
    ['[1,0,0]', { content: 'x axis', title: 'X', url: 'https://shop.example/x', language: 'en', tags: ['a', 'b'] }],
    // Longer, of the same direction as [1,1,0]: cosine does not see its length.
    ['[9,9,0]', { content: 'between', language: 'en', body: 'another text' }],
    ['[0,1,0]', { content: 'y axis', language: 'de' }],
    ['[0,0,1]', { content: ' ', language: 'en' }],
    ['[0,0,2]', { title: 'without a text' }],
    [null, { content: 'without a vector' }],
  ] as const;
  for (const [vector, metadata] of documents) await knowledge.query('insert into kb.docs (embedding, metadata) values ($1, $2)', [vector, metadata]);
  await knowledge.query(`insert into halves values ('[1,0,0]', '{"content": "half"}')`);
  await knowledge.query(`insert into any_dimensions values ('[1,0]', '{}', '{"content": "any"}')`);
});
afterAll(async () => {
  await knowledge.close();
  await database.close();
});

beforeEach(async () => {
  opened = [];
  onQuery = async () => {};
  bus = await openMemoryBus({ database, clock: systemClock });
  deployment = await WorkerDeployment.open({ database, bus });
  metrics = openMetrics();
  await deployment.start({ kinds: ['tool'] }, { metrics, openKnowledgeBase });
});
afterEach(async () => {
  await deployment.close();
  await bus.close();
  await database.query('delete from bundles');
});

describe('a search by a vector', () => {
  it('rule 79: finds the nearest by cosine, the best first, with title and URL of their metadata; those without a text or a vector are left out', async () => {
    expect(await search([1, 0.2, 0])).toEqual(
      found([{ content: 'x axis', title: 'X', url: 'https://shop.example/x' }, document('between'), document('y axis')]),
    );
    expect(seriesOf(await metrics.text(), 'switchyard_searches_total').filter((line) => !line.endsWith(' 0'))).toEqual(['{outcome="found"} 1']);
  });

  it('agent-server.md search: top_k documents count', async () => {
    expect(await search([1, 0.2, 0], { top_k: 1 })).toEqual(found([{ content: 'x axis', title: 'X', url: 'https://shop.example/x' }]));
  });

  it.each([
    [{ language: 'de' }, ['y axis']],
    [{ tags: ['a'] }, ['x axis']],
    [{ language: "en' or true --" }, []],
    [{}, ['x axis', 'between', 'y axis']],
  ])('agent-server.md search: metadata_filter: the metadata has to contain %j', async (filter, contents) => {
    expect(contentsOf(await search([1, 0.2, 0], { metadata_filter: filter }))).toEqual(contents);
  });

  it('agent-server.md search: content_key names the body in the metadata', async () => {
    expect(contentsOf(await search([1, 0.2, 0], { content_key: 'body' }))).toEqual(['another text']);
    expect(contentsOf(await search([1, 0.2, 0], { content_key: "content' or '" }))).toEqual([]);
  });

  it.each([
    ['halves', 'half', 'of halves, with metadata of another name'],
    ['public.halves', 'half', 'with its schema'],
  ])('agent-server.md search: collection: %s finds the columns by their types', async (collection, content) => {
    expect(contentsOf(await search([1, 0, 0], { collection }))).toEqual([content]);
  });

  it('agent-server.md search: hostname, port, user, password, dbname and sslmode are those of the server, opened once, read only and with limits of its own', async () => {
    await search([1, 0, 0]);
    await search([0, 1, 0]);
    expect(opened).toEqual([
      {
        url: `postgres://reader:${TOOL_KEY}@kb.example:6543/books?sslmode=verify-full`,
        ...{ maxConnections: 4, statementTimeoutMs: 5_000, awaitsServer: false },
        settings: { default_transaction_read_only: 'on', 'hnsw.iterative_scan': 'strict_order', 'ivfflat.iterative_scan': 'relaxed_order' },
      },
    ]);
    expect(deployment.lines.join('\n')).not.toContain(TOOL_KEY);
  });

  it('agent-server.md search: sslmode is require, user and dbname are postgres, unless they are given', async () => {
    await search([1, 0, 0], { user: undefined, dbname: undefined, sslmode: undefined });
    expect(opened.map(({ url }) => url)).toEqual([`postgres://postgres:${TOOL_KEY}@kb.example:6543/postgres?sslmode=require`]);
  });

  it('rule 76: reads no more than a prompt gets of large documents, and cuts the best one', async () => {
    await knowledge.query('create table large (a ext.vector(3), metadata jsonb)');
    await knowledge.query(
      `insert into large select array[n, 1, 0]::float4[]::ext.vector, jsonb_build_object('content', repeat('é', 100000)) from generate_series(1, 20) n`,
    );
    const [first, ...others] = documentsOf(await search([1, 0, 0], { collection: 'large', top_k: 1_000_000 }));
    expect(others).toEqual([]);
    expect(Buffer.byteLength(JSON.stringify(first))).toBeGreaterThan(32 * 1024 - 4);
    expect(Buffer.byteLength(JSON.stringify(first))).toBeLessThanOrEqual(32 * 1024);
    await knowledge.query('drop table large');
  });

  it.each<[string, string, object | null, number[]]>([
    ['the vector has other dimensions', 'refused', {}, [1, 0]],
    ['the table is missing', 'refused', { collection: 'kb.nothing' }, [1, 0, 0]],
    ['the column has other dimensions', 'refused', { embedding_dimensions: 2 }, [1, 0]],
    ['the search is one of a service', 'refused', null, [1, 0, 0]],
  ])('rules 72, 79: fails, counted and logged, when %s', async (_, reason, fields, vector) => {
    expect(await search(vector, fields)).toMatchObject({ type: 'failed', reason });
    expect(seriesOf(await metrics.text(), 'switchyard_searches_total').filter((line) => !line.endsWith(' 0'))).toEqual([`{outcome="${reason}"} 1`]);
    expect(deployment.lines.join('\n')).toContain('a search has failed');
  });

  it.each([
    ['does not let it in', 'auth_failed', unreachable('28P01')],
    ['can not be reached', 'unreachable', unreachable('ECONNREFUSED')],
    ['is shut down', 'unreachable', coded('57P01')],
    ['has ended the statement', 'timeout', coded('57014')],
    ['does not let it read the table', 'refused', coded('42501')],
  ])('rules 72, 79: fails when the server %s, and its texts stay out of the log', async (_, reason, error) => {
    onQuery = () => Promise.reject(error);
    expect(await search([1, 0, 0])).toMatchObject({ type: 'failed', reason });
    expect(deployment.lines.join('\n')).not.toContain('of the server');

    onQuery = async () => {};
    expect(contentsOf(await search([1, 0, 0]))).toHaveLength(3);
  });

  it('rules 72, 79: fails after the time that its turn gives it, while the server is silent', async () => {
    onQuery = () => new Promise(() => {});
    expect(await search([1, 0, 0], {}, { deadlineAtMs: systemClock.nowMs() + 100 })).toMatchObject({ type: 'failed', reason: 'timeout' });
  });

  it('rule 79: a table that is made anew is read again', async () => {
    await knowledge.query('create table changing (a ext.vector(3), metadata jsonb)');
    await search([1, 0, 0], { collection: 'changing' });
    await knowledge.query('drop table changing');
    await knowledge.query(`create table changing (b ext.vector(3), m jsonb); insert into changing values ('[1,0,0]', '{"content":"new"}')`);
    expect(await search([1, 0, 0], { collection: 'changing' })).toMatchObject({ type: 'failed', reason: 'refused' });
    expect(contentsOf(await search([1, 0, 0], { collection: 'changing' }))).toEqual(['new']);
    await knowledge.query('drop table changing');
  });

  it('rule 72: is made again when its worker has died, from the same vector', async () => {
    const work = searchItem(await bundle({}), { vector: base64([1, 0, 0]) });
    await deployment.effect(work.effectId, 'open');
    await deployment.stopWorkers();
    await deployment.crashWith('tool', work);
    await deployment.start({ kinds: ['tool'] }, { openKnowledgeBase });
    expect(contentsOf((await deployment.reportOf('tool.completed', work.effectId)).outcome)).toHaveLength(3);
  });
});

describe('the start of an effect worker', () => {
  it.each([
    [
      'has other dimensions',
      { embedding_dimensions: 4 },
      'agent_config.search.embedding_dimensions: is 4, but the column embedding of kb.docs has 3 dimensions',
    ],
    ['has rows of other dimensions', { collection: 'any_dimensions' }, 'embedding_dimensions: is 3, but the column a of any_dimensions has 2 dimensions'],
    ['does not exist', { collection: 'docs' }, 'agent_config.search.collection: there is no table docs'],
    ['has another case', { collection: 'upper' }, 'agent_config.search.collection: there is no table upper'],
    ['has no vectors', { collection: 'no_vector' }, 'agent_config.search.collection: no_vector has no column of type vector or halfvec'],
    ['has two', { collection: 'two_vectors' }, 'two_vectors has several columns of type vector or halfvec: a, b'],
    ['has no metadata', { collection: 'no_metadata' }, 'no_metadata has no column of type jsonb'],
    ['has two of their type', { collection: 'two_objects' }, 'two_objects has several columns of type jsonb: first, second, and none is called metadata'],
  ])('agent-server.md search: rule 79: fails when the table %s', async (_, fields, message) => {
    await expect(startWith(fields)).rejects.toThrow(message);
  });

  it('agent-server.md search: rule 79: fails when the server does not let it in', async () => {
    onQuery = () => Promise.reject(unreachable('28P01'));
    await expect(startWith({})).rejects.toMatchObject({ code: 'config.invalid', message: 'agent_config.search: the knowledge base refuses the login (28P01)' });
  });

  it('rule 79: goes on with a warning when the server can not be reached, and the table is checked with the first search', async () => {
    onQuery = () => Promise.reject(unreachable('ECONNREFUSED'));
    await startWith({ embedding_dimensions: 4 });
    expect(deployment.lines.filter((line) => line.includes('"level":"warn"') || line.includes('"level":40')).join('\n')).toContain(
      'the table is checked with the first search',
    );
    onQuery = async () => {};
    expect(await search([1, 0, 0, 0], { embedding_dimensions: 4 })).toMatchObject({ type: 'failed', reason: 'refused' });
  });

  it.each([{}, { collection: 'Upper' }, { collection: 'halves' }, { collection: 'any_dimensions', embedding_dimensions: 2 }])(
    'succeeds with %j',
    async (fields) => {
      await startWith(fields);
    },
  );
});

const TABLE = {
  ...{ type: 'pgvector', hostname: 'kb.example', port: 6_543, user: 'reader', password: '${TOOL_API_KEY}', dbname: 'books', sslmode: 'verify-full' },
  ...{ collection: 'kb.docs', embedding_model: 'a/vectors', embedding_dimensions: 3 },
};
const SERVICE = { type: 'external', hostname: '127.0.0.1', port: 9, path: '/' };

const bundle = (fields: object | null) => deployment.bundle([], fields === null ? SERVICE : { ...TABLE, ...fields });

async function startWith(fields: object) {
  await deployment.stopWorkers();
  const started = await deployment.startingWith(await bundle(fields));
  return deployment.start({ kinds: ['tool'] }, { metrics, openKnowledgeBase, bundle: started });
}

async function search(vector: readonly number[], fields: object | null = {}, item: Parameters<typeof searchItem>[1] = {}) {
  const work = searchItem(await bundle(fields), { vector: base64(vector), ...item });
  await deployment.effect(work.effectId, 'open');
  await deployment.publish('tool', work);
  return (await deployment.reportOf('tool.completed', work.effectId)).outcome;
}

function base64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString('base64');
}

/** As a driver rejects without a connection. */
function unreachable(code: string) {
  return new SwitchyardError('service.unreachable', 'no connection to the database could be opened', { cause: coded(code) });
}

function coded(code: string) {
  return Object.assign(new Error('a text of the server'), { code });
}

const document = (content: string) => ({ content, title: null, url: null });
const found = (documents: object[]) => ({ type: 'result', data: { documents }, metadata: {}, isError: false });
const documentsOf = (outcome: Awaited<ReturnType<typeof search>>) =>
  outcome.type === 'result' ? (outcome.data as { documents: { content: string }[] }).documents : [];
const contentsOf = (outcome: Awaited<ReturnType<typeof search>>) => documentsOf(outcome).map(({ content }) => content);
