type Literal = string | number | boolean | null;

/** From the path of a field, `pull_request.base.ref`, to the value that it must have, or to those of which it must have one. */
export type MatchRules = Readonly<Record<string, Literal | readonly Literal[]>>;

/**
 * Whether every field that is named has an accepted value. A step of a path is a property, or the index of a list's element. An absent field has no value, not
 * even null; an empty list accepts none.
 */
export function matchesFields(rules: MatchRules, body: unknown): boolean {
  return Object.entries(rules).every(([path, accepted]) => {
    const found = valueAt(path, body);
    if (found === undefined) return false;
    return Array.isArray(accepted) ? accepted.some((one) => one === found) : accepted === found;
  });
}

/** Undefined: there is no such field. */
function valueAt(path: string, body: unknown): unknown {
  let value: unknown = body;
  for (const step of path.split('.')) {
    if (typeof value !== 'object' || value === null || !isField(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

/** Own, and no length of a list. */
function isField(value: object, name: string): boolean {
  return Object.prototype.propertyIsEnumerable.call(value, name);
}
