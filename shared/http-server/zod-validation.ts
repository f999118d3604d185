import type { FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { issueSentence } from '../errors/issue-sentence.ts';
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
  const validate = (schema: z.ZodType, data: unknown): { value: unknown } | { error: SwitchyardError } => {
    const parsed = schema.safeParse(data, { error: issueSentence });
    return parsed.success ? { value: parsed.data } : { error: refuse(parsed.error) };
  };
  return {
    compiler:
      ({ schema }) =>
      (data: unknown) =>
        validate(schema, data),
    compilerUnless:
      (isValid) =>
      ({ schema }) =>
      (data: unknown) =>
        isValid(data) || validate(schema, data),
  };
}
