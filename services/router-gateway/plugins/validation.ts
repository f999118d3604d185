import { offendingField } from '#shared/contracts/router/offending-field.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { zodValidation } from '#shared/http-server/zod-validation.ts';

/** `request.invalid` with the field's dotted path in `details.param`. */
export const validation = zodValidation((error) => {
  const { param, message } = offendingField(error);
  return new SwitchyardError('request.invalid', `${param === '' ? 'The body' : param} ${message}`, { details: { param } });
});
