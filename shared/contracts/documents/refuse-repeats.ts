import type { z } from 'zod';
import { quotedName } from '../printed-name.ts';

/**
 * A list refinement that refuses repeated keys; `path` is the key's place within an entry. Lists of documents use the id: with two
 * versions, a reference by id would be ambiguous.
 */
export function refuseRepeats<Item>(keyOf: (item: Item) => string, path: readonly string[] = []): (items: Item[], context: z.RefinementCtx) => void {
  return (items, context) => {
    const seen = new Map<string, number>();
    items.forEach((item, index) => {
      const key = keyOf(item);
      const first = seen.get(key);
      if (first === undefined) seen.set(key, index);
      else context.addIssue({ code: 'custom', path: [index, ...path], message: `repeats ${quotedName(key)}, which stands at [${first}] already` });
    });
  };
}
