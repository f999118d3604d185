import { randomUUID } from 'node:crypto';
import { PGlite } from '@electric-sql/pglite';
import { vector as pgvector } from '@electric-sql/pglite-pgvector';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { search as searchSchema } from '#shared/contracts/manifest/search.ts';
import type { Database } from '#shared/storage/database.ts';
import { pgliteDatabase } from '#shared/storage/pglite/open-pglite.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { KnowledgeBases, type OpenKnowledgeBase, type VectorSearch } from './knowledge-bases.ts';

/** With the extension; the user may create databases. Absent: the embedded engine alone. */
const SERVER = process.env.SWITCHYARD_TEST_PGVECTOR_URL;
const ROWS = 400;

interface Store {
  database: Database;
  open: OpenKnowledgeBase;
  fields: object;
  password: string;
  close(): Promise<void>;
}

async function embedded(): Promise<Store> {
  const database = pgliteDatabase(await PGlite.create({ extensions: { vector: pgvector } }));
  const open: OpenKnowledgeBase = async ({ settings }) => {
    for (const [name, value] of Object.entries(settings)) await database.query(`set ${name} = '${value}'`);
    return { ...shared(database), close: async () => {} };
  };
  return { database, open, fields: { hostname: 'embedded', port: 5_432 }, password: 'any', close: () => database.close() };
}

function shared(database: Database): Pick<Database, 'query' | 'transaction'> {
  return { query: (statement, parameters) => database.query(statement, parameters), transaction: (work) => database.transaction(work) };
}

