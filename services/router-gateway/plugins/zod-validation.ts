import type { FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { offendingField } from '#shared/contracts/router/offending-field.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** Checks a part of a request; what does not pass is `request.invalid` with the dotted path of the field in `details.param`. */
export const validateWithZod: FastifySchemaCompiler<z.ZodType> = ({ schema }) => {
  return (data: unknown) => {
    const parsed = schema.safeParse(data);
    if (parsed.success) return { value: parsed.data };
    const { param, message } = offendingField(parsed.error);
    return { error: new SwitchyardError('request.invalid', param === '' ? message : `${param}: ${message}`, { details: { param } }) };
  };
};
