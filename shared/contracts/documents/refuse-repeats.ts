import type { z } from 'zod';
import { quotedName } from '../printed-name.ts';

/**
 * A refinement of a list: no two entries may have the same key. `path` is where in the entry the key stands, for the message.
 * Lists of documents use it on ids: two versions of one document at once would leave open which of them a reference by id means.
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
