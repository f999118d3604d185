/**
 * Puts the items of a list's first page into the list itself: changed ones in the place of the old ones, new ones first. The old ones are near the start,
 * so a list of many thousands is neither walked to its end nor copied.
 *
 * @param isKnown whether the list has an item with this key
 * @returns the new ones
 */
export function mergeFirstPage<Item>(items: Item[], page: readonly Item[], keyOf: (item: Item) => string, isKnown: (key: string) => boolean): Item[] {
  const added: Item[] = [];
  const changed = new Map<string, Item>();
  for (const item of page) {
    const key = keyOf(item);
    if (isKnown(key)) changed.set(key, item);
    else added.push(item);
  }
  for (let at = 0; changed.size > 0 && at < items.length; at += 1) {
    const key = keyOf(items[at] as Item);
    const item = changed.get(key);
    if (item === undefined) continue;
    items[at] = item;
    changed.delete(key);
  }
  items.unshift(...added);
  return added;
}
