import type { PGlite } from '@electric-sql/pglite';

/**
 * What a test may have changed beside rows: an engine in which any of it differs is not used again. A row of a catalogue that was added or changed has
 * a later transaction, and one that was removed is missing from the count; comparing their texts takes three times the CPU. The row of a relation also
 * changes when a table is emptied, so of these the names are compared.
 */
const SCHEMA = `
  select json_build_array(
    (select json_build_array(count(*), sum(hashtextextended(concat_ws(' ', oid, relname, relkind, relnamespace), 0)))
      from pg_class where oid >= 16384 and relpersistence <> 't'),
    ${['pg_attrdef', 'pg_constraint', 'pg_index', 'pg_trigger', 'pg_policy', 'pg_namespace', 'pg_authid', 'pg_db_role_setting']
      .map((catalogue) => `(select json_build_array(count(*), max(xmin::text::bigint)) from ${catalogue})`)
      .join(', ')},
    (select json_build_array(count(*), max(xmin::text::bigint)) from pg_attribute where attrelid >= 16384),
    (select json_build_array(count(*), max(xmin::text::bigint)) from pg_proc where oid >= 16384)
  )::text as schema`;

const TABLES = `select quote_ident(tablename) as name from pg_tables where schemaname = 'public' order by 1`;

/** Tables that have had rows since they were truncated. */
const USED = `select quote_ident(relname) as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and pg_relation_size(oid) > 0`;

/**
 * Remembers the tables and the rows of an engine that is just loaded.
 * @returns `restore` brings them back, with a fresh session. False: the schema is another, or the engine does not answer any more.
 */
export async function stateOf(pglite: PGlite): Promise<{ restore(): Promise<boolean> }> {
  const tables = await namesOf(pglite, TABLES);
  const schema = await schemaOf(pglite);
  const rows = new Map<string, string>();
  for (const table of await namesOf(pglite, USED)) {
    const { rows: text } = await firstRowOf<{ rows: string | null }>(pglite, `select json_agg(one)::text as rows from ${table} as one`);
    if (text !== null) rows.set(table, text);
  }
  const versions = () => versionsOf(pglite, [...rows.keys()]);
  let loaded = await versions();
  const restore = async () => {
    // A transaction may have been left open.
    await pglite.exec('rollback');
    await pglite.exec('discard all');
    const added = (await namesOf(pglite, TABLES)).filter((table) => !tables.includes(table));
    if (added.length > 0) await pglite.exec(`drop table ${added.join(', ')} cascade`);
    if ((await schemaOf(pglite)) !== schema) return false;
    const isChanged = (await versions()) !== loaded;
    const used = (await namesOf(pglite, USED)).filter((table) => isChanged || !rows.has(table));
    if (used.length > 0) await pglite.exec(`truncate ${used.join(', ')} restart identity cascade`);
    if (!isChanged) return true;
    for (const [table, text] of rows) await pglite.query(`insert into ${table} select * from json_populate_recordset(null::${table}, $1)`, [text]);
    loaded = await versions();
    return true;
  };
  return { restore: () => restore().catch(() => false) };
}

async function namesOf(pglite: PGlite, query: string): Promise<string[]> {
  return (await pglite.query<{ name: string }>(query)).rows.map(({ name }) => name);
}

/** A text that differs between two schemas of an engine. */
export async function schemaOf(pglite: PGlite): Promise<string> {
  return (await firstRowOf<{ schema: string }>(pglite, SCHEMA)).schema;
}

/** Of the rows of some tables: changes when one is added, changed or removed. */
async function versionsOf(pglite: PGlite, tables: readonly string[]): Promise<string> {
  const each = tables.map((table) => `(select json_build_array(count(*), max(xmin::text::bigint)) from ${table})`);
  return (await firstRowOf<{ versions: string }>(pglite, `select json_build_array(${each.join(', ')})::text as versions`)).versions;
}

async function firstRowOf<Row>(pglite: PGlite, query: string): Promise<Row> {
  const [first] = (await pglite.query<Row>(query)).rows;
  if (first === undefined) throw new TypeError(`no row from: ${query}`);
  return first;
}
