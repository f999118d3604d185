import type { ErrorObject, FuncKeywordDefinition, SchemaValidateFunction } from 'ajv';

/**
 * A meta-schema keyword: a reference must lead to a place in its own schema, since nothing is fetched. Anchors (`#name`) are resolved only
 * by compiling.
 */
export const refersInside: FuncKeywordDefinition = { keyword: 'refersInside', type: 'string', schemaType: 'boolean', validate };

function validate(...[, reference, , context]: Parameters<SchemaValidateFunction>): boolean {
  const message = problemOf(`${reference}`, context?.rootData);
  // Ajv reads the errors from here.
  validate.errors = message === null ? [] : [{ keyword: 'refersInside', message }];
  return message === null;
}
validate.errors = [] as Partial<ErrorObject>[];

function problemOf(reference: string, root: unknown): string | null {
  if (!reference.startsWith('#')) return 'must be a reference into the same schema, like #/$defs/name';
  const isPointer = reference === '#' || reference.startsWith('#/');
  return isPointer && !leadsToSchema(reference, root) ? `leads nowhere: there is no ${reference}` : null;
}

function leadsToSchema(pointer: string, root: unknown): boolean {
  let index = root;
  for (const segment of pointer.split('/').slice(1)) {
    const name = decoded(segment).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof index !== 'object' || index === null || !Object.hasOwn(index, name)) return false;
    index = Reflect.get(index, name);
  }
  return typeof index === 'boolean' || (typeof index === 'object' && index !== null && !Array.isArray(index));
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
