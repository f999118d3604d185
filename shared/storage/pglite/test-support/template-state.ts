import type { PGlite } from '@electric-sql/pglite';

/** What a test may have changed beside rows: an engine in which any of it differs is not used again. */
const SCHEMA = `
  select json_agg(line order by line::text) as schema from (
    select json_build_array(table_name, column_name, data_type, is_nullable, column_default) from information_schema.columns where table_schema = 'public'
    union all select json_build_array(indexname, indexdef) from pg_indexes where schemaname = 'public'
    union all select json_build_array(conrelid::regclass, conname, pg_get_constraintdef(oid)) from pg_constraint where connamespace = 'public'::regnamespace
    union all select json_build_array(proname, prosrc) from pg_proc where pronamespace = 'public'::regnamespace
    union all select json_build_array(tgrelid::regclass, tgname) from pg_trigger where not tgisinternal
    union all select json_build_array(nspname) from pg_namespace where nspname !~ '^pg_(toast_)?temp_'
    union all select json_build_array(rolname, rolconfig) from pg_roles
  ) as lines (line)`;

const TABLES = `select quote_ident(tablename) as name from pg_tables where schemaname = 'public' order by 1`;

/**
 * Remembers the tables and the rows of an engine that is just loaded.
 * @returns `restore` brings them back, with a fresh session. False: the schema is another, or the engine does not answer any more.
 */
export async function stateOf(pglite: PGlite): Promise<{ restore(): Promise<boolean> }> {
  const tables = await tablesOf(pglite);
  const schema = await schemaOf(pglite);
  const rows = new Map<string, string>();
  for (const table of tables) {
    const found = await pglite.query<{ rows: string | null }>(`select json_agg(one)::text as rows from ${table} as one`);
    const [first] = found.rows;
    if (first?.rows != null) rows.set(table, first.rows);
  }
  const restore = async () => {
    // A transaction may have been left open.
    await pglite.exec('rollback');
    await pglite.exec('discard all');
    const added = (await tablesOf(pglite)).filter((table) => !tables.includes(table));
    if (added.length > 0) await pglite.exec(`drop table ${added.join(', ')} cascade`);
    if ((await schemaOf(pglite)) !== schema) return false;
    await pglite.exec(`truncate ${tables.join(', ')} restart identity cascade`);
    for (const [table, text] of rows) await pglite.query(`insert into ${table} select * from json_populate_recordset(null::${table}, $1)`, [text]);
    return true;
  };
  return { restore: () => restore().catch(() => false) };
}

async function tablesOf(pglite: PGlite): Promise<string[]> {
  return (await pglite.query<{ name: string }>(TABLES)).rows.map(({ name }) => name);
}

async function schemaOf(pglite: PGlite): Promise<string> {
  return JSON.stringify((await pglite.query(SCHEMA)).rows);
}
