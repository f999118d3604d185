import { z } from 'zod';

/** Schemas that never fail: an invalid value is null. So a document with errors is checked further, and all errors are listed at once. */
export const tolerantText = z.string().nullable().catch(null);
export const tolerantNumber = z.number().nullable().catch(null);

/** Invalid entries are null and keep their index, so that paths stay right. Absent: empty. Not a list: null. */
export function tolerantList<Item>(item: z.ZodType<Item>) {
  return z.array(z.nullable(item).catch(null)).nullable().catch(null).prefault([]);
}

/** An object of tolerant fields; null when it is absent or not an object. */
export function tolerantObject<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.object(shape).nullable().catch(null);
}
