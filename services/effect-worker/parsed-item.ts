import { z } from 'zod';
import { InvalidItem } from '#services/work/item-kind.ts';

/** An item's body by the schema of its kind. */
export function parsedItem<Work>(schema: z.ZodType<Work>, body: unknown): Work | InvalidItem {
  const parsed = schema.safeParse(body);
  return parsed.success ? parsed.data : new InvalidItem(`not an item of this kind: ${z.prettifyError(parsed.error)}`);
}
