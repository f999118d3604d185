import type { FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { issueSentence } from '#shared/errors/issue-sentence.ts';
import { invalidField } from './error-reply.ts';

/** Validates parts of requests: a violation is `request.invalid` with a pointer to the first issue in `details.path`. */
export const validateWithZod: FastifySchemaCompiler<z.ZodType> = ({ schema }) => {
  return (data: unknown) => {
    const parsed = schema.safeParse(data, { error: issueSentence });
    if (parsed.success) return { value: parsed.data };
    const [issue] = parsed.error.issues;
    if (issue === undefined) return { error: invalidField('', 'is not accepted') };
    return { error: invalidField(issue.path.map((step) => `/${String(step)}`).join(''), issue.message) };
  };
};
