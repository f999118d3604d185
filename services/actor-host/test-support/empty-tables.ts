import type { Database } from '#shared/storage/database.ts';

/** Empties every table but the list of migrations. */
export async function emptyTables(database: Database): Promise<void> {
  const { rows } = await database.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' and table_name <> 'schema_migrations'`,
  );
  await database.query(`truncate ${rows.map((row) => row.name).join(', ')}`);
}
