import type { FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { offendingField } from '#shared/contracts/router/offending-field.ts';
import { issueSentence } from '#shared/errors/issue-sentence.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** Validates a part of a request. @returns a value, or `request.invalid` with the field's dotted path in `details.param` */
export const validateWithZod: FastifySchemaCompiler<z.ZodType> = ({ schema }) => {
  return (data: unknown) => validate(schema, data);
};

/**
 * The same with a check before it: what passes the check is left as it is, and the schema gives the verdict on all else.
 * @param isValid must be false for anything that the schema would change or refuse
 */
export function validateUnless(isValid: (data: unknown) => boolean): FastifySchemaCompiler<z.ZodType> {
  return ({ schema }) => {
    return (data: unknown) => isValid(data) || validate(schema, data);
  };
}

function validate(schema: z.ZodType, data: unknown): { value: unknown } | { error: SwitchyardError } {
  const parsed = schema.safeParse(data, { error: issueSentence });
  if (parsed.success) return { value: parsed.data };
  const { param, message } = offendingField(parsed.error);
  return { error: new SwitchyardError('request.invalid', `${param === '' ? 'The body' : param} ${message}`, { details: { param } }) };
}
