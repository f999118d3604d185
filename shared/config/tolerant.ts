import { z } from 'zod';

/**
 * Schemas that never refuse: what does not fit is null. With them a document that has errors can still be looked through for further
 * ones, and all are listed at once.
 */
export const tolerantText = z.string().nullable().catch(null);
export const tolerantNumber = z.number().nullable().catch(null);

/** Entries that don't fit are null and keep their places, so that paths stay true. Absent: empty. No list at all: null. */
export function tolerantList<Item>(item: z.ZodType<Item>) {
  return z.array(z.nullable(item).catch(null)).nullable().catch(null).prefault([]);
}

/** An object of tolerant fields; null when it is absent or no object. */
export function tolerantObject<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.object(shape).nullable().catch(null);
}