async function server(url: URL): Promise<Store> {
  const admin = await openPostgres({ url: url.href, applicationName: 'test', log: silentLog });
  const name = `vectors_${randomUUID().replaceAll('-', '')}`;
  await admin.query(`create database ${name}`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  const database = await openPostgres({ url: own.href, applicationName: 'test', log: silentLog });
  const fields = { hostname: url.hostname, port: Number(url.port || 5_432), user: decodeURIComponent(url.username), dbname: name, sslmode: 'disable' };
  return {
    ...{ database, fields, password: decodeURIComponent(url.password) },
    open: (options) => openPostgres({ ...options, applicationName: 'search', log: silentLog }),
    async close() {
      await database.close();
      await admin.query(`drop database ${name} with (force)`);
      await admin.close();
    },
  };
}

const stores: [string, () => Promise<Store>][] = [['the embedded engine', embedded]];
if (SERVER !== undefined) stores.push(['a server', () => server(new URL(SERVER))]);

describe.each(stores)('rule 79: tables with vectors at %s', (kind, openStore) => {
  let store: Store;
  let bases: KnowledgeBases;
  let table: VectorSearch;

  beforeAll(async () => {
    store = await openStore();
    await store.database.query('create extension if not exists vector');
    await store.database.query('create table docs (id serial primary key, embedding vector(3), metadata jsonb not null)');
    // The further from the x axis, the rarer the language.
    await store.database.query(
      `insert into docs (embedding, metadata)
       select array[cos(n * 1.5 / ${ROWS}), sin(n * 1.5 / ${ROWS}), 0]::float4[]::vector,
         jsonb_build_object('content', n::text, 'language', case when n > ${ROWS} - 20 then 'de' else 'en' end)
       from generate_series(1, ${ROWS}) n`,
    );
    await store.database.query('create index on docs using hnsw (embedding vector_cosine_ops)');
    await store.database.query('create table halves (vec halfvec(3), metadata jsonb)');
    await store.database.query(`insert into halves values ('[1,0,0]', '{"content":"half"}'), ('[0,1,0]', '{"content":"other"}')`);
    table = tableWith({});
    bases = new KnowledgeBases({ environment: { KB_PASSWORD: store.password }, openKnowledgeBase: store.open, log: silentLog });
  }, 120_000);
  afterAll(async () => {
    await bases.close();
    await store.close();
  });

  const tableWith = (fields: object): VectorSearch => {
    const read = searchSchema.parse({
      ...{ type: 'pgvector', password: '${KB_PASSWORD}', collection: 'docs', embedding_model: 'a/vectors', embedding_dimensions: 3 },
      ...store.fields,
      ...fields,
    });
    if (read.type !== 'pgvector') throw new TypeError('not a table');
    return read;
  };
  const found = async (search: VectorSearch, vector: readonly number[]) =>
    (await bases.search(search, base64(vector), AbortSignal.timeout(60_000))).map(({ content }) => content);

  it('passes the check, and gives the nearest by cosine, the best first', async () => {
    await bases.check(table);
    expect(await found(tableWith({ top_k: 3 }), [2, 0, 0])).toEqual(['1', '2', '3']);
    expect(await found(tableWith({ collection: 'halves' }), [1, 0.1, 0])).toEqual(['half', 'other']);
  });

  it('an index on the vectors gives top_k documents, however few of the nearest fit the filter', async () => {
    const filtered = tableWith({ top_k: 10, metadata_filter: { language: 'de' } });
    await withoutSequentialScans(async () => {
      expect(await found(filtered, [1, 0, 0])).toEqual(Array.from({ length: 10 }, (_, index) => String(ROWS - 19 + index)));
    });
  });

  it('a table of other dimensions fails the check', async () => {
    await expect(bases.check(tableWith({ embedding_dimensions: 256 }))).rejects.toThrow(
      'agent_config.search.embedding_dimensions: is 256, but the column embedding of docs has 3 dimensions',
    );
  });

  if (kind === 'a server') {
    it('a wrong password fails the check, and a search', async () => {
      const others = new KnowledgeBases({ environment: { KB_PASSWORD: 'wrong' }, openKnowledgeBase: store.open, log: silentLog });
      await expect(others.check(table)).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringContaining('refuses the login') });
      await expect(others.search(table, base64([1, 0, 0]), AbortSignal.timeout(60_000))).rejects.toMatchObject({ reason: 'auth_failed' });
      await others.close();
    });

    it('sslmode require refuses a server without TLS: it passes the check with a warning, and fails a search', async () => {
      const encrypted = tableWith({ sslmode: 'require' });
      await bases.check(encrypted);
      await expect(bases.search(encrypted, base64([1, 0, 0]), AbortSignal.timeout(60_000))).rejects.toMatchObject({ reason: 'unreachable' });
    });

    it('its connections may not write, and end slow statements', async () => {
      let opened: Database | null = null;
      const open: OpenKnowledgeBase = async (options) => {
        opened = await store.open(options);
        return opened;
      };
      const others = new KnowledgeBases({ environment: { KB_PASSWORD: store.password }, openKnowledgeBase: open, log: silentLog });
      await others.check(table);
      const database = opened as Database | null;
      await expect(database?.query("insert into docs (metadata) values ('{}')")).rejects.toMatchObject({ code: '25006' });
      expect((await database?.query("select current_setting('statement_timeout') as is"))?.rows).toEqual([{ is: '5s' }]);
      await others.close();
    });
  }

  /** For the sessions that follow, and at the embedded engine for the only one. */
  async function withoutSequentialScans(work: () => Promise<void>): Promise<void> {
    const set = (value: string) =>
      store.database.query(`do $$ begin execute format('alter database %I set enable_seqscan = ${value}', current_database()); end $$`);
    await store.database.query('set enable_seqscan = off');
    if (kind === 'a server') await set('off');
    const fresh = new KnowledgeBases({ environment: { KB_PASSWORD: store.password }, openKnowledgeBase: store.open, log: silentLog });
    const before = bases;
    bases = fresh;
    try {
      await work();
    } finally {
      bases = before;
      await fresh.close();
      if (kind === 'a server') await set('on');
      await store.database.query('set enable_seqscan = on');
    }
  }
});

function base64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString('base64');
}
