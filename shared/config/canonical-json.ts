/**
 * JSON with the keys of every object in the order of their code units and no spaces: equal values have equal texts, whatever order
 * their keys were written in. The value must be plain JSON; members that are undefined are left out, as JSON.stringify does.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((inner) => canonicalJson(inner ?? null)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value);
  if (members.length > 1) members.sort(([left], [right]) => (left < right ? -1 : 1));
  let text = '';
  for (const [key, inner] of members) {
    if (inner !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(inner)}`;
  }
  return `{${text}}`;
}
