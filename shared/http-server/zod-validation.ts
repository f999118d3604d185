import type { FastifySchemaCompiler } from 'fastify';
import { z } from 'zod';
import { issueSentence, parameterSentence } from '../errors/issue-sentence.ts';
import type { SwitchyardError } from '../errors/switchyard-error.ts';

export interface ZodValidation {
  /** Validates a part of a request. */
  compiler: FastifySchemaCompiler<z.ZodType>;
  /**
   * The same with a check before it: what passes the check is left as it is, and the schema gives the verdict on all else.
   * @param isValid must be false for anything that the schema would change or refuse
   */
  compilerUnless(isValid: (data: unknown) => boolean): FastifySchemaCompiler<z.ZodType>;
}

/** @param refuse the server's error for a violated schema */
export function zodValidation(refuse: (error: z.ZodError) => SwitchyardError): ZodValidation {
  const validate = (schema: z.ZodType, data: unknown, sentence = issueSentence): { value: unknown } | { error: SwitchyardError } => {
    try {
      const parsed = schema.safeParse(data, { error: sentence });
      return parsed.success ? { value: parsed.data } : { error: refuse(parsed.error) };
    } catch (error) {
      const path = pathOfOddLength(data);
      if (path === null) throw error;
      return { error: refuse(new z.ZodError([{ code: 'custom', path, message: 'must not be an object with a length', input: undefined }])) };
    }
  };
  return {
    compiler:
      ({ schema, httpPart }) =>
      (data: unknown) =>
        validate(schema, data, httpPart === 'querystring' ? parameterSentence : issueSentence),
    compilerUnless:
      (isValid) =>
      ({ schema }) =>
      (data: unknown) =>
        passes(isValid, data) || validate(schema, data),
  };
}

/** False where the check throws: the schema gives the verdict. */
function passes(isValid: (data: unknown) => boolean, data: unknown): boolean {
  try {
    return isValid(data);
  } catch {
    return false;
  }
}

/**
 * Zod compares the length of any value that has one with its limits, also of an object in place of a text or list; a length that is itself an object may have no
 * primitive form, and the comparison throws. Null: there is none. Iterative: data may be nested deeply.
 */
function pathOfOddLength(data: unknown): (string | number)[] | null {
  const open: Visited[] = [{ value: data, name: '', parent: null }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value } = next;
    if (typeof value !== 'object' || value === null) continue;
    if ('length' in value && typeof value.length === 'object' && value.length !== null) return pathTo(next);
    const isList = Array.isArray(value);
    for (const [name, child] of Object.entries(value)) open.push({ value: child, name: isList ? Number(name) : name, parent: next });
  }
  return null;
}

interface Visited {
  value: unknown;
  name: string | number;
  /** Null: the whole. */
  parent: Visited | null;
}

function pathTo(visited: Visited): (string | number)[] {
  const path: (string | number)[] = [];
  for (let at = visited; at.parent !== null; at = at.parent) path.unshift(at.name);
  return path;
}
