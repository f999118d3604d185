/** The value at names joined by dots, such as `web.results`; undefined: there is none. */
export function valueAt(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, name) => (isObject(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined), value);
}

/** A copy with the value at the path. What stands in its way is replaced. */
export function withValueAt(target: Readonly<Record<string, unknown>>, path: string, value: unknown): Record<string, unknown> {
  const [name = '', ...rest] = path.split('.');
  if (rest.length === 0) return { ...target, [name]: value };
  const inner = target[name];
  return { ...target, [name]: withValueAt(isObject(inner) ? inner : {}, rest.join('.'), value) };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
