/** Schemas nest a few levels; what is deeper is sent as it is. */
const MAX_DEPTH = 64;
/** Whose values are schemas by name, lists of schemas, and schemas. */
const MAPS = ['properties', '$defs', 'definitions'] as const;
const LISTS = ['anyOf', 'allOf', 'oneOf', 'prefixItems'] as const;

/** A JSON schema whose objects have the listed properties alone, as strict formats demand. */
export function closedSchema(schema: Record<string, unknown>, depth = 0): Record<string, unknown> {
  if (depth > MAX_DEPTH) return schema;
  const closed: Record<string, unknown> = { ...schema };
  const inner = (value: unknown) => (isObject(value) ? closedSchema(value, depth + 1) : value);
  for (const name of MAPS) {
    const map = schema[name];
    if (isObject(map)) closed[name] = Object.fromEntries(Object.entries(map).map(([key, value]) => [key, inner(value)]));
  }
  for (const name of LISTS) {
    const list = schema[name];
    if (Array.isArray(list)) closed[name] = list.map(inner);
  }
  if (isObject(schema.items)) closed.items = inner(schema.items);
  if (schema.type === 'object' || isObject(schema.properties)) closed.additionalProperties = false;
  return closed;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
