import type { Queryable } from '#shared/storage/database.ts';

/** From when on commands without a tag are refused, in epoch ms; fixed by the first start of a release that tags commands. */
export async function readTagsRequiredFrom(database: Queryable): Promise<number> {
  const { rows } = await database.query<{ required_from: Date }>('select required_from from command_tags');
  return rows[0]?.required_from.getTime() ?? 0;
}
