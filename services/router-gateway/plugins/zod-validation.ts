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
 * The same with a fast path: plain data passes without the schema.
 * @param isPlain must be false for anything that the schema would change or refuse
 * @param checked gets each value that went through the schema, as parsed
 */
export function validateUnlessPlain(isPlain: (data: unknown) => boolean, checked: WeakSet<object>): FastifySchemaCompiler<z.ZodType> {
  return ({ schema }) => {
    return (data: unknown) => {
      if (isPlain(data)) return true;
      const outcome = validate(schema, data);
      if ('value' in outcome && typeof outcome.value === 'object' && outcome.value !== null) checked.add(outcome.value);
      return outcome;
    };
  };
}

function validate(schema: z.ZodType, data: unknown): { value: unknown } | { error: SwitchyardError } {
  const parsed = schema.safeParse(data, { error: issueSentence });
  if (parsed.success) return { value: parsed.data };
  const { param, message } = offendingField(parsed.error);
  return { error: new SwitchyardError('request.invalid', `${param === '' ? 'The body' : param} ${message}`, { details: { param } }) };
}
