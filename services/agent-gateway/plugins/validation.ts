import { zodValidation } from '#shared/http-server/zod-validation.ts';
import { invalidField } from './error-reply.ts';

/** `request.invalid` with a pointer to the first issue in `details.path`. */
export const validation = zodValidation(({ issues: [issue] }) =>
  issue === undefined ? invalidField('', 'is not accepted') : invalidField(issue.path.map((step) => `/${String(step)}`).join(''), issue.message),
);
