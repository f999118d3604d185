/**
 * JSON with the keys of every object in the order of their code units and no spaces: equal values have equal texts, whatever order
 * their keys were written in. The value must be plain JSON; members that are undefined are left out, as JSON.stringify does.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((inner) => canonicalJson(inner ?? null)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  let text = '';
  for (const key of sortedKeys(value)) {
    const inner: unknown = Reflect.get(value, key);
    if (inner !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(inner)}`;
  }
  return `{${text}}`;
}

/** Most objects have their keys in order already, and sorting them takes longer than all else. */
function sortedKeys(value: object): string[] {
  const keys = Object.keys(value);
  for (let index = 1; index < keys.length; index += 1) {
    // Without a comparator the order is that of code units.
    if ((keys[index - 1] ?? '') > (keys[index] ?? '')) return keys.sort();
  }
  return keys;
}
